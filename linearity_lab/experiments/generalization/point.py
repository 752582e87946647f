"""Generalization of networks and kernels: the price of linearity."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator
from scipy.special import ndtri

from linearity_lab.data import DATASETS
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedRun, TrainedSweep
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    Counts,
    Experiment,
    ResultValue,
    SpecOf,
    Value,
    columns,
    point_key,
    typical_steps,
)
from linearity_lab.runs.columns import Column, text_table
from linearity_lab.settings.part import Ascending, Width
from linearity_lab.settings.training import SquareTrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.stored_numbers import NonNegative

MAX_ROWS = 5000  # largest n·C of an inverted kernel


class GeneralizationSpec(TrainedSweep, SpecOf["GeneralizationResult"]):
    """Test errors of networks, their linear models and their kernels.

    Compares F = m^(−ρ) f, its linear model, and regression with K₀, with K_s along
    training, and with K_∞.

    F trains by gradient descent on the square loss; the rate grows as m^(2ρ), so F learns equally
    fast at every width. Kernels predict K(x, X) (K(X, X) + (λ + ε) k̄ 1)⁻¹ y, see
    :func:`kernel_regression`. A point is (m, ρ, n).

    Source: Yang & Hu 2021, §3; Ghorbani, Mei, Misiakiewicz & Montanari 2020; Long 2021;
    docs/math/generalization.md.

    >>> GeneralizationSpec(widths=(100,), richness=(0.0, 0.5), samples=(120,)).point_keys()
    ('width=100,richness=0.0,samples=120', 'width=100,richness=0.5,samples=120')
    """

    one_output: ClassVar[bool] = True
    key_parts: ClassVar = {"width": int, "richness": float, "samples": int}
    point_words: ClassVar[tuple[str, str]] = (
        "choice of width, ρ and n",
        "choices of width, ρ and n",
    )

    experiment: Literal["generalization"] = "generalization"
    dataset: DatasetSpec = DatasetSpec(
        name="parity", num_samples=120, input_dim=20, num_relevant=2, noise=0.0
    )
    architecture: ArchitectureSpec = ArchitectureSpec(
        activation="relu", initial_output="subtracted", use_bias=False
    )
    widths: tuple[Width, ...] = TrainedSweep.field("widths", (100, 1000, 5000))
    richness: Annotated[tuple[Annotated[float, Field(ge=0, le=0.5)], ...], Ascending] = Field(
        default=(0.0, 0.5), min_length=1, max_length=8, title="Richness ρ"
    )
    """Factors m^(−ρ) in front of f, each at every width: lazy at 0, rich at 0.5."""
    samples: Annotated[tuple[Annotated[int, Field(ge=1, le=MAX_ROWS)], ...], Ascending] = Field(
        default=(), max_length=16, title="Learning curve, n"
    )
    """Numbers n of training points for learning curves, each at every width; empty:
    that of the data.
    """
    num_seeds: int = TrainedSweep.field(
        "num_seeds", 3, "Independent networks, with data of their own, for each point."
    )
    draws: Literal["network", "network and data"] = TrainedSweep.field("draws", "network and data")
    num_test: int = Field(default=1000, ge=1, le=10_000, title="Test points")
    """Held-out test points; fewer if the data set is smaller."""
    ridge: float = Field(default=0.0, ge=0, le=1000, title="Ridge λ")
    """Term added to the diagonal of every inverted kernel: λ times its mean."""
    infinite_width: bool = Field(default=True, title="Infinite-width kernel")
    """Also regress with K_∞, where it is known."""
    training: SquareTrainingSpec = SquareTrainingSpec(
        max_steps=20_000, loss_threshold=0.001, num_records=10
    )

    @model_validator(mode="after")
    def _richness_scales_the_rate(self) -> Self:
        # Training α f at the rate η is training f toward y/α at α² η, for these methods
        # and this loss alone.
        training = self.training
        if not training.method.is_linear:
            allowed = "a method whose steps are linear in the gradient: ρ scales its rate by m^(2ρ)"
            raise InvalidInput(
                "training.optimizer", training.optimizer, allowed, "gradient-descent"
            )
        if training.loss != "square":
            allowed = "square, whose targets ρ scales by m^ρ"
            raise InvalidInput("training.loss", training.loss, allowed, "square")
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.samples and not self.dataset.uses("num_samples"):
            raise InvalidInput(
                "samples", self.samples, "none, since the number of given points is fixed", ()
            )
        for count in self.counts:
            field = "samples" if self.samples else "dataset.num_samples"
            try:
                shapes = self.of_samples(count).shapes()
            except InvalidInput as error:
                raise InvalidInput(field, count, error.allowed, error.nearest) from None
            if shapes is None:
                return self
            most = min(MAX_ROWS // shapes.num_outputs, shapes.available_train)
            if count > most:
                raise InvalidInput(
                    field, count, f"at most {most:,}: kernels of n·C rows are inverted"
                )
            if not shapes.available_test:
                raise InvalidInput(field, count, "fewer, to leave test points")
            self.architecture.check_inputs(shapes.input_shape, widths=self.widths)
        return self

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers n of training points."""
        return self.samples or (self.dataset.num_points,)

    def of_samples(self, count: int) -> Self:
        """Return the spec with this number of training points only."""
        if not self.dataset.uses("num_samples"):
            return self
        dataset = self.dataset.model_copy(update={"num_samples": count})
        return self.model_copy(update={"dataset": dataset, "samples": ()})

    @property
    def least_risk(self) -> tuple[float, float]:
        """Lower bounds (test error, test loss) of all models on this distribution.

        NaN if unknown.
        """
        return DATASETS[self.dataset.name].least_risk(self.dataset.options())

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per seed."""
        return {"runs": self.num_seeds}

    def point_keys(self) -> tuple[str, ...]:
        """Return keys such as ``width=100,richness=0.5,samples=120``.

        Every width at every ρ and n has one, in order of cost.
        """
        sizes = sorted(
            ((width, n) for width in self.widths for n in self.counts),
            key=lambda size: size[0] * size[1],
        )
        return tuple(
            point_key(width=width, richness=rho, samples=n)
            for width, n in sizes
            for rho in self.richness
        )


TYPICAL_STEPS = 300  # some 40 at ρ = 1/2 and 500 at ρ = 0
ALL_EIGENVECTORS = 1500  # rows up to which all are computed; beyond, the leading ones


def counts(spec: GeneralizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one point, all seeds; ``most`` takes all allowed steps."""
    width, _, count = spec.value_of(key)
    network = spec.of_samples(count).counted(width)
    records = spec.training.num_records + 1
    steps = typical_steps(spec.training.max_steps, most, TYPICAL_STEPS)
    with_test = 1 + network.num_test / network.num_samples
    infinite = spec.infinite_width and spec.architecture.has_infinite_width
    whole = network.kernel_rows <= ALL_EIGENVECTORS
    shared = 1 / len(spec.richness)  # all ρ share programs
    return (
        Counts(
            network,
            {"regression": shared * (1 + infinite)},
            times=spec.num_seeds,
            steps=steps,
            kernels=records * with_test,
            cubes=records / 3 + 10 * whole,
            squares=2 * steps + 20 * records * with_test + 500 * (not whole),
            copies=5,
            views=1,
            matrices=4 * with_test + 10,
        ),
    )


class Predictor(Value):
    """Test error and loss of one model.

    Attributes:
        error: share of misclassified points; NaN without classes.
        loss: (1/2n') Σ ‖F − y‖² over them.
    """

    error: NonNegative
    loss: NonNegative


class GeneralizationRun(TrainedRun):
    """One network and its kernels on one draw of the data.

    Attributes:
        learning_rate: η of F.
        last_finite_step: the last step whose loss was finite.
        steps: recorded steps, starting at w₀; ``change`` is ΔK there.
        loss: training loss of the network there.
        network: its test error and loss there.
        after: of regression with the kernel there, K_s(x, X) K_s(X, X)⁻¹ y; the first is K₀, the
            last the after kernel.
        onward: of the linear model at w_s, trained to the end, f_s(x) + K_s(x, X)
            K_s(X, X)⁻¹ (y − f_s(X)).
        linear: of the linear model at w₀ after as many steps as the network took.
        infinite: of regression with K_∞; None where it is not known.
        alignment: yᵀKy / (‖K‖ ‖y‖²) of K_s.
        distance: 1 − ⟨K_s, K₀⟩ / (‖K_s‖ ‖K₀‖).
        moved: the same distance of K_s from the previous record; 0 at the first.
        condition, jitter: condition of the inverted matrix, and the term added to its diagonal
            in units of its mean.
        ranks: numbers k of leading eigenvectors; ``first_share``, ``last_share``: y in
            those of K₀ and last K_s.
        angles: principal angles between the leading eigenspaces of the two, in degrees, ascending.
        num_test: n'.
    """

    other_lengths: ClassVar[tuple[str, ...]] = ("ranks", "first_share", "last_share", "angles")

    last_finite_step: NonNegativeInt
    network: tuple[Predictor, ...]
    after: tuple[Predictor, ...]
    onward: tuple[Predictor, ...]
    linear: Predictor
    infinite: Predictor | None
    alignment: tuple[float, ...]
    distance: tuple[NonNegative, ...]
    moved: tuple[NonNegative, ...]
    condition: tuple[NonNegative, ...]
    jitter: tuple[NonNegative, ...]
    ranks: tuple[NonNegativeInt, ...]
    first_share: tuple[float, ...]
    last_share: tuple[float, ...]
    angles: tuple[float, ...]
    num_test: NonNegativeInt

    @property
    def share_gained(self) -> float:
        """Largest growth, over k, of the share of y in k leading eigenvectors."""
        return max(
            after - before for before, after in zip(self.first_share, self.last_share, strict=True)
        )

    @property
    def kernel_lead(self) -> float:
        """Ratio of first recorded steps with a test error of at most 5%.

        Network to regression with its kernel.
        """
        network = self._first_step_of_few_errors(self.network)
        after = self._first_step_of_few_errors(self.after)
        return network / after if after else math.inf

    def _first_step_of_few_errors(self, tested: Sequence[Predictor]) -> float:
        for step, each in zip(self.steps, tested, strict=True):
            if each.error <= 0.05:
                return step
        return math.nan

    @property
    def distance_per_step(self) -> tuple[float, ...]:
        """Kernel distance per step from each record to the next; NaN at the first."""
        pairs = zip(self.steps, self.steps[1:], self.moved[1:], strict=False)
        return (math.nan, *(moved / max(1, after - before) for before, after, moved in pairs))


class GeneralizationPoint(TrainedPoint[GeneralizationRun]):
    """All seeds of one width, richness and number of training points."""

    line = ()

    kind: Literal["generalization"] = "generalization"
    richness: NonNegative
    num_samples: NonNegativeInt

    @property
    def key(self) -> str:
        return point_key(width=self.width, richness=self.richness, samples=self.num_samples)


def predictors(run: GeneralizationRun) -> dict[str, Predictor | None]:
    """Models compared at the end of training, by name."""
    return {
        "network": run.network[-1],
        "linear": run.linear,
        "first_kernel": run.after[0],
        "after_kernel": run.after[-1],
        "onward": run.onward[-1],
        "infinite": run.infinite,
    }


TITLES = {
    "network": "network",
    "linear": "linear model",
    "first_kernel": "K₀",
    "after_kernel": "K_T",
    "onward": "onward",
    "infinite": "K_∞",
}


def _of_predictor(name: str, what: str) -> Column:
    """The test error or loss of one predictor at the end."""

    def of(_: GeneralizationPoint, run: GeneralizationRun) -> float:
        return float(getattr(predictors(run)[name], what, math.nan))

    return Column(f"{name}_{what}", f"test {what}, {TITLES[name]}", of, columns.with_error)


TESTED = {what: tuple(_of_predictor(name, what) for name in TITLES) for what in ("error", "loss")}
COLUMNS = (
    columns.WIDTH,
    Column("richness", "richness ρ", lambda point, _: point.richness, "ρ = {:g}".format, "line"),
    Column(
        "num_samples",
        "training points n",
        lambda point, _: point.num_samples,
        "{:,}".format,
        "swept",
    ),
    columns.NUM_PARAMS,
    columns.SEED,
    columns.LEARNING_RATE,
    columns.OUTCOME,
    Column("num_steps", "steps"),
    replace(columns.FINAL_LOSS, name="last_loss"),
    Column("num_test", "test points"),
    *TESTED["error"],
    *TESTED["loss"],
    replace(columns.CHANGE, name="sup_change", format=None),
    Column(
        "alignment_first", "alignment of K₀", lambda _, run: run.alignment[0], columns.with_error
    ),
    Column(
        "alignment_last",
        "alignment at the end",
        lambda _, run: run.alignment[-1],
        columns.with_error,
    ),
    Column("kernel_distance", "distance from K₀", lambda _, run: run.distance[-1]),
    Column("condition_first", "condition of K₀", lambda _, run: run.condition[0], columns.ranged),
    Column("condition_last", "condition at the end", lambda _, run: run.condition[-1]),
    Column("jitter", "jitter", lambda _, run: max(run.jitter)),
)


class GeneralizationResult(ResultValue):
    """Result of a ``generalization`` run.

    Test errors, (1/2n') Σ ‖F − y‖² and yᵀKy / (‖K‖_F ‖y‖²) along training.

    Source: docs/math/generalization.md, which names those of each quantity.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> stored = (GALLERY / "price-of-linearity.json").read_bytes()
    >>> result = GeneralizationResult.model_validate_json(stored)
    >>> sorted({(point.width, point.richness) for point in result.points})[:2]
    [(100, 0.0), (100, 0.5)]
    """

    columns = COLUMNS
    spec: GeneralizationSpec
    points: tuple[GeneralizationPoint, ...]


def wilson(share: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a probability, seen in a ``share`` of ``count`` trials.

    NaN without trials.

    >>> [round(end, 3) for end in wilson(0.5, 100)]
    [0.404, 0.596]

    Source: Wilson 1927; Brown, Cai & DasGupta 2001.
    """
    if not (count and math.isfinite(share)):
        return math.nan, math.nan
    z = float(ndtri(0.5 + confidence / 2))
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = (
        z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    )
    return (center - reach if share > 0 else 0.0), (center + reach if share < 1 else 1.0)


def generalization_summary(spec: GeneralizationSpec, points: Sequence[GeneralizationPoint]) -> str:
    """Return one row per point: means over the seeds of the test error.

    Without classes they are those of the test loss.
    """
    what = measured(points)
    other = "loss" if what == "error" else "error"
    shown = [column for column in COLUMNS if column not in TESTED[other]]
    floor = spec.least_risk[what == "loss"]
    intervals = ["95%: Wilson's interval of the network's test error over all test points."]
    least = [f"No model can be below {floor:.3g} on this distribution."] if floor > 0 else []
    return "\n".join(
        [*text_table(shown, points, _ends), "", *intervals, *least, *columns.outcome_notes(points)]
    )


def measured(points: Sequence[GeneralizationPoint]) -> str:
    """``error`` for data with classes, else ``loss``."""
    errors = [run.network[0].error for point in points for run in point.runs]
    return "error" if any(error == error for error in errors) else "loss"


def values(runs: Sequence[GeneralizationRun], name: str, what: str) -> list[float]:
    """Test error or loss of one predictor at the end of each run with this predictor."""
    found = [predictors(run)[name] for run in runs]
    return [getattr(each, what) for each in found if each is not None]


def pooled(runs: Sequence[GeneralizationRun], name: str) -> tuple[float, float]:
    """Wilson's interval of the test error over the test points of all these runs."""
    errors = values(runs, name, "error")
    count = sum(run.num_test for run in runs)
    return wilson(sum(errors) / len(errors), count) if errors else wilson(0, 0)


def _ends(runs: Sequence[GeneralizationRun]) -> str:
    """Wilson's interval for data with classes, and the runs that did not converge."""
    low, high = pooled(runs, "network")
    return " ".join(
        filter(None, [f"95%: {low:.3g}–{high:.3g}" if low == low else "", columns.marks(runs)])
    )


EXPERIMENT = Experiment(
    GeneralizationSpec, GeneralizationPoint, GeneralizationResult, counts, generalization_summary
)
