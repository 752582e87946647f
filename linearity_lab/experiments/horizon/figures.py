"""Horizons against width, and runs along their clock."""

from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.choices import Choice, width_choice
from linearity_lab.charts.departures import HorizonPoints, against_width, departure_steps, style
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.training import Quantity, Row, along_runs
from linearity_lab.experiments.horizon.point import (
    REGIMES,
    HorizonPoint,
    HorizonRun,
    HorizonSpec,
    RegimeLine,
)

Runs = Shown[HorizonSpec, HorizonPoint]


def along_clock(points: HorizonPoints, spec: HorizonSpec, regime: str, width: int) -> Chart:
    """Draw ΔK and the difference of outputs along the clock of one regime and width.

    The first seed is strong.
    """
    kernel = Row("ΔK", threshold=spec.kernel_threshold)
    outputs = Row("outputs", threshold=spec.output_threshold)
    runs: list[HorizonRun] = []
    for point in points:
        if (point.regime, point.width) == (regime, width):
            runs += [run for run in point.runs if run.clock]
    return along_runs(
        runs,
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


def _choices(shown: Runs) -> list[Choice]:
    regimes = occurring(shown.points, "regime")
    return [
        Choice("departure", "Departure of", shown.spec.departures, "by the {}".format),
        width_choice(shown.points, is_rare=True),
        Choice(
            "regime",
            "Run",
            regimes,
            lambda name: REGIMES[name].title,
            220,
            begins=-1,
            is_rare=True,
        ),
    ]


def _horizons(shown: Runs, of: str, width: int, regime: str) -> Chart:
    return against_width(shown.points, shown.spec, of)


def _along_clock(shown: Runs, of: str, width: int, regime: str) -> Chart:
    return along_clock(shown.points, shown.spec, regime, width)


FIGURES = (
    Figure("horizons", "Against width", choices=[_choices], draw=_horizons),
    Figure("along", "Along training", choices=[_choices], draw=_along_clock),
    Figure(
        "departure_steps",
        "Departure above the stable rate",
        draw=lambda shown: departure_steps(shown.points, shown.spec.widths),
        has_data=lambda shown: "large-rate" in shown.spec.regimes,
    ),
)
