"""Networks retrained without single training points, and the prediction of their kernels."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.lettered_networks import (
    NetworkPoint,
    SeveralTrainings,
    TrainedNetworks,
    architectures_field,
    summary_of_networks,
)
from linearity_lab.networks.spec import ArchitectureSpec, OutputName
from linearity_lab.runs import (
    Counts,
    Experiment,
    ResultValue,
    SpecOf,
    SweepSpec,
    Value,
    columns,
    costs,
    typical_steps,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Once, Width
from linearity_lab.settings.training import DescentSettings, DescentSpec
from ntk_core.errors import InvalidInput
from ntk_core.stored_numbers import NonNegative

KEPT_POINTS = 12  # test points whose changes are kept; our choice
MOST_ROWS = 2000  # largest n·C of an inverted kernel; our choice
LARGEST_INPUT = 1024  # numbers of an input that is kept for figures; our choice


class AttributionSpec(TrainedNetworks, SpecOf["AttributionResult"]):
    """Retraining without single points, against the closed form of the kernel.

    Δ_i(x) = −K(x, X) (A⁻¹)_{:,i} ((A⁻¹)_{ii})⁻¹ α_i with A = K(X, X) and α = A⁻¹ (y − f(w₀)).

    The network is trained from w₀ on all points, then from the same w₀ without point i, by gradient
    descent on the square loss. The change of its outputs at test points is compared with that of
    regression with K(w₀), f(w₀) + K(x, X) K(X, X)⁻¹ (y − f(w₀)), whose changes for all i follow
    from one factorization.

    Source: after Park, Georgiev, Ilyas, Leclerc & Madry 2023, §3; docs/math/leave-one-out.md.

    >>> AttributionSpec(widths=(64, 256)).point_keys()
    ('network=A,width=64', 'network=B,width=64', 'network=A,width=256', 'network=B,width=256')
    """

    experiment: Literal["attribution"] = "attribution"
    architectures: tuple[ArchitectureSpec, ...] = architectures_field(
        ArchitectureSpec(activation="tanh"),
        ArchitectureSpec(kind="bottleneck", depth=3, activation="tanh"),
    )
    """Number of networks to compare."""
    dataset: DatasetSpec = DatasetSpec(num_samples=12, num_classes=2, input_dim=20, noise=1.0)
    widths: tuple[Width, ...] = SweepSpec.field("widths", (64, 256, 1024))
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear",), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss."""
    num_seeds: int = SweepSpec.field("num_seeds", 4)
    num_removed: int = Field(default=6, ge=2, le=100, title="Removed points")
    """The first training points, each of which is removed once."""
    training: DescentSettings = DescentSpec(max_steps=20_000, loss_threshold=1e-5, num_records=6)
    num_test: int = Field(default=24, ge=1, le=2000, title="Test points")
    """Held-out inputs at which changes are compared."""

    @model_validator(mode="after")
    def _points_can_be_removed(self) -> Self:
        shapes = self.shapes()
        if shapes is None:
            return self
        n = shapes.num_samples
        if n < 2:
            raise InvalidInput(
                "dataset.num_samples", n, "at least 2: without its only point nothing is trained", 2
            )
        if n * shapes.num_outputs > MOST_ROWS:
            most = MOST_ROWS // shapes.num_outputs
            allowed = f"at most {most:,}: a kernel of n·C rows is inverted"
            raise InvalidInput("dataset.num_samples", n, allowed, most)
        if self.num_removed > n:
            allowed = f"at most {n}, the number of training points"
            raise InvalidInput("num_removed", self.num_removed, allowed, n)
        if not shapes.available_test:
            raise InvalidInput("dataset.num_samples", n, "fewer, to leave test points")
        return self


def counts(spec: AttributionSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one network at one width.

    A training with all points, and one without each removed point.
    """
    letter, width = spec.value_of(key)
    network = costs.Counted.of(spec, spec.networks[letter], width)
    num_outputs = len(spec.outputs)
    trainings = 1 + spec.num_removed
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"many trainings": num_outputs},
            num_outputs * spec.num_seeds,
            steps=trainings * (typical_steps(spec.training.max_steps, most) + with_test),
            kernels=2 * with_test,
            cubes=2,
            copies=6 * trainings,
            views=2 * trainings,
            matrices=8 * with_test,
        ),
    )


class Prediction(Value):
    """Predicted changes against those of retraining.

    Attributes:
        error: ‖predicted − retrained‖ / ‖retrained‖ over removed points, test points and outputs;
            None without change.
        rank: rank correlation over the removed points, mean over test points and outputs; None
            if it is not defined.
        changes: predicted changes at the kept test points, (removed, k, C); empty but for the first
            seed.
    """

    error: NonNegative | None
    rank: float | None
    changes: tuple[tuple[tuple[float, ...], ...], ...] = ()


class AttributionRun(SeveralTrainings):
    """One start, trained on all points and without each removed one.

    Attributes:
        output: the output nonlinearity φ.
        seed: seed of the initialization w₀.
        outcome: of all trainings; the first that did not converge decides.
        steps: steps of the training with all points, and without each removed one.
        before: prediction by K(w₀).
        after: prediction by the kernel after training with all points.
        changes: changes by retraining at the kept test points, (removed, k, C); empty
            but for the first seed.
    """

    before: Prediction
    after: Prediction
    changes: tuple[tuple[tuple[float, ...], ...], ...] = ()

    @property
    def error(self) -> float:
        """Relative error of K(w₀); NaN if it is unknown."""
        return _number(self.before.error)

    @property
    def rank(self) -> float:
        """Rank correlation of K(w₀); NaN if it is unknown."""
        return _number(self.before.rank)

    @property
    def error_after(self) -> float:
        """Relative error of the kernel after training; NaN if it is unknown."""
        return _number(self.after.error)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


class AttributionPoint(NetworkPoint[AttributionRun]):
    """All runs of one network at one width.

    Attributes:
        network: its letter.
        removed: inputs of the removed points, flattened, with four digits; empty if they are large.
        targets: their targets, (removed, C).
        input_shape: shape of an input.
    """

    key_parts = AttributionSpec.key_parts

    kind: Literal["attribution"] = "attribution"
    network: str
    removed: tuple[tuple[float, ...], ...] = ()
    targets: tuple[tuple[float, ...], ...] = ()
    input_shape: tuple[NonNegativeInt, ...] = ()


COLUMNS = (
    Column("network", "network", lambda point, _: point.network, role="line"),
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    columns.SEED,
    Column(
        "error",
        "relative error",
        lambda _, run: run.before.error,
        columns.with_error,
        counts=columns.converged,
    ),
    Column(
        "rank",
        "rank correlation",
        lambda _, run: run.before.rank,
        columns.with_error,
        counts=columns.converged,
    ),
    Column("error_after", "relative error of the last kernel", lambda _, run: run.after.error),
    Column("rank_after", "rank correlation of the last kernel", lambda _, run: run.after.rank),
    columns.STEPS,
    columns.OUTCOME,
)


class AttributionResult(ResultValue):
    """Result of an ``attribution`` run.

    ‖predicted − retrained‖ / ‖retrained‖ of the changes without single points, and
    their rank correlation.

    Source: docs/math/leave-one-out.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = AttributionResult.model_validate_json((GALLERY / "point-worth.json").read_bytes())
    >>> sorted({point.network for point in result.points})
    ['A', 'B']
    """

    columns = COLUMNS
    spec: AttributionSpec
    points: tuple[AttributionPoint, ...]


def attribution_summary(spec: AttributionSpec, points: Sequence[AttributionPoint]) -> str:
    """Return the table of means over seeds, and exponents of the error.

    There is one exponent for each network and output.
    """
    return summary_of_networks(spec, points, COLUMNS, lambda run: run.error, "error")


EXPERIMENT = Experiment(
    AttributionSpec,
    AttributionPoint,
    AttributionResult,
    counts,
    attribution_summary,
    record_bytes=8000,
)
