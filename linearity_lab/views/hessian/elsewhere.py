"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Axis, Comparison, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.hessian.figures import against_width, norm_lines
from ntk_core.experiments.hessian.result import COLUMNS
from ntk_core.experiments.hessian.spec import HessianSpec

CARD = "liu-table1"


def card(result: Any) -> str:
    """‖H‖ of three networks against width."""
    lines = norm_lines(result.points)
    return sketch(lines[name] for name in ("fully-connected", "fully-connected-swish", "bottleneck"))


def first_chart(result: Any) -> Chart:
    """‖H‖ against width."""
    return against_width(result.points)


def compared(spec: HessianSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS, Axis("m", "tokens T" if spec.swept == "num_tokens" else "width m"))
