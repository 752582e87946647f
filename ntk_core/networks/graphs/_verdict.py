"""Does a graph become linear as its width grows? What the theorems say of it, with reasons."""

from dataclasses import dataclass
from typing import Literal

from ntk_core.networks.graphs._graph import Graph
from ntk_core.networks.graphs._in_degrees import InDegree, growth, in_degrees
from ntk_core.networks.graphs._parts import OUTPUT

Outcome = Literal["wide", "wide but for a few", "not wide", "nonlinear output"]


@dataclass(frozen=True)
class Reason:
    """One sentence, and the group that it is about.

    Attributes:
        group: its name; ``"output"`` for the outputs.
        words: the sentence.
        against: whether it speaks against transition to linearity.
    """

    group: str
    words: str
    against: bool


@dataclass(frozen=True)
class Verdict:
    """What is known of a graph as its width m goes to infinity.

    Attributes:
        outcome: ``"wide"`` where Theorem 3.6 applies, ``"wide but for a few"`` where App. F does, ``"not wide"`` where
            neither promises anything, ``"nonlinear output"`` where linearity is known to fail.
        reasons: why.
        min_in_degree: smallest expected in-degree outside the first layer at the width that was asked for.
        max_in_degree: the largest one.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...]
    min_in_degree: float
    max_in_degree: float

    @property
    def becomes_linear(self) -> bool:
        """Whether a theorem promises ‖H‖ = O(m^(-1/2)), up to logarithms."""
        return self.outcome in ("wide", "wide but for a few")


def graph_verdict(
    graph: Graph, width: int, input_shape: tuple[int, ...], *, output: str = "linear", num_outputs: int = 1
) -> Verdict:
    """Whether ‖H‖ = O(m^(-1/2)) up to logarithms is promised as the width m grows, with the in-degrees at ``width``.

    A neuron is narrow if its in-degree does not grow with m. Narrow neurons do no harm where they are a vanishing share
    of what every wide neuron sees (App. F); a fixed skip hands them on.

    >>> from ntk_core.networks.graphs import bottleneck_layer_graph
    >>> verdict(bottleneck_layer_graph(), 100, (3,)).reasons[0].words
    'All 100 neurons of group c have in-degree 2 (from b) at every width: not wide.'

    Source: Zhu, Liu & Belkin 2022, §3, Theorem 3.6, and App. F; docs/math/dag.md.
    """
    found = in_degrees(graph, width, input_shape, num_outputs)
    judged = {name: found[name] for name in graph.judged}
    narrow = {name for name, degree in judged.items() if degree.growth == 0}
    carried = _carried(graph, narrow)
    harmed = {name for name in graph.depths if name not in narrow and _share_stays(graph, found[name], carried)}
    reasons: list[Reason] = []
    if output != "linear":
        reasons.append(Reason(OUTPUT, f"The outputs pass through {output}: ‖H‖ stays of order 1.", True))
    harmful = (OUTPUT in carried) or bool(harmed)
    reasons += [_narrow_reason(graph, found[name], carried, harmful) for name in graph.depths if name in narrow]
    reasons += [_carried_reason(name, harmful) for name in graph.depths if name in carried - narrow]
    reasons += [_wide_reason(judged, narrow)] if not harmful else []
    outcome: Outcome = (
        "nonlinear output"
        if output != "linear"
        else "not wide"
        if harmful
        else "wide but for a few"
        if narrow
        else "wide"
    )
    degrees = [degree.value for degree in judged.values()]
    return Verdict(outcome, tuple(reasons), min(degrees), max(degrees))


def _carried(graph: Graph, narrow: set[str]) -> set[str]:
    """The narrow groups, and those to which fixed skips add a narrow one."""
    carried = set(narrow)
    for name in graph.depths:
        if any(not edge.trained and edge.source in carried for edge in graph.incoming[name]):
            carried.add(name)
    return carried


def _share_stays(graph: Graph, degree: InDegree, carried: set[str]) -> bool:
    """Whether narrow neurons stay a share, however wide, of what the neurons of a group see."""
    return any(source in carried and growth(graph, source) == degree.growth for source in degree.sources)


def _narrow_reason(graph: Graph, degree: InDegree, carried: set[str], harmful: bool) -> Reason:
    count = f"{degree.num_neurons:,}"
    sources = ", ".join(degree.sources)
    has = "have" if degree.num_neurons != 1 else "has"
    which = f"The {count} neurons of" if degree.num_neurons != 1 else "The one neuron of"
    group = "the output" if degree.name == OUTPUT else f"group {degree.name}"
    inside = f"in-degree {degree.value:,.4g} (from {sources})"
    if harmful and (growth(graph, degree.name) > 0 or degree.name == OUTPUT):
        every = f"All {count} neurons of" if degree.num_neurons != 1 else "The one neuron of"
        return Reason(degree.name, f"{every} {group} {has} {inside} at every width: not wide.", True)
    ends = "a vanishing share of what wide neurons see." if not harmful else "narrow as well."
    return Reason(degree.name, f"{which} {group} {has} {inside}: {ends}", harmful)


def _carried_reason(name: str, harmful: bool) -> Reason:
    return Reason(name, f"A fixed skip adds a narrow group to group {name}.", harmful)


def _wide_reason(judged: dict[str, InDegree], narrow: set[str]) -> Reason:
    wide = [degree for name, degree in judged.items() if name not in narrow]
    smallest = min(wide, key=lambda degree: degree.value)
    rates = sorted({degree.growth for degree in wide})
    group = "the output" if smallest.name == OUTPUT else f"group {smallest.name}"
    others = "all other in-degrees grow" if narrow else "every in-degree outside the first layer grows"
    words = f"The smallest is {smallest.value:,.4g} ({group}); {others} with the width"
    if len(rates) > 1 or rates[0] != 1:
        words += (
            f", from m^{rates[0]:g} to m^{rates[-1]:g}: a polynomial ratio" if len(rates) > 1 else f" as m^{rates[0]:g}"
        )
    return Reason(smallest.name, words + ".", False)
