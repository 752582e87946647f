"""The thumbnail of *Live* on *Home*."""

from linearity_lab.charts.style import model_style
from linearity_lab.charts.vector import Stroke, thumbnail
from ntk_core.experiments.dynamics import DynamicsResult

CARD = "curves-in-one-dimension"


def card(result: DynamicsResult) -> str:
    """Draw the narrowest network and its linear model after training."""
    point = min(result.points, key=lambda point: point.width)
    run = point.runs[0]
    inputs = [x[0] for x in point.x_test]
    return thumbnail(
        [
            Stroke(
                list(zip(inputs, (y[0] for y in model.test_outputs[-1]), strict=True)), model_style(name).color, dash
            )
            for name, model, dash in (("network", run.network, "solid"), ("linearized", run.linearized, "dash"))
        ]
    )
