"""Styles on every page and in both themes: one color, dash and symbol per meaning, see ``registry``.

Blue is a plain network with a linear output, vermilion its linear models, violet from pale to deep the widths, the
deepest one also infinite width; no other thing has these colors. A network, known by its architecture and its output
nonlinearity, has one style on all pages. With a linear output the color is that of its family; with a
nonlinear one it is that of the output. Dash and symbol distinguish the members of a family, so color is never required.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from linearity_lab.experiments.dag.point import DRAWN
from ntk_core.dynamics.choices import METHODS
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS
from ntk_core.networks.graphs import GRAPH_TITLES
from ntk_core.networks.kinds import ARCHITECTURES, network_title

GUIDE_COLOR = "#7F8A99"  # contrast above 3:1 on the light and on the dark background
BAND_OPACITY = 0.2
SEED_OPACITY = 0.45
FIGURE_HEIGHT = 470
FONT_SIZE = 14  # readable at the back of a lecture hall when the page is projected
# The toolbar writes SVG without a server; the cloud button would send data away.
CHART_CONFIG = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
}

# Contrast above 3:1 on both backgrounds, hues near Okabe & Ito 2008, distinct in common color vision.
BLUE, VERMILION, GREEN, PINK, OCHRE, CYAN = (
    "#1C78B5",
    "#C94A00",
    "#009B62",
    "#D16D8F",
    "#B28D1D",
    "#00A1BD",
)
VIOLETS = ("#9C82E4", "#7048D8")  # the narrowest and the widest network of a figure
_OTHERS = (PINK, GREEN, CYAN, OCHRE)  # of objects without a fixed color
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "cross",
    "pentagon",
    "hexagon",
    "star",
    "x",
    "hourglass",
    "bowtie",
)
_MORE_SYMBOLS = (
    "triangle-left",
    "triangle-right",
    "diamond-wide",
    "diamond-tall",
    "hexagram",
    "star-square",
)

# Marks of runs that did not converge; for other excluded runs the symbol is open.
OUTCOME_SYMBOLS = {
    "stuck": "line-ew-open",
    "diverged": "x-thin-open",
    "dead": "cross-thin-open",
    "beyond": "arrow-up-open",
}


@dataclass(frozen=True)
class Style:
    """How one output is drawn: color, dash and symbol; distinguishable without color."""

    color: str
    dash: str
    symbol: str
    title: str

    @property
    def band(self) -> str:
        """Return the color at the opacity of a band."""
        red, green, blue = (int(self.color[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red}, {green}, {blue}, {BAND_OPACITY})"

    def mark(self, outcome: str) -> str:
        """Return the symbol of a run with this outcome: filled only if it converged."""
        if outcome == "converged":
            return self.symbol
        return OUTCOME_SYMBOLS.get(outcome, f"{self.symbol.removesuffix('-open')}-open")


# By family: plain blue, skips cyan, bottleneck pink, convolutions ochre; append new architectures at the end.
_KINDS = {
    "fully-connected": (BLUE, "solid", "circle"),
    "resnet": (CYAN, "dash", "square"),
    "densenet": (CYAN, "dot", "diamond"),
    "bottleneck": (PINK, "longdash", "triangle-up"),
    "convnet": (OCHRE, "dashdot", "star"),
    "mixed": (OCHRE, "longdashdot", "cross"),
    "convnet-bottleneck": (PINK, "dot", "x"),
    "mixed-bottleneck": (PINK, "dash", "hexagon"),
    "shallow": (BLUE, "dash", "triangle-down"),
    "quadratic-bottleneck": (PINK, "solid", "x"),
    "drawn graph": (BLUE, "solid", "square"),
    "irregular": (BLUE, "dashdot", "bowtie"),
    "few-bottleneck-neurons": (GREEN, "dash", "hourglass"),
    "bottleneck-repaired": (CYAN, "solid", "triangle-up"),
    "unequal": (OCHRE, "solid", "circle"),
    "composed": (GREEN, "solid", "diamond"),
}
# Graphs equal to one of the architectures.
_KIND_OF_GRAPH = {
    DRAWN: "drawn graph",
    "densenet-dropped": "densenet",
    "bottleneck-layer": "bottleneck",
    "fixed-skips": "resnet",
    "shared-weights": "convnet",
}
MODEL_TITLES = {
    "network": "network",
    "linearized": "linear model",
    "infinite": "infinite width",
    "linear": "linear model ψ",
    "naive": "without the norm feature",
    "quadratic": "quadratic model",
    "first_kernel": "kernel K₀",
    "after_kernel": "after kernel",
    "onward": "linear model at the end",
}
_MODELS = {
    "network": _KINDS["fully-connected"],
    "linearized": (VERMILION, "dash", "square"),
    "infinite": (VIOLETS[1], "dot", "diamond"),  # the widest of all
    "linear": (VERMILION, "dash", "square"),
    "naive": (VERMILION, "dashdot", "triangle-up"),
    "quadratic": (GREEN, "longdash", "pentagon"),
    "first_kernel": (VERMILION, "longdash", "triangle-down"),
    "after_kernel": (GREEN, "dashdot", "star"),
    "onward": (VERMILION, "longdashdot", "cross"),
}
# Styles of repeated objects in one figure, assigned in this order; append new ones.
_SERIES = (
    "activation", "method", "rate", "richness", "start", "measure", "layer", "sample", "part", "run", "class", "curve",
)  # fmt: skip
_HANDED_OUT = 16  # of each


def network_style(kind: str, output: str = "linear", title: str = "", variant: int = 0) -> Style:
    """Return the style of a network, by its architecture and output nonlinearity.

    Args:
        kind: as in the vocabulary of architectures, or one of the networks and graphs with a name of their own.
        title: by default what people call it.
        variant: distinguishes networks of one architecture and output: same color, another dash and symbol.
    """
    if kind in _KINDS:
        look = registry()[f"network {kind} {output}"]
    else:
        at, number = list({**_KINDS, **ARCHITECTURES}).index(kind), list(OUTPUTS).index(output)
        look = Style(
            _color(at),
            _DASHES[(at + number) % len(_DASHES)],
            _SYMBOLS[(at + number) % len(_SYMBOLS)],
            "",
        )
    return _variant(replace(look, title=title or network_title(kind, output)), variant)


def _variant(look: Style, variant: int) -> Style:
    if not variant:
        return look
    dash = _DASHES[(_DASHES.index(look.dash) + variant) % len(_DASHES)]
    return replace(
        look,
        dash=dash,
        symbol=_SYMBOLS[(_SYMBOLS.index(look.symbol) + 5 * variant) % len(_SYMBOLS)],
    )


def graph_style(graph: str, output: str = "linear", drawn: str = "your graph") -> Style:
    """The style of a graph: that of its architecture, if any; ``drawn`` names the one on the canvas."""
    found = drawn if graph == DRAWN else GRAPH_TITLES[graph]
    if output != "linear":
        found = f"{found}, {OUTPUTS[output].title}"
    return network_style(_KIND_OF_GRAPH.get(graph, graph), output, found)


def compared_styles(kinds: Mapping[str, str], output: str) -> dict[str, Style]:
    """Map letters to styles of networks of these architectures with one output; repeated ones are variants."""
    before = list(kinds.values())
    return {
        letter: network_style(
            kind,
            output,
            f"{letter}: {ARCHITECTURES[kind].title}",
            variant=before[:index].count(kind),
        )
        for index, (letter, kind) in enumerate(kinds.items())
    }


def output_title(output: str) -> str:
    """Return the title of an output nonlinearity."""
    return OUTPUTS[output].title


def activation_style(activation: str, title: str = "", variant: int = 0) -> Style:
    """Return the style of an activation in a comparison; ``variant`` as for networks."""
    number = list(ACTIVATIONS).index(activation)
    return _variant(
        nth_style(number, title or ACTIVATIONS[activation].title, "activation"), variant
    )


def method_style(method: str) -> Style:
    """Return the style of a training method."""
    return nth_style(list(METHODS).index(method), METHODS[method].title, "method")


def model_style(model: str) -> Style:
    """Return the style of a trained model: the network, its linear models, infinite width."""
    return Style(*_MODELS[model], MODEL_TITLES[model])


def width_style(index: int, count: int, title: str) -> Style:
    """Return the style of one of ``count`` ascending widths, from pale (narrowest) to deep (widest)."""
    share = index / (count - 1) if count > 1 else 1.0
    ends = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in VIOLETS]
    mixed = "".join(
        f"{round(low + share * (high - low)):02X}" for low, high in zip(*ends, strict=True)
    )
    return Style(f"#{mixed}", "solid", _SYMBOLS[index % len(_SYMBOLS)], title)


def group_style(name: str, index: int) -> Style:
    """Return the style of a group of neurons; a letter has one color in all graphs."""
    number = ord(name) - ord("a") if len(name) == 1 else sum(map(ord, name))
    return replace(nth_style(index, f"group {name}", "layer"), color=_color(number))


def nth_style(index: int, title: str, of: str = "measure") -> Style:
    """Return the style of the curve with this number among several, such as ``"rate"`` or ``"layer"``."""
    return replace(registry()[f"{of} {index % _HANDED_OUT}"], title=title)


@functools.cache
def registry() -> dict[str, Style]:
    """Map meanings to styles, except widths: no two share color, dash and symbol.

    Families of networks and models have the styles stated above; other outputs and series get the remaining ones, so
    that neighbors differ in color, dash and symbol.
    """
    found = {f"network {kind} linear": look for kind, look in _KINDS.items()}
    found |= {
        f"model {name}": look for name, look in _MODELS.items() if name not in ("network", "linear")
    }
    taken = set(found.values())

    def hand_out(
        meaning: str, color: str, dash: int, symbol: int, before: Sequence[str] = ()
    ) -> None:
        dashes, near = _turned(_DASHES, dash), [found[each] for each in before]
        tries = (
            *product([color], dashes, _turned(_SYMBOLS, symbol)),
            *product([color], dashes, _MORE_SYMBOLS),
        )
        free = [look for look in tries if look not in taken]
        apart = [
            look
            for look in free
            if all(look[1] != other[1] and look[2] != other[2] for other in near)
        ]
        found[meaning] = (apart or free)[0]
        taken.add(found[meaning])

    def hand_out_outputs(kinds: Sequence[tuple[int, str]]) -> None:
        for (at, kind), (number, output) in product(kinds, list(enumerate(OUTPUTS))[1:]):
            hand_out(f"network {kind} {output}", _color(number - 1), number + at, number + 4 * at)

    kinds = list(enumerate(_KINDS))
    hand_out_outputs(kinds[:1])
    for (shift, of), index in product(enumerate(_SERIES), range(_HANDED_OUT)):
        before = [f"{of} {each}" for each in range(max(0, index - 3), index)]
        hand_out(f"{of} {index}", _color(index), index + shift, index + 3 * shift, before)
    hand_out_outputs(kinds[1:])
    return {meaning: Style(*look, "") for meaning, look in found.items()}


def _color(number: int) -> str:
    return _OTHERS[number % len(_OTHERS)]


def _turned(values: tuple[str, ...], by: int) -> tuple[str, ...]:
    return values[by % len(values) :] + values[: by % len(values)]
