"""Whether networks become linear with width: in-degrees, theorems and reasons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ntk_core.networks.graphs._blocks import ActivationBlock, AttentionBlock
from ntk_core.networks.graphs._composition import Composition, positions
from ntk_core.networks.graphs._graph import INPUT, OUTPUT, Edge, Graph
from ntk_core.networks.graphs._steps import lay_out

Outcome = Literal["wide", "wide but for a few", "not wide", "nonlinear output", "undecided"]


@dataclass(frozen=True)
class InDegree:
    """In-degree of one group, or of the output.

    Attributes:
        name: of the group.
        value: expected number of edges with weights into each of its neurons.
        growth: its exponent in the width; 0 if constant.
        num_neurons: of the group, at all positions.
        sources: groups where the edges start.
        counts: share of ``value`` from each source.
    """

    name: str
    value: float
    growth: float
    num_neurons: int
    sources: tuple[str, ...]
    counts: tuple[float, ...]


def in_degrees(
    graph: Graph, width: int, input_shape: tuple[int, ...], num_outputs: int = 1
) -> dict[str, InDegree]:
    """Return the in-degree of each group and of the output, in order of evaluation.

    Maskable edges count by their probability of being kept, shared weights once per position of
    their kernel, fixed skips not at all.

    Source: Zhu, Liu & Belkin 2022, §2.1 and App. A, E.
    """
    sizes = graph.sizes(width)
    positions = math.prod(input_shape[:-1])

    def num_neurons(name: str) -> int:
        if name == INPUT:
            return math.prod(input_shape)
        if name == OUTPUT:
            return num_outputs
        return sizes[name] * (positions if name in graph.positioned else 1)

    def count(edge: Edge) -> float:
        if edge.kind == "shared":
            channels = input_shape[-1] if edge.source == INPUT else sizes[edge.source]
            return channels * edge.kernel_size ** (len(input_shape) - 1)
        return (1 - edge.drop_probability) * num_neurons(edge.source)

    found = {}
    for name in graph.depths:
        sources = tuple(edge.source for edge in graph.parents[name])
        counts = tuple(count(edge) for edge in graph.parents[name])
        fastest = max(growth(graph, source) for source in sources)
        found[name] = InDegree(name, sum(counts), fastest, num_neurons(name), sources, counts)
    return found


def growth(graph: Graph, name: str) -> float:
    """Exponent of a group's number of neurons in the width."""
    return graph.group[name].growth if name in graph.group else 0.0


@dataclass(frozen=True)
class Reason:
    """One sentence about a group or layer.

    Attributes:
        group: its name; ``"output"`` for the outputs; empty for all.
        words: the sentence.
        against: whether it is a reason against transition to linearity.
    """

    group: str
    words: str
    against: bool = False


@dataclass(frozen=True)
class Verdict:
    """Known behavior of a network as its width m goes to infinity.

    Attributes:
        outcome: ``"wide"`` if Theorem 3.6 applies, ``"wide but for a few"`` if App. F does,
            ``"not wide"`` if neither does, ``"nonlinear output"`` if linearity is known to fail,
            ``"undecided"`` beyond the theorems.
        reasons: why.
        min_in_degree: smallest expected in-degree outside the first layer at the requested width.
        max_in_degree: the largest one.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...]
    min_in_degree: float
    max_in_degree: float

    @property
    def becomes_linear(self) -> bool:
        """Whether a theorem guarantees ‖H‖ = O(m^(-1/2)) up to logarithms."""
        return self.outcome in ("wide", "wide but for a few")


def graph_verdict(
    network: Graph | Composition,
    width: int,
    input_shape: tuple[int, ...],
    *,
    output: str = "linear",
    num_outputs: int = 1,
) -> Verdict:
    """Predict from theorems whether a graph or composition becomes linear.

    Whether they guarantee ‖H‖ = O(m^(-1/2)) up to logarithms, with the in-degrees at ``width``.

    A neuron is narrow if its in-degree does not grow with m. Narrow neurons are harmless if they
    are a vanishing share of the inputs of every wide neuron (App. F); fixed skips pass them on.

    >>> from ntk_core.networks.graphs import bottleneck_layer_graph
    >>> graph_verdict(bottleneck_layer_graph(), 100, (3,)).reasons[0].words
    'All 100 neurons of group c have in-degree 2 (from b) at every width: not wide.'

    Args:
        network: a graph or a composition.
        width: m, for the in-degrees.
        input_shape: shape of one input.
        output: φ.
        num_outputs: C.

    Returns:
        Outcome, reasons and in-degrees.

    Raises:
        InvalidInput: if layers do not fit the inputs.

    Source: Zhu, Liu & Belkin 2022, §3, Theorem 3.6, and App. F; docs/math/dag.md. Of layers:
    Liu, Zhu & Belkin 2020, Theorem 3.1, §4 and App. G.
    """
    if isinstance(network, Composition):
        return _of_composition(network, width, input_shape, output)
    return _of_graph(network, width, input_shape, output, num_outputs)


def _of_graph(
    graph: Graph, width: int, input_shape: tuple[int, ...], output: str, num_outputs: int
) -> Verdict:
    found = in_degrees(graph, width, input_shape, num_outputs)
    judged = {name: found[name] for name in graph.beyond_first_layer}
    narrow = {name for name, degree in judged.items() if degree.growth == 0}
    carried = set(narrow)  # narrow groups, and those to which fixed skips add one
    for name in graph.depths:
        if any(not edge.trained and edge.source in carried for edge in graph.incoming[name]):
            carried.add(name)
    # Groups of whose inputs narrow neurons remain a constant share at any width.
    harmed = set()
    for name, degree in found.items():
        fastest = [each for each in degree.sources if growth(graph, each) == degree.growth]
        if name not in narrow and any(source in carried for source in fastest):
            harmed.add(name)
    reasons: list[Reason] = []
    if output != "linear":
        reasons.append(
            Reason(OUTPUT, f"The outputs pass through {output}: ‖H‖ stays of order 1.", True)
        )
    harmful = (OUTPUT in carried) or bool(harmed)
    reasons += [
        _narrow_reason(graph, found[name], carried, harmful)
        for name in graph.depths
        if name in narrow
    ]
    skipped = [name for name in graph.depths if name in carried - narrow]
    reasons += [
        Reason(name, f"A fixed skip adds a narrow group to group {name}.", harmful)
        for name in skipped
    ]
    reasons += [_wide_reason(judged, narrow)] if not harmful else []
    outcome: Outcome = "wide"
    if output != "linear":
        outcome = "nonlinear output"
    elif harmful:
        outcome = "not wide"
    elif narrow:
        outcome = "wide but for a few"
    degrees = [degree.value for degree in judged.values()]
    return Verdict(outcome, tuple(reasons), min(degrees), max(degrees))


def _narrow_reason(graph: Graph, degree: InDegree, carried: set[str], harmful: bool) -> Reason:
    count = f"{degree.num_neurons:,}"
    sources = ", ".join(degree.sources)
    has = "have" if degree.num_neurons != 1 else "has"
    which = f"The {count} neurons of" if degree.num_neurons != 1 else "The one neuron of"
    group = "the output" if degree.name == OUTPUT else f"group {degree.name}"
    inside = f"in-degree {degree.value:,.4g} (from {sources})"
    if harmful and (growth(graph, degree.name) > 0 or degree.name == OUTPUT):
        every = f"All {count} neurons of" if degree.num_neurons != 1 else "The one neuron of"
        return Reason(
            degree.name, f"{every} {group} {has} {inside} at every width: not wide.", True
        )
    ends = "a vanishing share of the inputs of wide neurons." if not harmful else "narrow as well."
    return Reason(degree.name, f"{which} {group} {has} {inside}: {ends}", harmful)


def _wide_reason(judged: dict[str, InDegree], narrow: set[str]) -> Reason:
    wide = [degree for name, degree in judged.items() if name not in narrow]
    smallest = min(wide, key=lambda degree: degree.value)
    rates = sorted({degree.growth for degree in wide})
    group = "the output" if smallest.name == OUTPUT else f"group {smallest.name}"
    others = (
        "all other in-degrees grow" if narrow else "every in-degree outside the first layer grows"
    )
    words = f"The smallest is {smallest.value:,.4g} ({group}); {others} with the width"
    if len(rates) > 1 or rates[0] != 1:
        span = f", from m^{rates[0]:g} to m^{rates[-1]:g}: a polynomial ratio"
        words += span if len(rates) > 1 else f" as m^{rates[0]:g}"
    return Reason(smallest.name, words + ".", False)


def _of_composition(
    composition: Composition, width: int, input_shape: tuple[int, ...], output: str
) -> Verdict:
    layers = lay_out(composition.steps, width, input_shape)
    fan_ins = [layer.fan_in for layer in layers[1:]]

    def found(outcome: Outcome, *reasons: str) -> Verdict:
        found = tuple(Reason("", words, outcome == "not wide") for words in reasons)
        return Verdict(outcome, found, min(fan_ins), max(fan_ins))

    if output != "linear":
        return found(
            "nonlinear output",
            "With a nonlinear output the Hessian norm does not decrease (Liu et al., §5).",
        )
    blocks = [block for _, block in positions(composition.layers)]
    attention = [block for block in blocks if isinstance(block, AttentionBlock)]
    smooth = attention or any(
        isinstance(block, ActivationBlock) and block.function != "identity" for block in blocks
    )
    fixed = [layer for layer in layers if not layer.grows]
    narrow = [layer for layer in fixed if not layer.num_skips_around]
    around = [layer for layer in fixed if layer.num_skips_around]
    lengths = [layer.positions for layer in layers if layer.num_heads]
    if attention and not narrow:
        return found(*_of_heads(attention, lengths, alone=len(layers) == 4))
    if narrow:
        words = ", ".join(f"{layer.name} has {layer.features:,}" for layer in narrow)
        reason = f"Bottleneck: {words} at every m (Liu et al., §4)."
        return found("not wide", reason)
    if around:
        words = ", ".join(f"{layer.name} has {layer.features:,}" for layer in around)
        reason = f"Layers with skips around them do not grow with m: {words}. Measure it."
        return found("undecided", reason)
    reasons = [
        "Every layer with weights grows with m (Liu et al., Theorem 3.1 and App. G; Zhu et al., "
        "Theorem 3.6)."
    ]
    if not smooth:
        reasons.append(
            "Without an activation it is a product of matrices; its kernel still stops changing."
        )
    if any(name in ("relu", "leaky_relu") for name in composition.functions()):
        reasons.append(
            "The theorems ask for smooth activations; with ReLU the measured kernel behaves alike."
        )
    return found("wide", *reasons)


def _of_heads(
    attention: Sequence[AttentionBlock], lengths: Sequence[int], alone: bool
) -> tuple[Outcome, str]:
    """Judge attention heads by derivation and measurement, since the theorems do not cover them.

    Args:
        alone: whether one attention layer is all there is below the outputs.
    """
    fixed = [
        length
        for block, length in zip(attention, lengths, strict=True)
        if isinstance(block.num_heads, int)
    ]
    if fixed and all(block.score_exponent <= 0.5 for block in attention):
        words = (
            f"Bottleneck: the T² = {fixed[0] ** 2:,} scores of one head. They keep their share of "
            "the kernel as m grows, so ‖H‖ does not decrease. This is derived and measured for one "
            "layer; the theorems of the papers do not cover attention."
        )
        return "not wide", words
    if fixed:
        words = (
            "Scores vanish as m grows (τ > ½), and so does the part of queries and keys in the "
            "kernel. ‖H‖ scales as m^(½ − τ) because attention becomes uniform (derived for one "
            "layer and measured)."
        )
        return "undecided", words
    words = (
        "The number of heads grows with m. For one layer ‖H‖ is m^(−½) times the largest norm of a "
        "head. It grows more slowly than any power (derived and measured). For several layers the "
        "kernel at w₀ has a limit (Hron et al. 2020)."
    )
    return "wide" if alone else "undecided", words
