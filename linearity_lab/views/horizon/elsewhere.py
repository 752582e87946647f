"""What others show of this page: its card on the overview, its first figure, and how its runs are compared."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.horizon.figures import against_width, line, regimes
from ntk_core.experiments.horizon.result import COLUMNS
from ntk_core.experiments.horizon.spec import HorizonSpec

CARD = "horizon"


def card(result: Any) -> str:
    """Every horizon against width."""
    return sketch(line(result.points, *each, "kernel") for each in regimes(result.points))


def first_chart(result: Any) -> Chart:
    """The horizons of the kernel, or of the outputs where all runs are above the stable rate."""
    return against_width(result.points, result.spec, "outputs" if result.spec.regimes == ("large-rate",) else "kernel")


def compared(_: HorizonSpec) -> Comparison:
    """How runs are laid over each other."""
    return compared_by(COLUMNS)
