"""What everything looks like, on every page and in both themes: one color, dash and symbol each (Okabe & Ito 2008).

A network, known by its architecture and its output nonlinearity, looks the same wherever it is drawn. With a linear
output the color is that of its family; with a nonlinear one it is that of the output. Dash and symbol tell the
members of a family apart, so that no color needs to be seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dag.spec import DRAWN
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS
from ntk_core.networks.graphs import EXAMPLE_TITLES
from ntk_core.networks.kinds import ARCHITECTURES, network_title

GUIDE_COLOR = "#7F8A99"  # contrast above 3:1 on the light and on the dark background
BAND_OPACITY = 0.2
SEED_OPACITY = 0.45
RUN_OPACITY = 0.8
FIGURE_HEIGHT = 470
FONT_SIZE = 14  # readable at the back of a lecture room when the page is projected
# The toolbar writes SVG without a server; the cloud button would send data away.
CHART_CONFIG = {
    "displaylogo": False,
    "displayModeBar": True,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
}

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
_COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
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


# Marks of runs that did not converge; over budget, and for other reasons to leave a run out, its own symbol is open.
OUTCOME_SYMBOLS = {"stuck": "line-ew-open", "diverged": "x-thin-open", "dead": "cross-thin-open"}


@dataclass(frozen=True)
class Style:
    """How one output is drawn: color, dash and symbol, so that it can be told apart without the color."""

    color: str
    dash: str
    symbol: str
    title: str

    @property
    def band(self) -> str:
        """The color at the opacity of a band."""
        red, green, blue = (int(self.color[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red}, {green}, {blue}, {BAND_OPACITY})"

    def mark(self, outcome: str) -> str:
        """The symbol of a run that ended so: filled only where it converged."""
        if outcome == "converged":
            return self.symbol
        return OUTCOME_SYMBOLS.get(outcome, f"{self.symbol.removesuffix('-open')}-open")


# Color, dash and symbol with a linear output, by family: plain networks blue, with skips sky blue, with a bottleneck
# purple, with convolutions orange. With other outputs the place in the table counts, so new kinds belong at the end.
_KINDS = {
    "fully-connected": (BLUE, "solid", "circle"),
    "resnet": (SKY, "dash", "square"),
    "densenet": (SKY, "dot", "diamond"),
    "bottleneck": (PURPLE, "longdash", "triangle-up"),
    "convnet": (ORANGE, "dashdot", "star"),
    "mixed": (ORANGE, "longdashdot", "cross"),
    "convnet-bottleneck": (PURPLE, "dot", "x"),
    "mixed-bottleneck": (PURPLE, "dash", "hexagon"),
    "shallow": (BLUE, "dash", "triangle-down"),
    "quadratic-bottleneck": (PURPLE, "solid", "x"),
    "drawn graph": (BLUE, "solid", "square"),
    "irregular": (VERMILION, "dashdot", "bowtie"),
    "few-bottleneck-neurons": (GREEN, "dash", "hourglass"),
    "bottleneck-repaired": (SKY, "solid", "triangle-up"),
    "unequal": (ORANGE, "solid", "circle"),
    "composed": (GREEN, "solid", "diamond"),
}
# Graphs that are one of the architectures.
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
}
_MODEL_NUMBERS = {"network": 0, "linearized": 1, "infinite": 2, "linear": 1, "naive": 3}


def network_style(kind: str, output: str = "linear", title: str = "", variant: int = 0) -> Style:
    """The style of a network, by its architecture and its output nonlinearity.

    Args:
        kind: as in the vocabulary of architectures, or one of the networks and graphs with a name of their own.
        title: by default what people call it.
        variant: tells networks of the same kind and output apart: same color, another dash and symbol.
    """
    at, number = list({**_KINDS, **ARCHITECTURES}).index(kind), list(OUTPUTS).index(output)
    if output == "linear":
        look = Style(*_KINDS[kind], "") if kind in _KINDS else nth_style(at, "")
    else:  # steps with which no two networks share color, dash and symbol
        dash = _DASHES[(number + number // len(_COLORS) + at + 2 * (at // len(_DASHES)) - at // 15) % len(_DASHES)]
        symbol = _SYMBOLS[(number + 4 * at + (at > 0)) % len(_SYMBOLS)]
        look = Style(_COLORS[number % len(_COLORS)], dash, symbol, "")
    look = replace(look, title=title or network_title(kind, output))
    if not variant:
        return look
    dash = _DASHES[(_DASHES.index(look.dash) + variant) % len(_DASHES)]
    return replace(look, dash=dash, symbol=_SYMBOLS[(_SYMBOLS.index(look.symbol) + 3 * variant) % len(_SYMBOLS)])


def graph_style(graph: str, output: str = "linear", title: str = "") -> Style:
    """The style of a graph: that of the architecture which it is, if it is one."""
    found = title or ("your graph" if graph == DRAWN else EXAMPLE_TITLES[graph])
    if not title and output != "linear":
        found = f"{found}, {OUTPUTS[output].title}"
    return network_style(_KIND_OF_GRAPH.get(graph, graph), output, found)


def compared_styles(kinds: Mapping[str, str], output: str) -> dict[str, Style]:
    """Letter → style of networks of these kinds with one output; another of a kind is a variant of it."""
    before = list(kinds.values())
    return {
        letter: network_style(
            kind, output, f"{letter}: {ARCHITECTURES[kind].title}", variant=before[:index].count(kind)
        )
        for index, (letter, kind) in enumerate(kinds.items())
    }


def output_title(output: str) -> str:
    """An output nonlinearity as people read it."""
    return OUTPUTS[output].title


def activation_style(activation: str, title: str = "", variant: int = 0) -> Style:
    """The style of an activation, where several are compared; ``variant`` as for networks."""
    number = list(ACTIVATIONS).index(activation)
    look = nth_style(number, title or ACTIVATIONS[activation].title)
    dash = _DASHES[(number + number // len(_COLORS) + variant) % len(_DASHES)]
    return replace(look, dash=dash, symbol=_SYMBOLS[(number + 5 * variant) % len(_SYMBOLS)])


def method_style(method: str) -> Style:
    """The style of a method of training."""
    return nth_style(list(METHODS).index(method), METHODS[method].title)


def model_style(model: str) -> Style:
    """The style of what is compared in training: the network itself, its linear models, infinite width."""
    return nth_style(_MODEL_NUMBERS[model], MODEL_TITLES[model])


def group_style(name: str, index: int) -> Style:
    """The style of a group of neurons of a graph: a letter has its color in every graph."""
    number = ord(name) - ord("a") if len(name) == 1 else sum(map(ord, name))
    return replace(nth_style(index, f"group {name}"), color=_COLORS[number % len(_COLORS)])


def nth_style(index: int, title: str) -> Style:
    """The style of the curve with this number among several of one kind: rates, followed points, parts."""
    return Style(_COLORS[index % len(_COLORS)], _DASHES[index % len(_DASHES)], _SYMBOLS[index % len(_SYMBOLS)], title)
