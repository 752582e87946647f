"""Parts of this page elsewhere: overview card."""

from typing import Any

from linearity_lab.charts.style import network_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.views.lecture.exact_figures import diagonal_entries

CARD = ""
DOTS = 120


def card(_: Any) -> str:
    """Draw the entries of a diagonal Hessian."""
    weights, entries = diagonal_entries(DOTS)
    dots = list(zip(weights.tolist(), entries.tolist(), strict=True))
    return thumbnail([Stroke(dots, network_style("fully-connected").color, dots=True)])
