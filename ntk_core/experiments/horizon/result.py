"""Results of ``horizon``: when kernel and outputs left the linear model, for each width and regime."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from ntk_core.experiments._trained_sweep import TrainedPoint
from ntk_core.experiments.horizon.spec import HorizonSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.runs import ResultValue, Value, columns, exponent_line
from ntk_core.runs.columns import Column, text_table

DepartureOutcome = Literal["departed", "never", "beyond", "diverged", "dead"]
DEPARTURE_WORDS: dict[str, str] = {
    "departed": "exceeded its threshold",
    "never": "converged below its threshold: it never departs",
    "beyond": "was still below its threshold at the end: a lower bound",
    "diverged": "became infinite or not a number before it departed",
    "dead": "was dead: K(w₀) = 0",
}
REGIME_TITLES = {
    "cross-entropy": "cross-entropy",
    "large-rate": "rate above the stable one",
    "weight-decay": "weight decay",
    "square": "square loss",
}
CLOCKS = {"cross-entropy": "log(1/L)", "large-rate": "steps", "weight-decay": "ημt", "square": "log(1/L)"}
DEPARTURES = ("kernel", "outputs")


class Departure(Value):
    """When a run left its linear model.

    Attributes:
        outcome: one of :data:`DEPARTURE_WORDS`.
        at: the clock at the first crossing of the threshold, or else at the end.
    """

    outcome: DepartureOutcome
    at: float

    @property
    def horizon(self) -> float:
        """The clock at the departure; NaN where it was not seen."""
        return self.at if self.outcome == "departed" else math.nan


def departure(clock: Sequence[float], values: Sequence[float], threshold: float, outcome: str) -> Departure:
    """Return the first crossing of the threshold, log-linear between records, or why there is none."""
    for index, value in enumerate(values):
        if value > threshold:
            if index == 0:
                return Departure(outcome="departed", at=clock[0])
            low, start = values[index - 1], clock[index - 1]
            share = (threshold - low) / (value - low) if low <= 0 else math.log(threshold / low) / math.log(value / low)
            return Departure(outcome="departed", at=start + share * (clock[index] - start))
    ends: dict[str, DepartureOutcome] = {"converged": "never", "diverged": "diverged", "dead": "dead"}
    return Departure(outcome=ends.get(outcome, "beyond"), at=clock[-1] if clock else math.nan)


class HorizonRun(Value):
    """One training of a network and its linear model.

    Attributes:
        regime: one of :data:`REGIME_TITLES`.
        rate: c = ηλ/n; 0 with normalized steps.
        seed: seed of the initialization w₀.
        num_steps: steps taken.
        kernel, outputs: when ΔK and ‖f − f_lin‖ / ‖f_lin‖ exceeded their thresholds.
        log_loss: log L at the end.
        clock: log(1/L), steps or ημt at the kept records, see :data:`CLOCKS`.
        change: ΔK there.
        difference: ‖f − f_lin‖ / ‖f_lin‖ there, on held-out points; of cross-entropy at equal loss, else at equal step.
    """

    regime: str
    rate: float
    seed: int
    num_steps: int
    kernel: Departure
    outputs: Departure
    log_loss: float
    clock: tuple[float, ...]
    change: tuple[float, ...]
    difference: tuple[float, ...]

    @property
    def growth(self) -> float:
        """(c − 1)^(2t) at the departure of the outputs: growth of the squared unstable residual, of the order of m."""
        return (self.rate - 1) ** (2 * self.outputs.horizon) if self.rate > 2 else math.nan

    @property
    def never_departs(self) -> bool:
        """Whether it converged below both thresholds."""
        return self.kernel.outcome == self.outputs.outcome == "never"

    @property
    def last_loss(self) -> float:
        """L at the end; 0 below the least float."""
        return math.exp(self.log_loss)

    @property
    def last_difference(self) -> float:
        """‖f − f_lin‖ / ‖f_lin‖ at the end."""
        return self.difference[-1] if self.difference else math.nan


class HorizonPoint(TrainedPoint):
    """All rates and seeds of one width and regime."""

    line = ("regime", "rate")

    kind: Literal["horizon"] = "horizon"
    regime: str
    runs: tuple[HorizonRun, ...]

    @property
    def key(self) -> str:
        return f"width={self.width},regime={self.regime}"


def _departure_columns(of: str, title: str) -> tuple[Column, Column]:
    return (
        Column(f"{of}_horizon", title, lambda _, run: getattr(run, of).at, columns.with_error,
               counts=lambda run: getattr(run, of).outcome == "departed"),
        Column(f"{of}_outcome", "", lambda _, run: getattr(run, of).outcome),
    )  # fmt: skip


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    Column("regime", "regime", format=REGIME_TITLES.__getitem__, role="line"),
    Column("rate", "c", format=lambda rate: f"c = {rate:g}" if rate else "normalized steps", role="line"),
    columns.SEED,
    Column("clock", "clock", lambda _, run: CLOCKS[run.regime], role="label"),
    *_departure_columns("kernel", "horizon of the kernel"),
    *_departure_columns("outputs", "horizon of the outputs"),
    Column("last_change", "ΔK at the end", lambda _, run: run.change[-1] if run.change else None, columns.with_error),
    Column("last_difference", "‖f − f_lin‖/‖f_lin‖ at the end", format=columns.with_error),
    Column("log_loss", "log L at the end", format=columns.with_error),
    columns.STEPS,
)


class HorizonResult(ResultValue):
    """Result of a ``horizon`` run.

    log(1/L), steps or ημt when ΔK and ‖f − f_lin‖ / ‖f_lin‖ passed their thresholds.

    Source: docs/math/horizon.md.

    >>> from ntk_core.runs.gallery import GALLERY
    >>> result = HorizonResult.model_validate_json((GALLERY / "horizon.json").read_bytes())
    >>> result.points[0].regime, result.points[0].runs[0].num_steps
    ('large-rate', 4)
    """

    columns = COLUMNS
    spec: HorizonSpec
    points: tuple[HorizonPoint, ...]


def rate_law(points: Iterable[HorizonPoint], rate: float, of: str) -> PowerLaw | None:
    """The law whose exponent is the slope of the departure step in ln m: the power law of e^t."""
    runs = [(float(point.width), run) for point in points for run in point.of("large-rate", rate)]
    return fit_runs(runs, lambda run: math.exp(getattr(run, of).horizon), lambda run: True)


def horizon_law(points: Iterable[HorizonPoint], regime: str, rate: float, of: str) -> PowerLaw | None:
    """The power law in m of one horizon, over the runs that departed."""
    runs = [(float(point.width), run) for point in points for run in point.of(regime, rate)]
    return fit_runs(runs, lambda run: getattr(run, of).at, lambda run: getattr(run, of).outcome == "departed")


def horizon_summary(spec: HorizonSpec, points: Sequence[HorizonPoint]) -> str:
    """The table over the seeds, then the exponent of every horizon in m."""
    laws = [
        exponent_line(f"{REGIME_TITLES[name]}{f', c = {rate:g}' * (name == 'large-rate')}: horizon of the {of}", law)
        for name in spec.regimes
        for rate in spec.rates_of(name)
        for of in DEPARTURES
        if (law := horizon_law(points, name, rate, of)) is not None
    ]
    notes = [f"{name}: {words}" for name, words in DEPARTURE_WORDS.items() if name != "departed"]
    return "\n".join([*text_table(COLUMNS, points, _counted), "", *notes, *laws])


def _counted(runs: Sequence[HorizonRun]) -> str:
    counts = [Counter(getattr(run, of).outcome for run in runs) for of in DEPARTURES]
    pairs = [(of, *each) for of, found in zip(DEPARTURES, counts, strict=True) for each in found.items()]
    return ", ".join(f"{of} {n} {outcome}" for of, outcome, n in pairs if outcome != "departed")
