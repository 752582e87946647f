"""The thumbnail of *Live* on *Home*."""

from linearity_lab.charts.style import model_style
from linearity_lab.charts.vector import Stroke, letters, thumbnail
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.live import PAGE
from linearity_lab.experiments.dynamics.point import DynamicsResult


def card() -> str:
    """Draw the narrowest network and its linear model after training;
    the title of the page without a gallery.
    """
    if not isinstance(result := gallery_result("curves-in-one-dimension"), DynamicsResult):
        return letters(PAGE.title)
    point = min(result.points, key=lambda point: point.width)
    inputs = [x[0] for x in point.x_test]
    return thumbnail(
        [
            Stroke(
                [(x, y[0]) for x, y in zip(inputs, model.test_outputs[-1], strict=True)],
                style.color,
                style.dash,
            )
            for style, model in (
                (model_style("network"), point.runs[0].network),
                (model_style("linearized"), point.runs[0].linearized),
            )
        ]
    )
