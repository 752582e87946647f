"""Results of *Learning rate*.

Linear, quadratic and true models are trained at rates below and above the stable one.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedSweep, along
from linearity_lab.networks.spec import ArchitectureSpec, OutputName
from linearity_lab.runs import (
    Counted,
    Counts,
    Experiment,
    ResultValue,
    SpecOf,
    Value,
    Work,
    between,
    columns,
    finite_sup,
)
from linearity_lab.runs.columns import Column, text_table
from linearity_lab.settings.part import Ascending, Once, Width
from linearity_lab.settings.training import (
    USUAL_LOSS,
    AnyLossName,
    LinearMethodName,
    check_targets,
)
from ntk_core.dynamics.choices import METHODS
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw, fit_runs, law_words
from ntk_core.stored_numbers import NonNegative

ModelName = Literal["linear", "quadratic", "network"]


class LearningRateSpec(TrainedSweep, SpecOf["LearningRateResult"]):
    """Gradient descent at large rates, of networks and their expansions.

    η = c n / (β λ_max(K(w₀))); f, f_lin and f_quad start at the same w₀ and take the same steps.

    f_lin diverges above c = 2 at every width; up to about 4, f_quad and f catapult and recover at
    a smaller curvature.

    Source: Lewkowycz, Bahri, Dyer, Sohl-Dickstein & Gur-Ari 2020, §2; Zhu, Liu,
    Radhakrishnan & Belkin 2022.

    >>> LearningRateSpec(widths=(100, 300), rates=(1.0, 3.0)).point_keys()
    ('width=100', 'width=300')
    """

    one_output: ClassVar[bool] = True
    needs_classes: ClassVar = {"output": ("softmax", "linear")}
    max_kernel_rows: ClassVar[int | None] = 400
    selector: ClassVar[str] = "method"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "batch_size": tuple(name for name, each in METHODS.items() if each.batches == "always"),
        "momentum": tuple(name for name, each in METHODS.items() if each.takes_momentum),
    }

    experiment: Literal["learning_rate"] = "learning_rate"
    dataset: DatasetSpec = DatasetSpec(num_samples=10, num_classes=2, noise=1.0)
    architecture: ArchitectureSpec = ArchitectureSpec(activation="relu", use_bias=False)
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (100, 300, 1000, 3000, 10_000))
    num_seeds: int = TrainedSweep.field("num_seeds", 3)
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=100)], ...], Ascending] = Field(
        default=(0.5, 1.0, 1.5, 1.8, 2.2, 2.5, 3.0, 3.5, 3.8, 4.2, 5.0, 6.0),
        min_length=1,
        max_length=32,
        title="Learning rates c = η/η₀",
    )
    """Learning rates η in units of η₀ = n/(β λ_max(K(w₀))), c = η/η₀:
    the linear model diverges above 2.
    """
    models: Annotated[tuple[ModelName, ...], Once] = Field(
        default=("linear", "quadratic", "network"), min_length=1, max_length=3, title="Models"
    )
    """The linear model, the quadratic model, and the network itself, from the same w₀."""
    output: OutputName = Field(default="linear", title="Output φ")
    """Output nonlinearity φ; cross-entropy for softmax, the square loss of φ(f) otherwise."""
    loss: AnyLossName = Field(default=USUAL_LOSS, title="Loss")
    """Training loss of the output."""
    method: LinearMethodName = Field(default="gradient-descent", title="Method")
    """Methods with a stable rate:
    all samples in each step, batches redrawn each epoch, or momentum.
    """
    momentum: float = Field(default=0.9, ge=0, lt=1, title="Momentum μ")
    """Fraction μ of the last step that momentum keeps. It multiplies η₀ by 1 + μ."""
    batch_size: int = Field(default=5, ge=1, le=10_000, title="Batch size")
    """Samples per step."""
    loss_threshold: float = Field(default=0.001, gt=0, le=10, title="Loss threshold")
    """Training stops below this mean loss."""
    max_steps: int = Field(default=300, ge=1, le=100_000, title="Maximum steps")
    """Longer runs are stopped and marked."""
    keep_paths: bool = Field(default=False, title="Follow along training")
    """Keep loss, curvature, distance and kernel change along the runs of the first seed."""
    keep_curvature: bool = Field(default=False, title="Edge of stability")
    """Keep the largest curvature of every run, and predict it from the run at the smallest rate."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.shapes()
        if self.loss != USUAL_LOSS and shapes is not None:
            has_classes = bool(shapes.class_names)
            check_targets(self.loss, has_classes=has_classes, num_outputs=shapes.num_outputs)
        if self.takes_batches and self.batch_size > self.dataset.num_points:
            allowed = f"at most {self.dataset.num_points}, the number of samples"
            raise InvalidInput("batch_size", self.batch_size, allowed)
        return self

    @property
    def takes_batches(self) -> bool:
        """Whether each step takes a batch of the samples."""
        return METHODS[self.method].batches == "always"

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per model, learning rate and seed."""
        return {"runs": len(self.models) * len(self.rates) * self.num_seeds}


DENSE_RECORDS = 100  # first steps, all recorded so that no peak is missed
TOGETHER_BYTES = 2**30  # of runs that train simultaneously
_STEPS_OF = {"linear": 0, "quadratic": 4, "network": 1}  # cost of a step, in steps of the network
_PROGRAMS = {"linear": "linear model", "quadratic": "many trainings", "network": "many trainings"}


def counts(spec: LearningRateSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width, all models, rates and seeds; always all steps."""
    network = spec.counted(spec.value_of(key))
    runs = len(spec.rates) * spec.num_seeds
    return tuple(_of_model(spec, network, model, runs) for model in spec.models)


def _of_model(spec: LearningRateSpec, network: Counted, model: str, runs: int) -> Counts:
    records = min(spec.max_steps, DENSE_RECORDS) + DENSE_RECORDS
    group = together(spec, network, model)
    held = _held(network, model)
    trains = model != "linear"
    has_curvatures = spec.keep_paths or spec.keep_curvature
    jacobians = (records if has_curvatures else 1) * network.kernel_rows
    at_once = min(runs, group)
    groups = -(-runs // group)
    return replace(
        held,
        programs={_PROGRAMS[model]: 1},
        times=runs,
        steps=trains * (_STEPS_OF[model] * spec.max_steps + records / 3 + jacobians),
        squares=(not trains) * 2 * spec.max_steps,
        more=Work(calls=40 * records * groups / runs),
        copies=held.copies * at_once + 3 * network.kernel_rows + spec.num_seeds,
        views=held.views * at_once,
        matrices=held.matrices * at_once,
    )


def together(spec: LearningRateSpec, network: Counted, model: str) -> int:
    """Number of runs that train simultaneously."""
    fitting = max(1, min(256, int(TOGETHER_BYTES // _held(network, model).peak_bytes)))
    if spec.keep_curvature and not spec.keep_paths:
        # One rate after another: the smallest one shows the growth S while the others train.
        return min(fitting, spec.num_seeds)
    return fitting


def _held(network: Counted, model: str) -> Counts:
    """Memory of one run: weights at w₀ and w_t, gradients, temporaries and activations."""
    copies, views = {"linear": (0, 1), "quadratic": (10, 3), "network": (6, 1)}[model]
    return Counts(network, copies=copies, views=views, matrices=4)


RateOutcome = Literal["monotone", "catapult", "dead", "diverged"]
RATE_OUTCOMES: dict[str, str] = {
    "monotone": "the loss never rose above its start",
    "catapult": "the loss rose above its start and came down below it",
    "dead": "the kernel ended at zero: no weight changes an output",
    "diverged": "the loss ended above its start, or became infinite or not a number",
}
MODEL_TITLES = {"linear": "linear model", "quadratic": "quadratic model", "network": "network"}
RISE = 1.05  # our choice: a loss this many times its start has risen
DEAD_SHARE = 1e-6  # our choice: a kernel of at most this share of its start counts as zero
EDGE = 2.0  # of c_t: a model with a constant kernel is stable below it
BORDER = 0.1  # our choice: a prediction within this share of the edge is too close to judge


class RatePath(Value):
    """One run at its recorded steps; entries after a divergence are not finite.

    Attributes:
        steps: recorded steps, starting at 0.
        loss: mean loss L.
        curvature: η β λ_max(K(w_t))/n: the rate in units of the curvature there; 2 is
            the edge of stability.
        distance: ‖w_t − w₀‖₂.
        change: ΔK(t) of the model's own kernel.
    """

    recorded_at: ClassVar[str] = "steps"

    steps: tuple[NonNegativeInt, ...]
    loss: tuple[NonNegative, ...]
    curvature: tuple[float, ...]
    distance: tuple[NonNegative, ...]
    change: tuple[NonNegative, ...]


class RateRun(Value):
    """One model trained at one rate.

    Attributes:
        model: ``linear``, ``quadratic`` or ``network``.
        rate: c = η β λ_max(K(w₀))/n.
        seed: seed of the initialization w₀.
        learning_rate: η, as used.
        outcome: one of :data:`RATE_OUTCOMES`.
        converged: whether the loss reached the threshold.
        num_steps: steps taken until the run ended.
        first_loss, peak_loss, last_loss: at w₀, the largest finite one recorded, and at the end.
        curvature: η β λ_max(K(w_T))/n at the end; NaN after a divergence.
        path: records along the run, if kept.
        peak_curvature: max_t c_t over recorded steps, if kept.
        predicted_peak: c (1 + S), S of the same model and seed at the smallest rate; None if that
            run did not converge.
    """

    model: str
    rate: NonNegative
    seed: NonNegativeInt
    learning_rate: NonNegative
    outcome: RateOutcome
    converged: bool
    num_steps: NonNegativeInt
    first_loss: NonNegative
    peak_loss: NonNegative
    last_loss: NonNegative
    curvature: float
    path: RatePath | None = None
    peak_curvature: float | None = None
    predicted_peak: float | None = None

    @property
    def peak(self) -> float:
        """Largest loss over that at w₀."""
        return self.peak_loss / self.first_loss if self.first_loss > 0 else math.nan

    @property
    def growth(self) -> float | None:
        """S = max_t λ_max(K_t)/λ_max(K₀) − 1; None if it was not kept."""
        return None if self.peak_curvature is None else self.peak_curvature / self.rate - 1

    @property
    def meets_edge(self) -> bool:
        """Whether the curvature c_t reached 2."""
        return self.peak_curvature is not None and self.peak_curvature >= EDGE

    @property
    def should_meet_edge(self) -> bool:
        """Whether c (1 + S) > 2."""
        return self.predicted_peak is not None and self.predicted_peak > EDGE

    @property
    def as_predicted(self) -> float | None:
        """1 if c_t reached 2 exactly where c (1 + S) > 2, else 0.

        None within 10% of the border, and above c = 2.
        """
        if self.predicted_peak is None or self.rate >= EDGE:
            return None
        if abs(self.predicted_peak / EDGE - 1) <= BORDER:
            return None
        return float(self.meets_edge == self.should_meet_edge)


def with_predictions(runs: Sequence[RateRun]) -> tuple[RateRun, ...]:
    """Return the runs of one width with their predicted peaks.

    The slowest run of the same model and seed predicts a peak.

    The slowest runs themselves get no prediction.
    """
    slowest = min((run.rate for run in runs), default=0.0)
    growth = {}
    for run in runs:
        if run.rate == slowest and run.converged and run.growth is not None:
            growth[run.model, run.seed] = run.growth
    predicted = []
    for run in runs:
        found = growth.get((run.model, run.seed))
        if found is not None and run.rate > slowest:
            run = run.model_copy(update={"predicted_peak": run.rate * (1 + found)})
        predicted.append(run)
    return tuple(predicted)


def rate_outcome(losses: Sequence[float], dead: bool) -> RateOutcome:
    """Classify a run by its recorded losses and whether its kernel ended at zero."""
    first = losses[0]
    last = losses[-1]
    if not (math.isfinite(last) and last <= first):
        return "diverged"
    if dead:
        return "dead"
    return "catapult" if finite_sup(losses) > RISE * first else "monotone"


def _is_finite(run: RateRun) -> bool:
    return run.outcome != "diverged"


class RatePoint(TrainedPoint[RateRun]):
    """All runs of one width: models, seeds and rates."""

    line = ("model", "rate")

    kind: Literal["learning_rate"] = "learning_rate"

    def of_rate(self, rate: float) -> tuple[RateRun, ...]:
        """The runs of all models at this rate."""
        return tuple(run for run in self.runs if run.rate == rate)


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    Column("model", "model", format=MODEL_TITLES.__getitem__, role="line"),
    Column("rate", "c", format="c = {:g}".format, role="line"),
    columns.SEED,
    Column("learning_rate", "learning rate η"),
    Column("outcome", "outcome", role="label"),
    Column("converged", ""),
    Column("num_steps", "steps"),
    Column("first_loss", ""),
    Column("peak_loss", ""),
    Column("last_loss", "last loss"),
    Column("curvature", "c at the end", format=partial(between, spec=".2f"), counts=_is_finite),
    Column(
        "peak", "largest loss / loss at w₀", format=partial(between, spec=".3g"), counts=_is_finite
    ),
    Column("peak_curvature", "", optional=True),
    Column("predicted_peak", "", optional=True),
)


class LearningRateResult(ResultValue):
    """Result of a ``learning_rate`` run.

    Outcomes of models at c = η β λ_max(K(w₀)) / n, and max L / L₀.

    Source: Lewkowycz, Bahri, Dyer, Sohl-Dickstein & Gur-Ari 2020, §2; docs/math/learning-rate.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> stored = (GALLERY / "catapult-map.json").read_bytes()
    >>> result = LearningRateResult.model_validate_json(stored)
    >>> result.points[0].runs[0].outcome
    'monotone'
    """

    columns = COLUMNS
    spec: LearningRateSpec
    points: tuple[RatePoint, ...]


def learning_rate_summary(spec: LearningRateSpec, points: Sequence[RatePoint]) -> str:
    """Return a table over seeds, and the exponent of the peak at each rate above 2."""
    laws = []
    for model, rate in itertools.product(spec.models, spec.rates):
        law = peak_law(points, model, rate)
        if law is not None:
            laws.append(f"{model} at c = {rate:g}: peak / start {law_words(law, 'm')}")
    return "\n".join(
        [
            *text_table(COLUMNS, points, _counted),
            "",
            *(f"{k}: {v}" for k, v in RATE_OUTCOMES.items()),
            *laws,
            *_edge_words(points),
        ]
    )


def _edge_words(points: Sequence[RatePoint]) -> list[str]:
    """Return how many runs are on the predicted side of the border.

    Nothing where this was not measured.
    """
    judged = [run for point in points for run in point.runs if run.as_predicted is not None]
    if not judged:
        return []
    right = sum(run.as_predicted == 1 for run in judged)
    return [
        f"{right} of {len(judged)} runs are on the predicted side of c (1 + S) = 2, without those "
        "within 10% of it"
    ]


def _counted(runs: Sequence[RateRun]) -> str:
    return ", ".join(
        f"{count} {name}" for name, count in Counter(run.outcome for run in runs).items()
    )


def peak_law(points: Sequence[RatePoint], model: str, rate: float) -> PowerLaw | None:
    """Fit the largest loss over its start against m among catapulted runs."""
    runs = along(points, model, rate)
    if not any(run.outcome == "catapult" for _, run in runs):
        return None
    return fit_runs(runs, lambda run: run.peak, lambda run: run.outcome == "catapult")


EXPERIMENT = Experiment(
    LearningRateSpec,
    RatePoint,
    LearningRateResult,
    counts,
    learning_rate_summary,
    record_bytes=20000,
)
