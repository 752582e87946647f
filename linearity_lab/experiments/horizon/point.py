"""How long networks follow their linear models, in four regimes of training."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, NonNegativeInt

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.departures import Departure, departure_columns, departure_summary
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedSweep, along
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    Counts,
    Experiment,
    ResultValue,
    SpecOf,
    Value,
    columns,
    typical_steps,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Ascending, Once, Width, one_of
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.stored_numbers import NonNegative
from ntk_core.terms import Term, table

DECAY_END = 2.0  # in ημt, where the data no longer matter
DEPARTURES = ("kernel", "outputs")
RATE_STEPS = 200  # at most, above the stable rate; the linear model then exceeds any threshold


@dataclass(frozen=True, kw_only=True)
class Regime(Term):
    """One regime of training.

    Attributes:
        clock: unit of horizons.
        every: steps between records; 0: an eighth of all steps so far.
        typical_steps: measured steps of a run.
        rate: c = ηλ/n; 0 with normalized steps. The spec sets rates above the stable one.
    """

    clock: str = "log(1/L)"
    every: int
    typical_steps: int
    rate: float = 0.0

    def stretch(self, step: int) -> int:
        """Return the steps from this one to the next record."""
        return self.every or max(1, step // 8)


REGIMES = table(
    Regime(
        "cross-entropy",
        "cross-entropy",
        "normalized steps along −∇ log L",
        every=5,
        typical_steps=1500,
    ),
    Regime(
        "large-rate",
        "rate above the stable one",
        "c = η/η₀ > 2",
        clock="steps",
        every=1,
        typical_steps=20,
    ),
    Regime(
        "weight-decay",
        "weight decay",
        "w ← (1 − ημ) w − η ∇L",
        clock="ημt",
        every=10,
        typical_steps=2000,
        rate=0.5,
    ),
    Regime("square", "square loss", "c = η/η₀ = 1", every=0, typical_steps=2000, rate=1.0),
)
if TYPE_CHECKING:
    RegimeName = str
else:
    RegimeName = one_of(REGIMES)


class HorizonSpec(TrainedSweep, SpecOf["HorizonResult"]):
    """When networks leave their linear models during training.

    Kernels and outputs f − f(w₀) are compared with those of the linear model, in float64.

    The kernel departs when ΔK exceeds its threshold; the outputs depart when ‖f − f_lin‖ / ‖f_lin‖
    does on held-out points. Each regime has its own clock: log(1/L), steps, or ημt.

    Source: docs/math/horizon.md; after Lewkowycz et al. 2020, Lewkowycz & Gur-Ari
    2020, Lyu & Li 2020.

    >>> HorizonSpec(widths=(64,), regimes=("square", "large-rate")).point_keys()
    ('width=64,regime=square', 'width=64,regime=large-rate')
    """

    float_type: ClassVar[str] = "float64"
    one_output: ClassVar[bool] = True
    needs_classes: ClassVar = {"regimes": ("cross-entropy", "square")}
    max_kernel_rows: ClassVar[int | None] = 400
    key_parts: ClassVar = {"width": int, "regime": str}
    point_words: ClassVar[tuple[str, str]] = (
        "pair of width and regime",
        "pairs of width and regime",
    )

    experiment: Literal["horizon"] = "horizon"
    dataset: DatasetSpec = DatasetSpec(
        num_samples=20, num_classes=2, noise=1.0, standardize="unit-norm"
    )
    architecture: ArchitectureSpec = ArchitectureSpec(activation="relu", use_bias=False)
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (64, 160, 400, 1000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    regimes: Annotated[tuple[RegimeName, ...], Once] = Field(
        default=("large-rate", "weight-decay", "square", "cross-entropy"),
        min_length=1,
        max_length=4,
        title="Regimes",
    )
    """Cross-entropy to tiny losses, a rate above the stable one, weight decay,
    or the square loss at a stable rate.
    """
    scale: float = Field(default=1.414, ge=1e-3, le=1e4, title="Scale α")
    """Factor α in front of f: about √2 keeps activations of a ReLU layer at their size."""
    kernel_threshold: float = Field(default=0.3, gt=0, le=10, title="Threshold of ΔK")
    """The kernel departs where ΔK first exceeds this."""
    output_threshold: float = Field(default=0.3, gt=0, le=10, title="Threshold of the outputs")
    """The outputs depart where ‖f − f_lin‖ / ‖f_lin‖ first exceeds this, on held-out points."""
    rates: Annotated[tuple[Annotated[float, Field(gt=2, lt=4)], ...], Ascending] = Field(
        default=(2.5,), min_length=1, max_length=4, title="Learning rates c = η/η₀"
    )
    """Rates η in units of η₀ = n/λ_max(K(w₀)), c = η/η₀, above the stable one, 2;
    targets are raised by 1.
    """
    decay: float = Field(default=1e-3, gt=0, le=0.01, title="Weight decay ημ")
    """Share ημ of every trained weight that weight decay removes per step."""
    max_log_loss: float = Field(default=20.0, gt=0, le=100, title="Largest log(1/L)")
    """Training with cross-entropy stops at this log(1/L)."""
    loss_threshold: float = Field(default=1e-4, gt=0, le=10, title="Loss threshold")
    """Training with the square loss stops below this mean loss."""
    max_steps: int = Field(default=5_000, ge=1, le=1_000_000, title="Maximum steps")
    """Longer runs are stopped; their horizon is then a lower bound."""
    num_test: int = Field(default=100, ge=1, le=2000, title="Test points")
    """Held-out inputs at which outputs are compared."""

    def point_keys(self) -> tuple[str, ...]:
        """``width=100,regime=square``: every regime at the smallest width, then at the next one."""
        return tuple(
            f"width={width},regime={name}" for width in self.widths for name in self.regimes
        )

    def rates_of(self, regime: str) -> tuple[float, ...]:
        """c = ηλ/n of every line; 0 for cross-entropy, whose steps are normalized."""
        return self.rates if regime == "large-rate" else (REGIMES[regime].rate,)

    @property
    def departures(self) -> tuple[str, ...]:
        """Departures of a run; outputs first if all rates are above the stable one."""
        return DEPARTURES[::-1] if self.regimes == ("large-rate",) else DEPARTURES

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per learning rate of the regime and seed."""
        _, regime = self.value_of(key)
        return {"runs": len(self.rates_of(regime)) * self.num_seeds}

    def most_steps(self, regime: str) -> int:
        """Largest number of steps of a run."""
        most = {"large-rate": RATE_STEPS, "weight-decay": round(DECAY_END / self.decay)}
        return min(self.max_steps, most.get(regime, self.max_steps))


def counts(spec: HorizonSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width and regime with all rates and seeds.

    A step, a kernel and outputs at each record.
    """
    width, name = spec.value_of(key)
    network = spec.counted(width)
    steps = typical_steps(spec.most_steps(name), most, REGIMES[name].typical_steps)
    records = steps / REGIMES[name].stretch(steps // 8)
    with_test = 1 + network.num_test / network.num_samples
    num_runs = len(spec.rates_of(name)) * spec.num_seeds
    work = 6 * steps + records * with_test  # in float64, with the steps of the linear model
    of_run = Counts(
        network, {"training": 2}, num_runs, steps=work, kernels=2 * records, copies=10, views=3
    )
    return (replace(of_run, matrices=20 * with_test),)


class HorizonRun(Value):
    """One training of a network and its linear model.

    Attributes:
        regime: one of :data:`REGIMES`.
        rate: c = ηλ/n; 0 with normalized steps.
        seed: seed of the initialization w₀.
        num_steps: steps taken.
        kernel, outputs: when ΔK and ‖f − f_lin‖ / ‖f_lin‖ exceeded their thresholds.
        log_loss: log L at the end.
        clock: log(1/L), steps or ημt at the kept records.
        change: ΔK there.
        difference: ‖f − f_lin‖ / ‖f_lin‖ there, on held-out points; of cross-entropy at equal
            loss, else at equal step.
    """

    recorded_at: ClassVar[str] = "clock"

    regime: str
    rate: NonNegative
    seed: NonNegativeInt
    num_steps: NonNegativeInt
    kernel: Departure
    outputs: Departure
    log_loss: float
    clock: tuple[float, ...]
    change: tuple[NonNegative, ...]
    difference: tuple[NonNegative, ...]

    @property
    def growth(self) -> float:
        """(c − 1)^(2t) at the departure of the outputs.

        Growth of the squared unstable residual, of the order of m.
        """
        return (self.rate - 1) ** (2 * self.outputs.horizon) if self.rate > 2 else math.nan

    @property
    def never_departs(self) -> bool:
        """Whether it converged below both thresholds."""
        return self.kernel.outcome == self.outputs.outcome == "never"

    @property
    def last_difference(self) -> float:
        """‖f − f_lin‖ / ‖f_lin‖ at the end."""
        return self.difference[-1] if self.difference else math.nan


class HorizonPoint(TrainedPoint[HorizonRun]):
    """All rates and seeds of one width and regime."""

    line = ("regime", "rate")
    key_parts = HorizonSpec.key_parts

    kind: Literal["horizon"] = "horizon"
    regime: str


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    Column("regime", "regime", format=lambda name: REGIMES[name].title, role="line"),
    Column(
        "rate",
        "c",
        format=lambda rate: f"c = {rate:g}" if rate else "normalized steps",
        role="line",
    ),
    columns.SEED,
    Column("clock", "clock", lambda _, run: REGIMES[run.regime].clock, role="label"),
    *departure_columns("kernel"),
    *departure_columns("outputs"),
    Column(
        "last_change",
        "ΔK at the end",
        lambda _, run: run.change[-1] if run.change else None,
        columns.with_error,
    ),
    Column("last_difference", "‖f − f_lin‖/‖f_lin‖ at the end", format=columns.with_error),
    Column("log_loss", "log L at the end", format=columns.with_error),
    columns.STEPS,
)


class HorizonResult(ResultValue):
    """Result of a ``horizon`` run.

    log(1/L), steps or ημt when ΔK and ‖f − f_lin‖ / ‖f_lin‖ passed their thresholds.

    Source: docs/math/horizon.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = HorizonResult.model_validate_json((GALLERY / "horizon.json").read_bytes())
    >>> result.points[0].regime, result.points[0].runs[0].num_steps
    ('large-rate', 4)
    """

    columns = COLUMNS
    spec: HorizonSpec
    points: tuple[HorizonPoint, ...]


class RegimeLine(NamedTuple):
    """One line of figures: a regime, or one of its rates above the stable one."""

    regime: str
    rate: float

    @property
    def title(self) -> str:
        """The regime, or its rate above the stable one."""
        return f"rate c = {self.rate:g}" if self.rate > 2 else REGIMES[self.regime].title

    @property
    def slope(self) -> float | None:
        """Predicted increase of the outputs' departure step per unit of ln m.

        None at stable rates.
        """
        return 1 / (2 * math.log(self.rate - 1)) if self.rate > 2 else None


def lines(points: Sequence[HorizonPoint]) -> dict[RegimeLine, list[tuple[float, HorizonRun]]]:
    """(width, run) of every line, in the order of the regimes."""
    found = {RegimeLine(run.regime, run.rate) for point in points for run in point.runs}
    order = sorted(found, key=lambda line: (list(REGIMES).index(line.regime), line.rate))
    return {line: along(points, *line) for line in order}


def rate_law(points: Iterable[HorizonPoint], rate: float, of: str) -> PowerLaw | None:
    """Fit e^t against m: the exponent is the slope of the departure step in ln m."""
    return fit_runs(
        along(points, "large-rate", rate),
        lambda run: math.exp(getattr(run, of).horizon),
        lambda run: True,
    )


def horizon_summary(spec: HorizonSpec, points: Sequence[HorizonPoint]) -> str:
    """Return the table of all regimes and the exponents of their horizons."""
    return departure_summary(
        COLUMNS, points, DEPARTURES, {line.title: runs for line, runs in lines(points).items()}
    )


EXPERIMENT = Experiment(
    HorizonSpec, HorizonPoint, HorizonResult, counts, horizon_summary, record_bytes=3500
)
