"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.learning_rate.figures import peaks, style
from ntk_core.experiments.learning_rate.result import COLUMNS
from ntk_core.experiments.learning_rate.spec import LearningRateSpec

CARD = "catapult-map"


def card(result: Any) -> str:
    """The peak of the loss against width at the rate nearest 3, of the models that come down."""
    rate = min(result.spec.rates, key=lambda each: abs(each - 3))
    return sketch(
        Line(style(model), [Dot(p.width, run.peak, run.seed) for p in result.points for run in p.of(model, rate)])
        for model in ("quadratic", "network")
    )


def first_chart(result: Any) -> Chart:
    """How high the loss rises, at the rate nearest 3."""
    spec = result.spec
    return peaks(result.points, spec.widths, spec.models, min(spec.rates, key=lambda each: abs(each - 3)))


def compared(_: LearningRateSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS)
