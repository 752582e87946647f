"""Depth and width: randomness of the tangent kernel at w₀, and its change in training."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.depth_width.random_kernels import MOST_OF_ONE, Scatter, second_moment
from linearity_lab.experiments.trained_sweep import TrainedRun
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    Experiment,
    ResultValue,
    SpecOf,
    SweepSpec,
    WidthPoint,
    columns,
    costs,
    finite_or_none,
    point_key,
)
from linearity_lab.runs.columns import Column, text_table
from linearity_lab.settings.part import Ascending, Width
from linearity_lab.settings.training import SquareTrainingSpec
from ntk_core.numbers import percent
from ntk_core.stored_numbers import NonNegative

# Deeper than other pages allow, so its depth is not validated.
_NETWORK = ArchitectureSpec(use_bias=False)
GAIN = math.sqrt(2)  # of hidden layers: E K(x, x) grows as L + 1 instead of exponentially


class DepthWidthSpec(SweepSpec, SpecOf["DepthWidthResult"]):
    """Randomness and change of kernels across depths and widths.

    Scatter of K(x, x) over random networks, ‖H‖ / K(x, x) and ΔK, for every pair of depth and
    width.

    Scatter is CV² = Var K / (E K)², and E[K²] / (E K)² = 1 + CV² grows with β = Σ_l 1/m_l = L/m.

    Fully connected ReLU networks without biases: L hidden layers of width m, gain √2,
    linear output. At one input the distribution of K(x, x) / |x|² depends only on (L, m),
    so it is measured for every pair. ‖H‖ and ΔK need data and training; they have their own
    largest depths and width.

    Source: Hanin & Nica 2020, Theorem 1; docs/math/depth-and-width.md.

    >>> DepthWidthSpec(depths=(1, 4), widths=(32, 64)).point_keys()
    ('depth=1,width=32', 'depth=1,width=64', 'depth=4,width=32', 'depth=4,width=64')
    """

    key_parts: ClassVar = {"depth": int, "width": int}
    point_words: ClassVar[tuple[str, str]] = ("pair of depth and width", "pairs of depth and width")

    experiment: Literal["depth_width"] = "depth_width"
    depths: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], Ascending] = Field(
        default=(1, 2, 4, 8, 16, 32, 64), min_length=1, max_length=16, title="Depths L"
    )
    """Numbers L of hidden layers, each at every width."""
    widths: tuple[Width, ...] = SweepSpec.field("widths", (32, 64, 128, 256, 512, 1024))
    num_kernels: int = Field(default=2000, ge=20, le=100_000, title="Networks for K(x, x)")
    """Number of random networks for the distribution of K(x, x), for each pair."""
    num_seeds: int = SweepSpec.field("num_seeds", 10, "Trained networks for each trained pair.")
    trained_depth: int = Field(default=64, ge=0, le=64, title="Train up to depth")
    """ΔK is measured up to this depth; 0 for none."""
    trained_width: Width = Field(default=128, title="Train up to width")
    """ΔK and ‖H‖ are measured up to this width."""
    hessian_depth: int = Field(default=64, ge=0, le=64, title="‖H‖ up to depth")
    """‖H‖ is measured up to this depth; 0 for none."""
    dataset: DatasetSpec = DatasetSpec(num_samples=8, num_classes=2, noise=0.5)
    training: SquareTrainingSpec = SquareTrainingSpec(
        loss_threshold=0.03, max_steps=500, num_records=12
    )

    @model_validator(mode="after")
    def _takes_inputs(self) -> Self:
        shapes = self.dataset.known_shapes()
        if shapes is not None:
            self.architecture(1).check_inputs(shapes.input_shape, "dataset")
        self.training.check_data(
            has_classes=shapes is None or bool(shapes.class_names),
            num_outputs=None if shapes is None else shapes.num_outputs,
            num_points=self.dataset.num_points,
        )
        return self

    def architecture(self, depth: int) -> ArchitectureSpec:
        """The network of this depth; its gain is :data:`GAIN`."""
        return _NETWORK.model_copy(update={"depth": depth})

    def measures_hessian(self, depth: int) -> bool:
        """Whether ‖H‖ is measured for trained networks of this depth."""
        return depth <= self.hessian_depth

    def trains(self, depth: int, width: int) -> bool:
        """Whether networks of this size are trained."""
        return depth <= self.trained_depth and width <= self.trained_width

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per seed where networks are trained."""
        depth, width = self.value_of(key)
        return {"runs": self.num_seeds if self.trains(depth, width) else 0}

    def point_keys(self) -> tuple[str, ...]:
        """``depth=4,width=128``, in the order of their numbers of weights."""
        pairs = [(depth, width) for depth in self.depths for width in self.widths]
        pairs.sort(key=lambda pair: (pair[0] * pair[1] ** 2, pair))
        return tuple(point_key(depth=depth, width=width) for depth, width in pairs)


BLOCK_NUMBERS = 2**20  # values of z per block of draws, all layers
# A hidden neuron of one draw takes as long as reading this: two normal numbers, some ten products.
DRAW_BYTES = 1000
# Up to this depth ‖H‖ uses unrolled layers in a small space; beyond, a loop over all weights.
UNROLLED_DEPTH = 8
INPUTS = 2  # for ‖H‖; our choice


def counts(spec: DepthWidthSpec, key: str, most: bool = False) -> tuple[costs.Counts, ...]:
    """Count one pair, all draws and seeds; ``most`` takes all allowed steps."""
    depth, width = spec.value_of(key)
    traffic = float(spec.num_kernels * depth * width * DRAW_BYTES)
    drawn = costs.Counts(
        more=costs.Work(traffic=traffic), num_bytes=16.0 * max(BLOCK_NUMBERS, depth * width)
    )
    if not spec.trains(depth, width):
        return (drawn,)
    network = costs.Counted.of(spec, spec.architecture(depth), width)
    curves = spec.measures_hessian(depth)
    unrolled = depth <= UNROLLED_DEPTH
    direction = (
        sum(layer.fan_in + layer.features for layer in network.layers)
        if unrolled
        else network.num_weights
    )
    loop = costs.Work(
        traffic=6.0 * INPUTS * costs.HESSIAN_BASIS * costs.BYTES * network.num_weights
    )
    trained = costs.Counts(
        network,
        {"small network": 1 + (curves and unrolled)},
        times=spec.num_seeds,
        steps=costs.typical_steps(spec.training.max_steps, most),
        kernels=spec.training.num_records,
        products=INPUTS * costs.MATVECS * (curves and unrolled),
        more=loop if curves and not unrolled else costs.Work(),
        copies=5 + spec.training.method.num_copies,
        views=1,
        matrices=20,
        numbers=curves * costs.HESSIAN_BASIS * direction,
    )
    return drawn, trained, costs.Counts(programs={"loop": curves and not unrolled})


class DepthRun(TrainedRun):
    """One network at w₀, and its training by gradient descent on (1/2n) Σ ‖f − y‖².

    Attributes:
        hessian: mean ‖H‖ of the first output at w₀ over the chosen inputs; NaN if not measured.
        squared_gradient: mean over the same inputs of ‖∇f‖² = K(x, x).
        hessian_converged: whether every measured spectral norm converged.
    """

    hessian: NonNegative
    squared_gradient: NonNegative
    hessian_converged: bool

    @property
    def curvature(self) -> float:
        """‖H‖ / ‖∇f‖²; NaN for a dead network, or without ‖H‖."""
        return self.hessian / self.squared_gradient if self.squared_gradient else math.nan


class DepthWidthPoint(WidthPoint, Scatter):
    """One pair of depth and width, with the scatter of K(x, x).

    Attributes:
        depth, width: L and m.
        num_kernels: number of random networks, at |x|² = d.
        seed: seed of these networks.
        mean: mean K(x, x); in expectation L + 1.
        runs: one entry per seed, if networks of this size are trained.
    """

    key_parts = DepthWidthSpec.key_parts

    kind: Literal["depth_width"] = "depth_width"
    depth: NonNegativeInt
    num_kernels: NonNegativeInt
    seed: NonNegativeInt
    runs: tuple[DepthRun, ...] = ()

    @property
    def records(self) -> Sequence[DepthRun | None]:
        """The runs; one empty row for an untrained pair."""
        return self.runs or (None,)

    @property
    def beta(self) -> float:
        """β = Σ_l 1/m_l = L/m."""
        return self.depth / self.width

    @property
    def log_moment(self) -> float:
        """ln(E[K²] / E[K]²) = ln(1 + CV²)."""
        return math.log1p(self.cv_squared)

    @property
    def expected_cv_squared(self) -> float:
        """CV² of K(x, x) to leading order in 1/m; exactly 3/m for one hidden layer."""
        return second_moment(self.depth, self.width) - 1

    @property
    def growth(self) -> float:
        """ln(E[K²] / E[K]²) / β."""
        return self.log_moment / self.beta


def _of_pair(
    name: str, title: str, field: str = "", words: Callable[[float], str] | None = None
) -> Column:
    """Column of a pair, equal for all of its runs; in the text summary if it has a format."""

    def of(point: DepthWidthPoint, _: DepthRun | None) -> object:
        return getattr(point, field or name)

    if words is None:
        return Column(name, title, of)
    return Column(name, title, of, lambda values: words(values[0]) if values else "–")


def _of_run(column: Column) -> Column:
    """Column that is empty for untrained pairs."""
    return replace(column, of=lambda point, run: None if run is None else column.value(point, run))


PAIR = (
    Column("depth", "depth L", lambda point, _: point.depth, str, "swept"),
    replace(columns.WIDTH, format="m = {:,}".format, role="line"),
    _of_pair("beta", "β", words="{:.4g}".format),
    _of_pair("num_kernels", "networks"),
    _of_pair("mean_kernel", "mean K(x, x)", "mean"),
    _of_pair("cv_squared", "CV² of K(x, x)", words="{:.3g}".format),
    _of_pair("cv_squared_low", "from", "low", "{:.3g}".format),
    _of_pair("cv_squared_high", "to", "high", "{:.3g}".format),
    _of_pair("expected_cv_squared", "CV² by formula"),
    _of_pair("growth", "ln(1 + CV²) / β", words="{:.2f}".format),
    _of_pair("largest_share", "largest share of Σ K²", words=percent),
    _of_pair("log_variance", "variance of ln K"),
)
COLUMNS = (
    *PAIR,
    replace(columns.SEED, of=lambda point, run: run.seed if run else point.seed),
    *map(
        _of_run,
        (
            replace(columns.CHANGE, name="sup_change", format=columns.with_error),
            Column("hessian", "‖H‖", lambda _, run: finite_or_none(run.hessian)),
            Column("squared_gradient", "‖∇f‖²"),
            Column(
                "curvature",
                "‖H‖ / ‖∇f‖²",
                lambda _, run: finite_or_none(run.curvature),
                columns.with_error,
            ),
            replace(columns.FINAL_LOSS, name="last_loss"),
            columns.STEPS,
            columns.LEARNING_RATE,
            columns.OUTCOME,
        ),
    ),
)


class DepthWidthResult(ResultValue):
    """Result of a ``depth_width`` run.

    CV² = Var K / (E K)² of K(x, x), ‖H‖ and ΔK of every depth and width.

    Source: Hanin & Nica 2020, Theorem 1; docs/math/depth-and-width.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = DepthWidthResult.model_validate_json((GALLERY / "depth-width.json").read_bytes())
    >>> point = result.points[0]
    >>> point.depth, point.width, point.low < point.cv_squared < point.high
    (1, 32, True)
    """

    columns = COLUMNS
    spec: DepthWidthSpec
    points: tuple[DepthWidthPoint, ...]


TAILS = (
    f"One network contributes more than {percent(MOST_OF_ONE)} of the sum of K². The tail is "
    "heavier than the sample shows, and the interval of CV² is too short."
)


def depth_width_summary(spec: DepthWidthSpec, points: Sequence[DepthWidthPoint]) -> str:
    """One row per pair; ΔK and ‖H‖ / ‖∇f‖² are means over the seeds."""
    tails = [TAILS] if any(point.largest_share > MOST_OF_ONE for point in points) else []
    return "\n".join([*text_table(COLUMNS, points), "", *tails, *columns.outcome_notes(points)])


EXPERIMENT = Experiment(
    DepthWidthSpec, DepthWidthPoint, DepthWidthResult, counts, depth_width_summary, record_bytes=100
)
