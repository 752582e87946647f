"""The thumbnail of *Live* on *Home*."""

from linearity_lab.charts.style import model_style
from linearity_lab.charts.vector import Stroke, letters, thumbnail
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.live import PAGE
from linearity_lab.experiments.dynamics.point import DynamicsResult


def card() -> str:
    """Draw the narrowest network and its linear model after training.

    The title of the page without a gallery.
    """
    if not isinstance(result := gallery_result("curves-in-one-dimension"), DynamicsResult):
        return letters(PAGE.title)
    point = min(result.points, key=lambda point: point.width)
    inputs = [x[0] for x in point.x_test]
    run = point.runs[0]
    strokes = []
    for name, model in (("network", run.network), ("linearized", run.linearized)):
        style = model_style(name)
        outputs = [y[0] for y in model.test_outputs[-1]]
        places = list(zip(inputs, outputs, strict=True))
        strokes.append(Stroke(places, style.color, style.dash))
    return thumbnail(strokes)
