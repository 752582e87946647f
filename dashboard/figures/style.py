"""What an output looks like, on every page and in both themes: one color, dash and symbol each (Okabe & Ito 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ntk_core.vocabulary import HESSIAN_NETWORKS, OUTPUTS, PARAMETERIZATIONS

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

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
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
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def output_style(output: str) -> Style:
    """The style of an output nonlinearity, by its name in the vocabulary."""
    index = list(OUTPUTS).index(output)
    # The second half repeats the colors with the dashes shifted, so that no two outputs share color and dash.
    dash = _DASHES[(index + index // len(_COLORS)) % len(_DASHES)]
    return Style(_COLORS[index % len(_COLORS)], dash, _SYMBOLS[index % len(_SYMBOLS)], OUTPUTS[output].title)


def output_title(output: str) -> str:
    """An output nonlinearity as people read it."""
    return OUTPUTS[output].title


def series_style(index: int, title: str) -> Style:
    """The style of the index-th of several series of one kind: widths, methods, followed points."""
    return Style(_COLORS[index % len(_COLORS)], _DASHES[index % len(_DASHES)], _SYMBOLS[index % len(_SYMBOLS)], title)


def network_style(part: str) -> Style:
    """The style of network ``"a"`` or ``"b"`` where two are compared; blue and vermilion, as of the first outputs."""
    index = ("a", "b").index(part)
    # Dashed lines are guides and references there.
    return Style(_COLORS[index], ("solid", "dot")[index], _SYMBOLS[index], part.upper())


def nth_style(index: int, title: str, dash: str | None = None) -> Style:
    """The style of the curve with this number among several, by default with a dash of its own."""
    return Style(
        _COLORS[index % len(_COLORS)], dash or _DASHES[index % len(_DASHES)], _SYMBOLS[index % len(_SYMBOLS)], title
    )


# Cool colors for networks that become linear by the theory, warm ones behind a nonlinear output, purple and brown ones
# with a bottleneck; dash and symbol tell the architecture.
_NETWORK_COLORS = {
    "linear": "#0072B2",
    "resnet": "#009E73",
    "densenet": "#17A2B8",
    "convnet": "#56B4E9",
    "mixed": "#5C7CFA",
    "nonlinear-output": "#D55E00",
    "resnet-nonlinear-output": "#E69F00",
    "convnet-nonlinear-output": "#E4572E",
    "mixed-nonlinear-output": "#C98A00",
    "bottleneck": "#CC79A7",
    "convnet-bottleneck": "#9B5DE5",
    "mixed-bottleneck": "#A0616A",
    "shallow": "#0072B2",
    "quadratic-bottleneck": "#CC79A7",
}
_ARCHITECTURE_MARKS = (
    ("resnet", ("dash", "square")),
    ("densenet", ("dot", "diamond")),
    ("convnet", ("dashdot", "triangle-up")),
    ("mixed", ("longdash", "cross")),
    ("", ("solid", "circle")),
)


def hessian_style(network: str, parameterization: str = "ntk") -> Style:
    """The style of a network whose Hessian is shown; other parameterizations have colors and marks of their own."""
    title = HESSIAN_NETWORKS[network].title
    if parameterization != "ntk":
        index = list(PARAMETERIZATIONS).index(parameterization)
        full = f"{title}, {PARAMETERIZATIONS[parameterization].title.partition(' (')[0]}"
        return Style(_COLORS[(index + 1) % len(_COLORS)], _DASHES[index + 1], _SYMBOLS[index], full)
    dash, symbol = next(marks for prefix, marks in _ARCHITECTURE_MARKS if network.startswith(prefix))
    return Style(_NETWORK_COLORS[network], dash, symbol, title)


def power_of_ten(exponent: int) -> str:
    """``10⁴`` for 4."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def width_label(width: int) -> str:
    """A width as people write it: 300, 3,000, 10⁴, 3·10⁵."""
    if width < 10_000:
        return f"{width:,}"
    exponent = math.floor(math.log10(width))
    mantissa, rest = divmod(width, 10**exponent)
    if rest:
        return f"{width:,}"
    return power_of_ten(exponent) if mantissa == 1 else f"{mantissa}·{power_of_ten(exponent)}"


def signed(value: float, digits: int = 2) -> str:
    """A number with a true minus sign: −1.02; nothing is −0.00."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
