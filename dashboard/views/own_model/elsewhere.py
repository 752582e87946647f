"""What others show of a run: its card and its figure on *Results*, and how such runs are compared."""

from dataclasses import replace
from typing import Any

from dashboard.charts.chart import Chart
from dashboard.charts.comparison import WIDTH, Comparison
from dashboard.charts.sweep import sketch
from dashboard.views.kernel_change.elsewhere import MEASURES
from dashboard.views.kernel_change.figures import change_against_width, change_lines
from ntk_core.experiments.own_model.spec import OwnModelSpec


def card(result: Any) -> str:
    """ΔK against width."""
    return sketch(change_lines(result.points).values())


def first_chart(result: Any) -> Chart:
    """ΔK of the runs against width, log–log."""
    chart = change_against_width(result.points, result.spec.widths, with_rates=False)
    return replace(chart, name="own_model", heading="")


def compared(_: OwnModelSpec) -> Comparison:
    """Columns of the rows, by what they show."""
    return Comparison((WIDTH,), MEASURES, ("output",))
