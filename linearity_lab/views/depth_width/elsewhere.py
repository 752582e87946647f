"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Axis, Comparison, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.depth_width import figures
from ntk_core.experiments.depth_width.result import COLUMNS
from ntk_core.experiments.depth_width.spec import DepthWidthSpec

CARD = "depth-width"


def card(result: Any) -> str:
    """ln(E[K²] / E[K]²) against β: one curve."""
    return sketch(figures.lines(result.points, figures.BETA, lambda point: point.log_moment))


def first_chart(result: Any) -> Chart:
    """The scatter of K(x, x) against β."""
    return figures.against_beta(result.points)


def compared(_: DepthWidthSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS, Axis("depth", "depth L", "L"), Axis("beta", "β", "β"))
