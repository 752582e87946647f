"""Styles on every page and in both themes.

One color, dash and symbol per meaning, see ``registry``.

Blue is a plain network with a linear output, vermilion its linear models, violet from pale to deep
the widths, the deepest one also infinite width; no other thing has these colors. A network, known
by its architecture and its output nonlinearity, has one style on all pages. With a linear output
the color is that of its family; with a nonlinear one it is that of the output. Dash and symbol
distinguish the members of a family, so color is never required.
"""

import functools
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from linearity_lab.experiments.dag.point import DRAWN
from ntk_core.dynamics.choices import METHODS
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS
from ntk_core.networks.graphs import GRAPH_TITLES
from ntk_core.networks.kinds import ARCHITECTURES, network_title

GUIDE_COLOR = "#7F8A99"  # contrast above 3:1 on the light and on the dark background
BAND_OPACITY = 0.2
# Of what is not in front. On a dark background look.css raises them: there the same opacity leaves
# less contrast.
SEED_OPACITY = 0.45
GHOST_OPACITY = 0.16  # curves of earlier settings, clearly paler than current points
FAINT_OPACITY = 0.12  # marks beside the chosen ones
FIGURE_HEIGHT = 470
FONT_SIZE = 14  # readable at the back of a lecture hall when the page is projected
# The toolbar writes SVG without a server; the cloud button would send data away.
CHART_CONFIG = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
}

# Contrast above 3:1 on both backgrounds, hues near Okabe & Ito 2008, distinct in
# common color vision.
BLUE = "#1C78B5"
VERMILION = "#C94A00"
GREEN = "#009B62"
PINK = "#D16D8F"
OCHRE = "#B28D1D"
CYAN = "#00A1BD"
VIOLETS = ("#9C82E4", "#7048D8")  # the narrowest and the widest network of a figure
COLORS = {
    "blue": BLUE,
    "vermilion": VERMILION,
    "green": GREEN,
    "pink": PINK,
    "ochre": OCHRE,
    "cyan": CYAN,
    "violet": VIOLETS[1],
}
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
# Of concepts without an entry in the table; each has an open form.
_SPARE_SYMBOLS = (
    "triangle-left",
    "triangle-right",
    "diamond-wide",
    "diamond-tall",
    "hexagram",
    "star-square",
    "octagon",
    "star-triangle-up",
    "star-triangle-down",
    "star-diamond",
    "diamond-cross",
    "diamond-x",
    "circle-cross",
    "circle-x",
    "square-cross",
    "square-x",
    "triangle-ne",
    "triangle-se",
    "triangle-sw",
    "triangle-nw",
)

# Marks of runs that did not converge; for other excluded runs the symbol is open.
OUTCOME_SYMBOLS = {
    "stuck": "line-ew-open",
    "diverged": "x-thin-open",
    "dead": "cross-thin-open",
    "beyond": "arrow-up-open",
}
# Entries of legends for these runs.
OUTCOME_TITLES = {
    "stuck": "loss stayed above the threshold",
    "over-budget": "stopped at the step limit",
    "diverged": "diverged",
    "dead": "kernel 0 at the start",
    "beyond": "no departure until the end",
    "never": "never departs",
    "monotone": "loss never rose above its start",
    "catapult": "loss rose, then fell",
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
# A model that is another concept under a further name.
_SAME_MODEL = {"network": "network fully-connected linear", "linear": "model linearized"}


def network_style(kind: str, output: str = "linear", title: str = "", variant: int = 0) -> Style:
    """Return the style of a network, by its architecture and output nonlinearity.

    Args:
        kind: as in the vocabulary of architectures, or one of the networks and graphs with
            a name of their own.
        title: by default what people call it.
        variant: distinguishes networks of one architecture and output: same color,
            another dash and symbol.
    """
    look = registry()[f"network {kind} {output}"]
    return _variant(replace(look, title=title or network_title(kind, output)), variant)


def _variant(look: Style, variant: int) -> Style:
    if not variant:
        return look
    symbols = _SYMBOLS if look.symbol in _SYMBOLS else _SPARE_SYMBOLS
    dash = _DASHES[(_DASHES.index(look.dash) + variant) % len(_DASHES)]
    symbol = symbols[(symbols.index(look.symbol) + 5 * variant) % len(symbols)]
    return replace(look, dash=dash, symbol=symbol)


def graph_style(graph: str, output: str = "linear", drawn: str = "your graph") -> Style:
    """The style of a graph: that of its architecture, if any.

    ``drawn`` names the one on the canvas.
    """
    found = drawn if graph == DRAWN else GRAPH_TITLES[graph]
    if output != "linear":
        found = f"{found}, {OUTPUTS[output].title}"
    return network_style(_KIND_OF_GRAPH.get(graph, graph), output, found)


def compared_styles(kinds: Mapping[str, str], output: str) -> dict[str, Style]:
    """Map letters to styles of networks of these architectures with one output.

    Repeated ones are variants.
    """
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


def distinct(styles: Mapping[str, Style]) -> dict[str, Style]:
    """Give lines of one color colors of their own, if there are enough; names → styles."""
    in_use = {style.color for style in styles.values()}
    spare = [color for color in _OTHERS if color not in in_use]
    found: dict[str, Style] = {}
    for name, style in styles.items():
        is_taken = any(other.color == style.color for other in found.values())
        if is_taken and len(styles) <= len(_OTHERS) + 1 and spare:
            style = replace(style, color=spare.pop(0))
        found[name] = style
    return found


def output_title(output: str) -> str:
    """Return the title of an output nonlinearity."""
    return OUTPUTS[output].title


def activation_style(activation: str, title: str = "", variant: int = 0) -> Style:
    """Return the style of an activation in a comparison; ``variant`` as for networks."""
    look = registry()[f"activation {activation}"]
    return _variant(replace(look, title=title or ACTIVATIONS[activation].title), variant)


def method_style(method: str) -> Style:
    """Return the style of a training method."""
    return replace(registry()[f"method {method}"], title=METHODS[method].title)


def model_style(model: str) -> Style:
    """Return the style of a trained model: the network, its linear models, infinite width."""
    look = registry()[_SAME_MODEL.get(model, f"model {model}")]
    return replace(look, title=MODEL_TITLES[model])


def width_style(index: int, count: int, title: str) -> Style:
    """Return the style of one of ``count`` ascending widths.

    The color goes from pale (narrowest) to deep (widest).
    """
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
    """Return the style of the curve with this number among several.

    The curves differ, for example, in ``"rate"`` or ``"layer"``.
    """
    series = _table()["series"][of]
    return replace(registry()[f"{of} {index % len(series)}"], title=title)


@functools.cache
def _table() -> dict[str, Any]:
    """Return the table of looks."""
    return tomllib.loads(Path(__file__).with_name("looks.toml").read_text(encoding="utf-8"))


def _entries() -> dict[str, Sequence[str]]:
    """Return meaning → color, dash and symbol, as in the table."""
    table = _table()
    found: dict[str, Sequence[str]] = {}
    for of in ("model", "activation", "method"):
        for name, entry in table[of].items():
            found[f"{of} {name}"] = entry
    for of, entries in table["series"].items():
        for index, entry in enumerate(entries):
            found[f"{of} {index}"] = entry
    for kind, outputs in table["network"].items():
        for output, entry in outputs.items():
            found[f"network {kind} {output}"] = entry
    return found


def _meanings() -> list[str]:
    """Return the meanings of all activations, methods, models and networks."""
    kinds = dict.fromkeys((*_table()["network"], *ARCHITECTURES))
    return [
        *(f"activation {name}" for name in ACTIVATIONS),
        *(f"method {name}" for name in METHODS),
        *(f"model {name}" for name in MODEL_TITLES if name not in _SAME_MODEL),
        *(f"network {kind} {output}" for kind, output in product(kinds, OUTPUTS)),
    ]


@functools.cache
def registry() -> dict[str, Style]:
    """Map meanings to styles, except widths.

    Each style is an entry of ``looks.toml``. A meaning without an entry takes a look that no entry
    has, found from its name, so that a new output or architecture changes no other look.
    """
    found = {}
    for meaning, (color, dash, symbol) in _entries().items():
        found[meaning] = Style(COLORS[color], dash, symbol, "")
    taken = set(found.values())
    spare = []
    for look in product(_OTHERS, _DASHES, _SPARE_SYMBOLS):
        style = Style(*look, "")
        if style not in taken:
            spare.append(style)
    for meaning in _meanings():
        if meaning in found:
            continue
        # The position follows from the name; the next free look if an earlier meaning has this one.
        at = zlib.crc32(meaning.encode()) % len(spare)
        while spare[at] in taken:
            at = (at + 1) % len(spare)
        found[meaning] = spare[at]
        taken.add(spare[at])
    return found


def _color(number: int) -> str:
    return _OTHERS[number % len(_OTHERS)]
