"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.comparison import Axis, Comparison, Values, compared_by
from linearity_lab.charts.style import network_style
from linearity_lab.charts.sweep import sketch
from linearity_lab.views.lazy import dial
from linearity_lab.views.lazy import figures as lazy
from ntk_core.experiments.lazy.result import COLUMNS
from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.runs import ResultValue

CARD = "liu-lazy"


def card(result: Any) -> str:
    """Draw ΔK of two outputs with the same weights."""
    output, start = lazy.nonlinear(result.points), occurring(result.points, "start")[0]
    shown = (("linear", lazy.BEHIND_F), (output, lazy.CHANGE))
    return sketch(
        lazy.line(result.points, "width", output, start, measure, network_style("fully-connected", name))
        for name, measure in shown
    )


def first_chart(result: Any) -> Chart:
    """Draw ΔK along ρ, the scale or the width, with the first nonlinear output."""
    points, output, start = result.points, lazy.nonlinear(result.points), occurring(result.points, "start")[0]
    if result.spec.richness:
        return dial.against_width(points, output, start, lazy.CHANGE)
    return lazy.against(points, "scale" if set(result.spec.scales) != {1.0} else "width", output, lazy.CHANGE)


def _unscaled(row: Values, _: ResultValue) -> bool:
    return row["scale"] == 1


def _narrowest(row: Values, result: ResultValue) -> bool:
    return not row["richness"] and row["width"] == result.spec.widths[0]  # type: ignore[attr-defined]


def compared(_: LazySpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS, Axis("scale", "scale α", "α", _narrowest), Axis("width", "width m", keep=_unscaled))
