"""Horizons against width, runs along their clock, and departure steps above the stable rate."""

import math
from collections.abc import Sequence
from operator import attrgetter

from linearity_lab.charts.axes import add_level, beginning
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.departures import add_never, add_predicted, departure_line
from linearity_lab.charts.lines import Line, width_axis
from linearity_lab.charts.style import Style, nth_style
from linearity_lab.charts.sweep import sketch, sweep
from linearity_lab.charts.training import Quantity, Row, along_runs
from ntk_core.experiments.horizon import (
    COLUMNS,
    REGIMES,
    HorizonPoint,
    HorizonResult,
    HorizonRun,
    HorizonSpec,
    rate_law,
)
from ntk_core.experiments.trained_sweep import along
from ntk_core.fits import exponent_words
from ntk_core.numbers import number, percent
from ntk_core.runs import mean
from ntk_core.runs.columns import table_rows

LAW_WORDS = {"cross-entropy": "log(1/L*) ∝ m^({})", "large-rate": "{} steps per unit of ln m"}
Points = Sequence[HorizonPoint]


def style(regime: str, rate: float) -> Style:
    """A regime, and each of its rates above the stable one."""
    place = list(REGIMES).index(regime) + 4 * (rate > 2.75)  # a color for each regime
    return nth_style(place, REGIMES[regime].title + f", c = {rate:g}" * (rate > 2), "curve")


def regimes(points: Points) -> list[tuple[str, float]]:
    """(regime, rate) of every line, in the order of the regimes."""
    return sorted(occurring(points, "regime", "rate"), key=lambda each: (list(REGIMES).index(each[0]), each[1]))


def line(points: Points, regime: str, rate: float, of: str, *, relative: bool = True) -> Line:
    """The horizon of one regime, or its ratio to the mean at the least width where it is seen."""
    runs, is_power = along(points, regime, rate), regime in ("cross-entropy", "weight-decay")  # of the width
    clock = REGIMES[regime].clock
    return departure_line(style(regime, rate), runs, attrgetter(of), clock, relative=relative, fit=is_power)


def against_width(points: Points, spec: HorizonSpec, of: str) -> Chart:
    """Every horizon over its value at the least width; arrows at the top for runs that never depart."""
    found = regimes(points)
    lines = [line(points, *each, of) for each in found]
    chart = sweep(
        [each for each in lines if any(math.isfinite(dot.value) or dot.why for dot in each.dots)],
        width_axis(spec.widths), "horizon / at the least width", "horizon", name="horizons",
        caption=[f"Clocks: {', '.join(f'{each.title} {each.clock}' for each in REGIMES.values())}.",
                 "Percentages: difference of outputs at convergence, where the horizon is never reached."],
        rows=table_rows(COLUMNS, points),
        finding=beginning("; ".join(_finding(points, *each, of) for each in found) or "no run has departed yet") + ".",
    )  # fmt: skip
    never = [(width, run) for width, run in along(points, "square") if getattr(run, of).outcome == "never"]
    shares = {at: mean([run.last_difference for width, run in never if width == at]).value for at, _ in never}
    if shares:
        add_never(chart, lines, shares, style("square", 1.0))
    return chart


def _finding(points: Points, regime: str, rate: float, of: str) -> str:
    """One regime in one clause, from its runs."""
    drawn, runs = line(points, regime, rate, of, relative=False), along(points, regime, rate)
    law = rate_law(points, rate, of) if regime == "large-rate" else drawn.law
    found, ends = "no run departs within its budget", [number(average.value) for _, average in drawn.means]
    if regime == "square":
        found = f"{sum(getattr(run, of).outcome == 'never' for _, run in runs)} of {len(runs)} runs never depart"
    elif law and regime in LAW_WORDS:
        found = LAW_WORDS[regime].format(exponent_words(law))
    elif ends:
        found = f"{REGIMES[regime].clock} = {' to '.join(dict.fromkeys((ends[0], ends[-1])))}"
    return f"{drawn.style.title}: {found}"


def along_clock(points: Points, spec: HorizonSpec, regime: str, width: int) -> Chart:
    """ΔK and the difference of outputs along the clock of one regime and width, the first seed strong."""
    own = [point for point in points if (point.regime, point.width) == (regime, width)]
    runs, clock = [run for point in own for run in point.runs if run.clock], REGIMES[regime].clock
    quantities = (
        Quantity[HorizonRun]("ΔK", "change", Row("ΔK")),
        Quantity[HorizonRun]("outputs", "difference", Row("outputs"), "‖f − f_lin‖/‖f_lin‖"),
    )
    figure, table = along_runs(
        runs, "clock", quantities, lambda run: style(regime, run.rate), lambda run: {"c": run.rate, "seed": run.seed},
        x_title=clock, log_x=False,
    )  # fmt: skip
    for row, level in enumerate((spec.kernel_threshold, spec.output_threshold), start=1):
        add_level(figure, level, f"threshold {level:g}", row=row)
    ends = [f"seed {run.seed}: ΔK {number(run.change[-1])}, outputs {percent(run.last_difference)}" for run in runs]
    caption = f"{beginning(REGIMES[regime].title)} at width {width:,}, at the end: {'; '.join(ends)}."
    return Chart(figure, caption, table, name="along", heading="Along the runs of one width")


def departure_steps(points: Points, widths: Sequence[int]) -> Chart:
    """The step at which outputs depart above the stable rate against ln m, with the predicted slope."""
    above = [point for point in points if point.regime == "large-rate"]
    lines = {rate: line(above, regime, rate, "outputs", relative=False) for regime, rate in regimes(above)}
    fitted = {rate: law for rate, drawn in lines.items() if drawn.means and (law := rate_law(above, rate, "outputs"))}
    predicted = {rate: 1 / (2 * math.log(rate - 1)) for rate in fitted}
    slopes = [
        f"c = {rate:g}: {exponent_words(law)} steps per unit of ln m, predicted {predicted[rate]:.2f}"
        for rate, law in fitted.items()
    ]
    found = [f"{beginning('; '.join(slopes))}."] if slopes else []
    chart = sweep(
        list(lines.values()), width_axis(widths), "step at which outputs depart", "step", is_log=False,
        name="departure_steps", heading="Departure above the stable rate", caption=found,
        rows=table_rows(COLUMNS, above), finding="".join(found),
    )  # fmt: skip
    for rate, slope in predicted.items():
        add_predicted(chart, lines[rate], slope)
    return chart


CARD = "horizon"


def card(result: HorizonResult) -> str:
    """Every horizon against width."""
    return sketch(line(result.points, *each, "kernel") for each in regimes(result.points))


def first_chart(result: HorizonResult) -> Chart:
    """The horizons of the kernel, or of the outputs where all runs are above the stable rate."""
    return against_width(result.points, result.spec, "outputs" if result.spec.regimes == ("large-rate",) else "kernel")
