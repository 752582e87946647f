"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.style import model_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.views.dynamics.figures import difference_against_time
from ntk_core.experiments.dynamics.result import COLUMNS
from ntk_core.experiments.dynamics.spec import DynamicsSpec

CARD = "curves-in-one-dimension"


def card(result: Any) -> str:
    """Network and linear model as functions of the input."""
    point = min(result.points, key=lambda point: point.width)
    run = point.runs[0]
    return thumbnail(
        [
            Stroke(
                [(x[0], y[0]) for x, y in zip(point.x_test, model.test_outputs[-1], strict=True)],
                model_style(name).color,
                dash,
            )
            for name, model, dash in (("network", run.network, "solid"), ("linearized", run.linearized, "dash"))
        ]
    )


def first_chart(result: Any) -> Chart:
    """Draw the difference of network and linear model for the first method."""
    method = result.points[0].runs[0].method
    return difference_against_time(result.points, method, "step", result.spec.architecture.kind)


def compared(_: DynamicsSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS)
