"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Axis, Comparison, Values, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.generalization import figures
from ntk_core.experiments.generalization.result import COLUMNS
from ntk_core.experiments.generalization.spec import GeneralizationSpec
from ntk_core.experiments.generalization.summary import measured
from ntk_core.runs import ResultValue

CARD = "price-of-linearity"


def card(result: Any) -> str:
    """Draw the test loss of lazy and rich networks and of their kernel against width."""
    return sketch(figures.lines(result.points, lambda point: point.width, "loss")[:3])


def first_chart(result: Any) -> Chart:
    """Draw test error or loss against width, with the largest number of training points."""
    most = figures.at(result.points, samples=result.spec.counts[-1])
    return figures.against(most, result.spec, measured(result.points))


def _most_samples(row: Values, result: ResultValue) -> bool:
    return row["num_samples"] == result.spec.counts[-1]  # type: ignore[attr-defined]


def _widest(row: Values, result: ResultValue) -> bool:
    return row["width"] == result.spec.widths[-1]  # type: ignore[attr-defined]


def compared(_: GeneralizationSpec) -> Comparison:
    """Return how runs are compared."""
    widths, points = (
        Axis("width", "width m", keep=_most_samples),
        Axis("num_samples", "training points n", "n", _widest),
    )
    return compared_by(COLUMNS, widths, points)
