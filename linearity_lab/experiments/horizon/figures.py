"""Horizons against width, and runs along their clock."""

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.departures import Points, against_width, style
from linearity_lab.charts.training import Quantity, Row, along_runs
from linearity_lab.experiments.horizon.point import REGIMES, HorizonResult, HorizonSpec, RegimeLine


def along_clock(points: Points, spec: HorizonSpec, regime: str, width: int) -> Chart:
    """Draw ΔK and the difference of outputs along the clock of one regime and width; the first seed is strong."""
    kernel = Row("ΔK", threshold=spec.kernel_threshold)
    outputs = Row("outputs", threshold=spec.output_threshold)
    return along_runs(
        [
            run
            for point in points
            if (point.regime, point.width) == (regime, width)
            for run in point.runs
            if run.clock
        ],
        "clock",
        [
            Quantity("ΔK", "change", kernel),
            Quantity("outputs", "difference", outputs, "‖f − f_lin‖/‖f_lin‖"),
        ],
        lambda run: style(RegimeLine(regime, run.rate)),
        lambda run: {"c": run.rate, "seed": run.seed},
        x_title=REGIMES[regime].clock,
        log_x=False,
    )


def first_chart(result: HorizonResult) -> Chart:
    """Draw the horizons of the initially shown departure."""
    return against_width(result.points, result.spec, result.spec.departures[0])
