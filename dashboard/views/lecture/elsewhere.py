"""What other pages show of this one: its card on the overview."""

from typing import Any

from dashboard.charts.style import network_style
from dashboard.charts.vector import Stroke, thumbnail
from dashboard.views.lecture.exact_figures import diagonal_entries

CARD = ""
DOTS = 120


def card(_: Any) -> str:
    """The entries of a diagonal Hessian."""
    weights, entries = diagonal_entries(DOTS)
    dots = list(zip(weights.tolist(), entries.tolist(), strict=True))
    return thumbnail([Stroke(dots, network_style("fully-connected").color, dots=True)])
