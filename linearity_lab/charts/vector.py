"""Small pictures as SVG text, shown as images.

No script, readable on light and dark backgrounds.
"""

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.chart import is_curve
from linearity_lab.charts.style import BLUE

WIDTH = 200
HEIGHT = 96
MARGIN = 8
# Of a thumbnail.
MOST_POINTS = 30
MOST_STROKES = 12
CELLS = 10
# An image does not know the theme of its page: contrast above 4:1 on light and dark backgrounds.
INK = "#757D89"
DASHES = {
    "solid": "",
    "dash": "7 4",
    "dot": "2 4",
    "dashdot": "7 4 2 4",
    "longdash": "11 4",
    "longdashdot": "11 4 2 4",
}


@dataclass(frozen=True)
class Stroke:
    """One line or one cloud of dots, in data coordinates."""

    points: Sequence[tuple[float, float]]
    color: str
    dash: str = "solid"
    dots: bool = False


@dataclass(frozen=True)
class Scale:
    """Map data to picture coordinates, linear or logarithmic; clip to the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low = self.low
        high = self.high
        at = min(max(value, self.low), self.high)
        if self.log:
            low = math.log(low)
            high = math.log(high)
            at = math.log(at)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


def path(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Return the ``d`` attribute of a polyline."""
    return "M" + " L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in points)


def thumbnail(strokes: Sequence[Stroke], *, log_x: bool = False, log_y: bool = False) -> str:
    """Draw these strokes without text, between a horizontal and a vertical axis."""
    xs = [a for stroke in strokes for a, _ in stroke.points]
    ys = [b for stroke in strokes for _, b in stroke.points]
    x = Scale(min(xs), max(xs), 2 * MARGIN, WIDTH - MARGIN, log_x)
    y = Scale(min(ys), max(ys), HEIGHT - 2 * MARGIN, MARGIN, log_y)
    return _picture("".join(_drawn(stroke, x, y) for stroke in strokes), axes=True)


def thumbnail_of(figure: go.Figure) -> str:
    """Draw a figure's first curves or heatmap, else the title of its axis."""
    maps = [
        trace for trace in figure.data if trace.type == "heatmap" and trace.xaxis in (None, "x")
    ]
    if maps:
        whole = np.asarray(maps[0].z, float)[::-1]
        step = max(1, len(whole) // CELLS)
        return _cells(whole[: CELLS * step : step, : CELLS * step : step].tolist())
    pictures = rows_as_pictures(figure, MOST_POINTS, MOST_STROKES)
    return (
        pictures[0][1]
        if pictures
        else letters(re.sub("<[^>]*>", "", figure.layout.yaxis.title.text or ""))
    )


def rows_as_pictures(
    figure: go.Figure, most: int = 10_000, most_strokes: int | None = None
) -> list[tuple[str, str]]:
    """(title of the vertical axis, picture) of each row.

    Its strong curves of about ``most`` points, on its axes.
    """
    rows: dict[str, list[go.Scatter]] = {}
    for trace in figure.data:
        if (
            trace.type == "scatter"
            and trace.visible in (None, True)
            and is_curve(trace)
            and trace.opacity in (None, 1)
        ):
            rows.setdefault(trace.yaxis or "y", []).append(trace)
    found = []
    for name, traces in rows.items():
        y = figure.layout[name.replace("y", "yaxis")]
        x = figure.layout[(y.anchor or "x").replace("x", "xaxis")]
        log_x, log_y = (axis.type == "log" for axis in (x, y))
        lines = [trace for trace in traces if "lines" in (trace.mode or "lines")] or traces
        strokes = [stroke for trace in lines for stroke in _strokes_of(trace, log_x, log_y, most)][
            :most_strokes
        ]
        if strokes:
            picture = thumbnail(strokes, log_x=log_x, log_y=log_y)
            found.append((re.sub("<[^>]*>", "", y.title.text or ""), picture))
    return found


def _strokes_of(trace: go.Scatter, log_x: bool, log_y: bool, most: int) -> list[Stroke]:
    """Split a trace at its gaps."""
    parts: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(trace.x, trace.y, strict=True):
        if x is None or y is None or (log_x and x <= 0) or (log_y and y <= 0):
            parts.append([])
        elif math.isfinite(x) and math.isfinite(y):
            parts[-1].append((float(x), float(y)))
    color = trace.line.color or trace.marker.color
    if not isinstance(color, str):
        color = INK
    dash = trace.line.dash or "solid"
    dots = "lines" not in (trace.mode or "lines")
    strokes = []
    for part in parts:
        if part:
            thinned = [*part[:: max(1, len(part) // most)], part[-1]]
            strokes.append(Stroke(thinned, color, dash, dots or len(part) == 1))
    return strokes


def _cells(values: Sequence[Sequence[float]]) -> str:
    """Draw a small heatmap; larger numbers have more color."""
    flat = [value for row in values for value in row]
    low = min(flat)
    high = max(flat)
    side = (HEIGHT - 2 * MARGIN) / len(values)
    left = (WIDTH - side * len(values)) / 2
    boxes = []
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            opacity = 0.08 + 0.92 * (value - low) / ((high - low) or 1)
            boxes.append(
                f'<rect x="{left + j * side:.1f}" y="{MARGIN + i * side:.1f}" width="{side:.1f}" '
                f'height="{side:.1f}" fill="{BLUE}" fill-opacity="{opacity:.2f}"/>'
            )
    return _picture("".join(boxes), axes=False)


def letters(text: str) -> str:
    """Draw a few large letters, smaller if there are many."""
    size = min(34.0, 1.6 * WIDTH / max(1, len(text)))
    return _picture(
        f'<text x="{WIDTH / 2}" y="{HEIGHT / 2 + 12}" text-anchor="middle" font-size="{size:.1f}" '
        f'font-style="italic" font-family="sans-serif" fill="{INK}">{html.escape(text)}</text>',
        axes=False,
    )


def _drawn(stroke: Stroke, x: Scale, y: Scale) -> str:
    if stroke.dots or len(stroke.points) == 1:
        radius = 2.2 if len(stroke.points) > 9 else 5  # a few are to be seen, too
        return "".join(
            f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="{radius}" fill="{stroke.color}"/>'
            for a, b in stroke.points
        )
    dash = f' stroke-dasharray="{DASHES[stroke.dash]}"' if DASHES[stroke.dash] else ""
    return (
        f'<path d="{path(stroke.points, x, y)}" fill="none" stroke="{stroke.color}" '
        f'stroke-width="2.5" stroke-linejoin="round"{dash}/>'
    )


def _picture(inside: str, *, axes: bool) -> str:
    frame = f"M{MARGIN} {MARGIN} V{HEIGHT - MARGIN} H{WIDTH - MARGIN}"
    lines = f'<path d="{frame}" fill="none" stroke="{INK}" stroke-opacity="0.7"/>' if axes else ""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{lines}{inside}</svg>'
