"""Horizons against width, runs along their clock, and departure steps above the stable rate."""

from collections.abc import Sequence

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.departures import Horizons, horizons_against_width, steps_against_width
from linearity_lab.charts.lines import width_axis
from linearity_lab.charts.style import Style, nth_style
from linearity_lab.charts.training import Quantity, Row, along_runs
from ntk_core.experiments.horizon import COLUMNS, REGIMES, HorizonPoint, HorizonResult, HorizonSpec, RegimeLine, lines
from ntk_core.runs.columns import table_rows

Points = Sequence[HorizonPoint]


def style(line: RegimeLine) -> Style:
    """Return one color per regime; rates near 3 have another dash."""
    return nth_style(list(REGIMES).index(line.regime) + 4 * (line.rate > 2.75), line.title, "curve")


def horizons(points: Points, of: str) -> dict[RegimeLine, Horizons]:
    """Return the departures of every line."""
    return {
        line: Horizons(style(line), runs, of, REGIMES[line.regime].clock, line.slope)
        for line, runs in lines(points).items()
    }


def against_width(points: Points, spec: HorizonSpec, of: str) -> Chart:
    """Draw every horizon relative to its value at the smallest width."""
    return horizons_against_width(horizons(points, of).values(), width_axis(spec.widths), table_rows(COLUMNS, points))


def along_clock(points: Points, spec: HorizonSpec, regime: str, width: int) -> Chart:
    """Draw ΔK and the difference of outputs along the clock of one regime and width; the first seed is strong."""
    kernel = Row("ΔK", threshold=spec.kernel_threshold)
    outputs = Row("outputs", threshold=spec.output_threshold)
    return along_runs(
        [run for point in points if (point.regime, point.width) == (regime, width) for run in point.runs if run.clock],
        "clock",
        [Quantity("ΔK", "change", kernel), Quantity("outputs", "difference", outputs, "‖f − f_lin‖/‖f_lin‖")],
        lambda run: style(RegimeLine(regime, run.rate)),
        lambda run: {"c": run.rate, "seed": run.seed},
        x_title=REGIMES[regime].clock,
        log_x=False,
    )


def departure_steps(points: Points, widths: Sequence[int]) -> Chart:
    """Draw the departure step of outputs above the stable rate against ln m, with the predicted slope."""
    above = [point for point in points if point.regime == "large-rate"]
    return steps_against_width(horizons(above, "outputs").values(), width_axis(widths), table_rows(COLUMNS, above))


def first_chart(result: HorizonResult) -> Chart:
    """Draw the horizons of the initially shown departure."""
    return against_width(result.points, result.spec, result.spec.departures[0])
