"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.style import GUIDE_COLOR, network_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.views.optimization.figures import loss_against_step, slow_runs
from ntk_core.experiments.optimization.result import COLUMNS
from ntk_core.experiments.optimization.spec import OptimizationSpec

CARD = "liu-section5"


def card(result: Any) -> str:
    """The loss below its bound."""
    run = slow_runs(result.points[-1], "leaky_softplus")[0]
    color = network_style("fully-connected", "leaky_softplus").color
    lines = [(run.loss, color, "solid"), (run.pl_bound() or (), GUIDE_COLOR, "dash")]
    return thumbnail(
        [Stroke(list(zip(run.steps, values, strict=False)), color, dash) for values, color, dash in lines], log_y=True
    )


def first_chart(result: Any) -> Chart:
    """The loss at the largest width and its bound, with the first output."""
    point = result.points[-1]
    return loss_against_step(point, point.runs[0].output)


def compared(_: OptimizationSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS)
