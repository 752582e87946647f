"""What a network is drawn with: boxes for layers and groups, lines and arrows between them, no axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.style import GUIDE_COLOR, Style

Place = tuple[float, float]
LINE_WIDTH = 1.6


def box(low: Place, high: Place, style: Style | None, width: float = 2) -> dict[str, Any]:
    """A box between two corners; gray without a style."""
    return {
        "type": "rect",
        **{"x0": low[0], "y0": low[1], "x1": high[0], "y1": high[1]},
        "line": {"color": style.color if style else GUIDE_COLOR, "width": width},
        "fillcolor": style.band if style else "rgba(127, 138, 153, 0.2)",
    }


def arc(start: Place, end: Place, top: float, color: str, lean: float = 0.0, **line: Any) -> dict[str, Any]:
    """A line that bends up to ``top``, its turns moved inwards by ``lean``."""
    turns = f"C {start[0] + lean},{top} {end[0] - lean},{top} {end[0]},{end[1]}"
    return path(f"M {start[0]},{start[1]} {turns}", color, **line)


def path(drawn: str, color: str, **line: Any) -> dict[str, Any]:
    """A line along a path of SVG."""
    return {"type": "path", "path": drawn, "line": {"color": color, "width": LINE_WIDTH, **line}}


def arrow(start: Place, end: Place, color: str) -> dict[str, Any]:
    """A straight line with a head."""
    return {
        **{"x": end[0], "y": end[1], "ax": start[0], "ay": start[1]},
        **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y"},
        **{"text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": LINE_WIDTH, "arrowcolor": color},
    }


def finish_drawing(
    figure: go.Figure, shapes: Sequence[Any], arrows: Sequence[Any], x: Place, y: Place, height: float
) -> go.Figure:
    """Shapes and arrows into a figure that shows these ranges, without axes."""
    figure.update_xaxes(visible=False, range=x, fixedrange=True)
    figure.update_yaxes(visible=False, range=y, fixedrange=True)
    # All at once: plotly checks every shape anew with each one that is added.
    figure.update_layout(showlegend=False, shapes=shapes, annotations=arrows, dragmode=False)
    return figure.update_layout(height=height, margin={"l": 4, "r": 4, "t": 4, "b": 4})
