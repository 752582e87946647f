"""Names at the ends of curves instead of a legend.

At most four curves initially, with names that do not overlap.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

import plotly.graph_objects as go

from linearity_lab.charts.axes import LABEL, is_marked
from linearity_lab.charts.style import FONT_SIZE, GUIDE_COLOR, Style

MOST_CURVES = 4  # initially; more by a click in the legend
LABEL_SIZE = FONT_SIZE - 1
ROW = 1.3 * LABEL_SIZE  # height of a row of letters in Plotly
POWER_SIZE = 10  # larger powers would touch the row above
LETTER = 0.54 * LABEL_SIZE  # mean width of a letter
MOST_LETTERS = 14  # in a row; more would leave no space for data on a phone
GAP = 6  # pixels between two labels, and between a curve and its label
# Of the axis: curves that end further from its right end keep their legend entry.
ENDS_TOGETHER = 0.12
# Height in pixels of a legend with one row and with two, so that the figure fits the first screen.
LEGEND_HEIGHTS = (50, 82)
MOST_IN_ROW = 6
# Of a mark before a label, and of the unseen one that moves the label to its right.
MARK_SIZE = 8
MARK_MARGIN = 22
# Plotly moves a mark by pixels only along its own direction, so marks are turned by 90°
# and given as others.
TURNED = {
    "triangle-up": "triangle-right",
    "triangle-right": "triangle-down",
    "triangle-down": "triangle-left",
    "triangle-left": "triangle-up",
    "hourglass": "bowtie",
    "bowtie": "hourglass",
    "diamond-wide": "diamond-tall",
    "diamond-tall": "diamond-wide",
    "line-ew": "line-ns",
    "x": "x-thin",  # Plotly would move only the beginning of its path
}


@dataclass(frozen=True)
class End:
    """The end of a curve with its label."""

    x: float
    y: float
    rows: tuple[str, ...]  # of text; the last ones are dropped first
    style: Style | None = None  # None for a guide, which has no color of its own
    group: str = ""  # legend group that also toggles the label
    symbol: str = ""  # of the marks; empty for a curve without marks, whose label has a short line

    @property
    def height(self) -> float:
        """Height in pixels."""
        return ROW * len(self.rows)

    @property
    def width(self) -> float:
        """Approximate width in pixels."""
        return LETTER * (max(map(_letters, self.rows)) + (2 if self.style else 0))


def _letters(text: str) -> int:
    return len(re.sub(r"<[^>]*>", "", text))


def rows_of(title: str, *more: str) -> tuple[str, ...]:
    """Return a title, broken into short rows, and its remarks."""
    rows = [""]
    for word in title.replace(" = ", "\u00a0=\u00a0").split(" "):
        if rows[-1] and _letters(f"{rows[-1]} {word}") > MOST_LETTERS:
            rows.append(word)
        else:
            rows[-1] = f"{rows[-1]} {word}".strip(" ")
    return (*rows, *filter(None, more))


def power(letter: str, exponent: str) -> str:
    """Format ``m`` to the power of ``−0.82 ± 0.06``, larger than Plotly's exponents."""
    return f'{letter}<sup><span style="font-size:{POWER_SIZE}px">{exponent}</span></sup>'


def spread_out(count: int, most: int = MOST_CURVES) -> list[int]:
    """Return at most ``most`` of ``count`` numbers from 0, including the first and the last."""
    if count <= most:
        return list(range(count))
    return (
        sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})
        if most > 1
        else [0]
    )


def hide(figure: go.Figure, groups: Mapping[str, str]) -> None:
    """Hide groups of curves behind a legend entry with these short names and their number."""
    for trace in figure.data:
        if trace.legendgroup in groups:
            has_entry = (
                "lines" in (trace.mode or "")
                and trace.fill is None
                and trace.showlegend is not False
            )
            trace.update(visible="legendonly", showlegend=has_entry)
            if has_entry:
                trace.name = groups[trace.legendgroup]
    if groups:
        note = f"{len(groups)} more, hidden for clarity: click to show"
        title = {"text": note, "side": "top", "font": {"size": LABEL_SIZE}}
        below = LEGEND_HEIGHTS[sum(bool(trace.showlegend) for trace in figure.data) > MOST_IN_ROW]
        legend = {"title": title, "maxheight": below}
        figure.update_layout(height=figure.layout.height + below, showlegend=True, legend=legend)


class LabelPlace(NamedTuple):
    """Place of a label, in units of the vertical axis.

    Attributes:
        center: of all its rows.
        top: of its first row, beside the end of the curve.
        leads: whether it is far from the curve, so that a thin line leads to it.
    """

    center: float
    top: float
    leads: bool


def _placed(
    figure: go.Figure, ends: Sequence[End], factor: float = 1.0
) -> tuple[Sequence[End], list[LabelPlace]]:
    """Return the ends with the rows that fit, and the places of their labels.

    Letters are ``factor`` times as large as usual.
    """
    vertical = figure.layout.yaxis
    low, high = vertical.range
    is_log = vertical.type == "log"
    # Without margin, axis labels and axis title.
    height = figure.layout.height - 28 - 4.5 * FONT_SIZE * factor

    def tall(end: End) -> float:
        return factor * end.height + GAP

    while sum(map(tall, ends)) > height and any(len(end.rows) > 1 for end in ends):
        most = max(len(end.rows) for end in ends)
        ends = [replace(end, rows=end.rows[: most - 1]) for end in ends]
    unit = (high - low) / height  # axis units per pixel
    # The first row is beside the end of the curve, the others below.
    wanted = []
    for end in ends:
        at = math.log10(end.y) if is_log else end.y
        wanted.append((at - low) / unit - factor * (end.height - ROW) / 2)
    centers = shifted_apart(wanted, list(map(tall, ends)), height)
    places = []
    for end, center, aim in zip(ends, centers, wanted, strict=True):
        middle = low + center * unit
        top = low + (center + factor * (end.height - ROW) / 2) * unit
        if is_log:
            middle = 10**middle
            top = 10**top
        places.append(LabelPlace(middle, top, abs(center - aim) > GAP))
    return ends, places


def respaced(figure: go.Figure, factor: float) -> None:
    """Move the labels at the ends of curves apart again, for letters ``factor`` times as large."""
    labels = [trace for trace in figure.data if is_marked(trace, LABEL)]
    if not labels or figure.layout.yaxis.range is None:
        return
    ends = []
    for trace in labels:
        end_y = trace.y[1] if trace.y[0] is None else trace.y[0]
        ends.append(End(trace.x[1], end_y, tuple(trace.text[-1].split("<br>"))))
    fitting, places = _placed(figure, ends, factor)
    for trace, end, place in zip(labels, fitting, places, strict=True):
        trace.y = [trace.y[0], place.top, None, place.center]
        words = "<br>".join(end.rows)
        larger = f"font-size:{round(factor * POWER_SIZE)}px"
        trace.text = ["", "", "", words.replace(f"font-size:{POWER_SIZE}px", larger)]


def move_to_edge(figure: go.Figure) -> None:
    """Move the labels at the ends of curves to new ends of the axes, and apart again."""
    edge = figure.layout.xaxis.range
    labels = [trace for trace in figure.data if is_marked(trace, LABEL)]
    if edge is None or not labels:
        return
    x = 10 ** edge[1] if figure.layout.xaxis.type == "log" else edge[1]
    for trace in labels:
        trace.x = [trace.x[0], x, None, x]
    respaced(figure, 1.0)


def add_end_labels(figure: go.Figure, ends: Sequence[End], *, log_x: bool = True) -> None:
    """Write labels at the ends of curves into the right margin of a figure with one pair of axes.

    Their traces leave the legend. The axes must have their ranges. Where labels would
    cover each other, they are shifted apart, with a thin line from the curve; rows that do
    not fit are dropped.
    """
    if not ends or figure.layout.yaxis.range is None:  # nothing is drawn
        return
    edge = figure.layout.xaxis.range[1]
    x = 10**edge if log_x else edge
    ends, places = _placed(figure, ends)
    for end, (y, beside, leads) in zip(ends, places, strict=True):
        color = end.style.color if end.style else GUIDE_COLOR
        marked = bool(end.style)
        marker = {
            "symbol": _turned(end.symbol or "line-ew-open"),
            "color": [color, color, color, "rgba(0, 0, 0, 0)"],
            "size": [0, MARK_SIZE, 0, MARK_MARGIN],
            "angle": -90,
            "standoff": MARK_SIZE - 1,
            "line": {"width": 2.5 if end.symbol in ("", "x", "x-open") else 0},
        }
        figure.add_scatter(
            x=[end.x if leads else None, x, None, x],
            y=[end.y if leads else None, beside, None, y],
            mode="lines" * leads + "+" * leads + "markers+" * marked + "text",
            line={"color": color, "width": 1},
            marker=marker if marked else None,
            text=["", "", "", "<br>".join(end.rows)],
            textposition="middle right",
            textfont={"size": LABEL_SIZE},
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
            legendgroup=end.group or None,
            name=f"label of {end.rows[0]}",
            meta=LABEL,
        )
    figure.update_layout(margin={"r": GAP + math.ceil(max(end.width for end in ends))})
    labelled = {end.group for end in ends if end.group}
    figure.for_each_trace(
        lambda trace: trace.update(showlegend=False) if trace.legendgroup in labelled else None
    )


def _turned(symbol: str) -> str:
    """Return the symbol that looks like this one after a turn by 90° to the left."""
    name = symbol.removesuffix("-open")
    return TURNED.get(name, name) + ("-open" if name == "x" else symbol[len(name) :])


def shifted_apart(wanted: Sequence[float], heights: Sequence[float], height: float) -> list[float]:
    """Return centers near ``wanted`` whose intervals do not overlap.

    The intervals have these ``heights`` and stay within 0 and ``height``.

    The sum of their squared shifts is least.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    below = [0.0, *itertools.accumulate(heights[index] for index in order)]
    free = [
        wanted[index] - heights[index] / 2 - start
        for index, start in zip(order, below, strict=False)
    ]
    count = len(order)
    places = [0.0] * len(order)
    for rank, index in enumerate(order):
        # Without the heights above it: least squares of an ascending sequence, max
        # over j of min over k.
        runs = ((fmean(free[j:k]) for k in range(rank + 1, count + 1)) for j in range(rank + 1))
        start = min(max(0.0, *map(min, runs)), height - below[-1])
        places[index] = start + below[rank] + heights[index] / 2
    return places
