"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Axis, Comparison, compared_by
from linearity_lab.charts.style import model_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.views.early_time.figures import along_steps
from linearity_lab.views.early_time.sweep_figures import kernel_distance
from ntk_core.experiments.early_time.result import KERNELS, STEPS
from ntk_core.experiments.early_time.spec import EarlyTimeSpec

CARD = "hu-fig3"
SWEPT = {"width": Axis("width", "width m"), "input_dim": Axis("input_dim", "dimension d", "d")}


def card(result: Any) -> str:
    """Losses of network and linear model."""
    run = result.points[-1].runs[0]
    return thumbnail(
        [
            Stroke(list(zip(run.steps[1:], model.test_loss[1:], strict=True)), model_style(name).color, dash)
            for name, model, dash in (("network", run.network, "solid"), ("linear", run.linear, "dash"))
        ],
        log_x=True,
    )


def first_chart(result: Any) -> Chart:
    """Draw the test loss of network and linear model, or the distance of kernels without training."""
    trained = [point for point in result.points if point.runs]
    if not trained:
        return kernel_distance(result.points)
    return along_steps(trained[-1], trained[-1].of(trained[-1].runs[0].activation), "test loss")


def compared(spec: EarlyTimeSpec) -> Comparison:
    """Compare along training, or kernels against the swept setting without training."""
    if spec.training.max_steps == 0:
        return compared_by([each for each in KERNELS if each.name != spec.swept], SWEPT[spec.swept])
    return compared_by(STEPS, Axis("step", "step", "step", along_time=True))
