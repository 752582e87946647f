"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import WIDTH, Axis, Comparison, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.dag.figures import axes_of, change_lines, charts
from ntk_core.experiments.dag.result import COLUMNS
from ntk_core.experiments.dag.spec import DAGSpec

CARD = "zhu-bottleneck-neurons"


def card(result: Any) -> str:
    """ΔK of the graphs against width."""
    return sketch(change_lines(result.points).values())


def first_chart(result: Any) -> Chart:
    """ΔK against the in-degree or the width."""
    return charts(result.points, result.spec.widths, axes_of(result.points)[0])[0]


def compared(_: DAGSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS, WIDTH, Axis("min_in_degree", "smallest in-degree"))
