"""Horizons against width, runs along their clock, and departure steps above the stable rate."""

import math
from collections.abc import Sequence
from operator import attrgetter

from linearity_lab.charts.axes import beginning
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.departures import Horizons, horizons_against_width, steps_against_width
from linearity_lab.charts.lines import width_axis
from linearity_lab.charts.style import Style, nth_style
from linearity_lab.charts.sweep import sketch
from linearity_lab.charts.training import Quantity, Row, along_runs
from ntk_core.experiments.horizon import (
    COLUMNS,
    REGIMES,
    HorizonPoint,
    HorizonResult,
    HorizonSpec,
    line_title,
    rate_law,
)
from ntk_core.experiments.trained_sweep import along
from ntk_core.numbers import number, percent
from ntk_core.runs.columns import table_rows

LAW_WORDS = {"cross-entropy": "log(1/L*) ∝ m^({})", "large-rate": "{} steps per unit of ln m"}
Points = Sequence[HorizonPoint]


def style(regime: str, rate: float) -> Style:
    """A regime, and each of its rates above the stable one."""
    place = list(REGIMES).index(regime) + 4 * (rate > 2.75)  # a color for each regime
    return nth_style(place, line_title(regime, rate), "curve")


def horizons(points: Points, of: str) -> dict[tuple[str, float], Horizons]:
    """(regime, rate) → the departures of its runs, in the order of the regimes."""
    order = sorted(occurring(points, "regime", "rate"), key=lambda each: (list(REGIMES).index(each[0]), each[1]))
    return {
        (regime, rate): Horizons(
            style(regime, rate),
            along(points, regime, rate),
            attrgetter(of),
            REGIMES[regime].clock,
            fit=regime in ("cross-entropy", "weight-decay"),  # powers of the width
            law=rate_law(points, rate, of) if regime == "large-rate" else None,
            law_words=LAW_WORDS.get(regime, ""),
            end=attrgetter("last_difference") if regime == "square" else None,
        )
        for regime, rate in order
    }


def against_width(points: Points, spec: HorizonSpec, of: str) -> Chart:
    """Every horizon over its value at the least width."""
    caption = [
        f"Clocks: {', '.join(f'{each.title} {each.clock}' for each in REGIMES.values())}.",
        "Percentages: difference of outputs at convergence, where the horizon is never reached.",
    ]
    found, axis = list(horizons(points, of).values()), width_axis(spec.widths)
    return horizons_against_width(found, axis, name="horizons", caption=caption, rows=table_rows(COLUMNS, points))


def along_clock(points: Points, spec: HorizonSpec, regime: str, width: int) -> Chart:
    """ΔK and the difference of outputs along the clock of one regime and width, the first seed strong."""
    own = [point for point in points if (point.regime, point.width) == (regime, width)]
    runs = [run for point in own for run in point.runs if run.clock]
    ends = [f"seed {run.seed}: ΔK {number(run.change[-1])}, outputs {percent(run.last_difference)}" for run in runs]
    return along_runs(
        runs,
        "clock",
        [
            Quantity("ΔK", "change", Row("ΔK", threshold=spec.kernel_threshold)),
            Quantity("outputs", "difference", Row("outputs", threshold=spec.output_threshold), "‖f − f_lin‖/‖f_lin‖"),
        ],
        lambda run: style(regime, run.rate),
        lambda run: {"c": run.rate, "seed": run.seed},
        x_title=REGIMES[regime].clock,
        log_x=False,
        takeaway=f"{beginning(REGIMES[regime].title)} at width {width:,}, at the end: {'; '.join(ends)}.",
        heading="Along the runs of one width",
    )


def departure_steps(points: Points, widths: Sequence[int]) -> Chart:
    """The step at which outputs depart above the stable rate against ln m, with the predicted slope."""
    above = [point for point in points if point.regime == "large-rate"]
    found = {
        f"c = {rate:g}": (each, 1 / (2 * math.log(rate - 1))) for (_, rate), each in horizons(above, "outputs").items()
    }
    heading, rows = "Departure above the stable rate", table_rows(COLUMNS, above)
    return steps_against_width(found, width_axis(widths), name="departure_steps", heading=heading, rows=rows)


CARD = "horizon"


def card(result: HorizonResult) -> str:
    """Every horizon against width."""
    return sketch(each.line(relative=True) for each in horizons(result.points, "kernel").values())


def first_chart(result: HorizonResult) -> Chart:
    """The horizons of the kernel, or of the outputs where all runs are above the stable rate."""
    return against_width(result.points, result.spec, "outputs" if result.spec.regimes == ("large-rate",) else "kernel")
