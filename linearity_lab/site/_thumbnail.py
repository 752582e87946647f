"""A small picture of any figure, for the gallery."""

import math
import re

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.chart import is_curve
from linearity_lab.charts.vector import INK, Stroke, cells, letters, thumbnail

MOST_POINTS, MOST_STROKES, CELLS = 30, 12, 10  # taken from a figure


def thumbnail_of(figure: go.Figure) -> str:
    """The curves of a figure's first pair of axes, or its first heatmap; the title of its axis where it has neither."""
    first = [trace for trace in figure.data if (trace.xaxis or "x", trace.yaxis or "y") == ("x", "y")]
    if maps := [trace for trace in first if trace.type == "heatmap"]:
        whole = np.asarray(maps[0].z, float)[::-1]
        step = max(1, len(whole) // CELLS)
        return cells(whole[: CELLS * step : step, : CELLS * step : step].tolist())
    log_x, log_y = (axis.type == "log" for axis in (figure.layout.xaxis, figure.layout.yaxis))
    shown = [trace for trace in first if trace.visible in (None, True) and is_curve(trace) and trace.x is not None]
    shown = [trace for trace in shown if "lines" in (trace.mode or "lines")] or shown
    strokes = [stroke for trace in shown for stroke in _strokes(trace, log_x, log_y)]
    if not (strokes := strokes[:MOST_STROKES]):
        return letters(re.sub(r"<[^>]+>", "", figure.layout.yaxis.title.text or ""))
    return thumbnail(strokes, log_x=log_x, log_y=log_y)


def _strokes(trace: go.Scatter, log_x: bool, log_y: bool) -> list[Stroke]:
    """A trace between its gaps, of few points."""
    parts: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(trace.x, trace.y, strict=True):
        if x is None or y is None or (log_x and x <= 0) or (log_y and y <= 0):
            parts.append([])
        elif math.isfinite(x) and math.isfinite(y):
            parts[-1].append((float(x), float(y)))
    color = trace.line.color or trace.marker.color
    dots = "lines" not in (trace.mode or "lines")
    return [
        Stroke(
            [*part[:: max(1, len(part) // MOST_POINTS)], part[-1]],
            color if isinstance(color, str) else INK,
            trace.line.dash or "solid",
            dots or len(part) == 1,
        )
        for part in parts
        if part
    ]
