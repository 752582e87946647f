"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.kernel_change.figures import change_against_width, change_lines, start_against_width
from ntk_core.experiments.kernel_change.result import COLUMNS
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec

CARD = "liu-fig1-left"


def card(result: Any) -> str:
    """Draw ΔK against width."""
    return sketch(change_lines(result.points).values())


def first_chart(result: Any) -> Chart:
    """Draw ΔK against width, or the velocity of untrained kernels."""
    spec, kind = result.spec, result.spec.architecture.kind
    if spec.trains:
        return change_against_width(result.points, spec.widths, spec.swept, kind)
    return start_against_width(result.points, spec.widths, spec.swept, kind, spec.ball_radius)


def compared(_: KernelChangeSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS)
