"""Networks trained on several tasks from one start, and the sums of their changes."""

import functools
import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

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
    columns,
    costs,
    typical_steps,
)
from linearity_lab.runs.columns import Column
from linearity_lab.settings.part import Once, Width
from linearity_lab.settings.training import SquareTrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.stored_numbers import NonNegative

KEPT_POINTS = 60  # test points whose outputs are kept; our choice
FEWEST_TASKS = 2
MOST_TASKS = 8


class AddingSpec(TrainedNetworks, SpecOf["AddingResult"]):
    """Whether training on several tasks adds.

    Every task trains the network from the same w₀ on its own part of the training points,
    by gradient descent on the square loss: τ_k = w_k − w₀. With F(w) = f(w) − f(w₀) at
    test points, E = ‖F(w₀ + λ Σ τ_k) − λ Σ F(w₀ + τ_k)‖ / ‖λ Σ F(w₀ + τ_k)‖. A linear
    model has E = 0 for every λ.

    Points of training are dealt to the tasks in turn; inputs of one dimension are cut into
    intervals.

    Source: after Ortiz-Jimenez, Favero & Frossard 2023, §3; docs/math/adding-networks.md.

    >>> AddingSpec(widths=(64, 256)).point_keys()
    ('network=A,width=64', 'network=B,width=64', 'network=A,width=256', 'network=B,width=256')
    """

    experiment: Literal["adding"] = "adding"
    architectures: tuple[ArchitectureSpec, ...] = architectures_field(
        ArchitectureSpec(activation="tanh"),
        ArchitectureSpec(kind="bottleneck", depth=3, activation="tanh"),
    )
    """Number of networks to compare."""
    dataset: DatasetSpec = DatasetSpec(num_samples=24, num_classes=2, noise=0.5)
    widths: tuple[Width, ...] = SweepSpec.field("widths", (64, 256, 1024, 4096))
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear", "swish"), min_length=1, max_length=4, title="Outputs φ"
    )
    """Output nonlinearities φ to compare, each trained with the square loss."""
    num_seeds: int = SweepSpec.field("num_seeds", 4)
    num_tasks: int = Field(default=2, ge=FEWEST_TASKS, le=MOST_TASKS, title="Tasks T")
    """Number T of tasks; each has its own part of the training points."""
    scale: float = Field(default=1.0, ge=-4, le=4, title="Scale λ")
    """Factor of the added vectors: 1 adds the tasks, −1 negates them."""
    training: SquareTrainingSpec = SquareTrainingSpec(
        max_steps=20_000, loss_threshold=1e-3, num_records=6
    )
    num_test: int = Field(default=200, ge=1, le=2000, title="Test points")
    """Held-out inputs at which outputs are compared."""

    @model_validator(mode="after")
    def _tasks_fit(self) -> Self:
        if self.scale == 0:
            raise InvalidInput(
                "scale", self.scale, "a number other than 0, which adds nothing", 1.0
            )
        shapes = self.shapes()
        if shapes is None:
            return self
        if shapes.num_samples < FEWEST_TASKS:
            allowed = f"at least {FEWEST_TASKS}: each task is trained on points of its own"
            raise InvalidInput("dataset.num_samples", shapes.num_samples, allowed, FEWEST_TASKS)
        if shapes.num_samples < self.num_tasks:
            raise InvalidInput(
                "num_tasks",
                self.num_tasks,
                f"at most {shapes.num_samples}, the number of training points",
                shapes.num_samples,
            )
        if not shapes.available_test:
            raise InvalidInput(
                "dataset.num_samples", shapes.num_samples, "fewer, to leave test points"
            )
        return self

    @property
    def is_curve(self) -> bool:
        """Whether the network is a curve: one input, one output."""
        shapes = self.shapes()
        return shapes is not None and (*shapes.input_shape, shapes.num_outputs) == (1, 1)


def counts(spec: AddingSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one network at one width: a training for each task, output and seed."""
    letter, width = spec.value_of(key)
    network = costs.Counted.of(spec, spec.networks[letter], width)
    num_outputs = len(spec.outputs)
    # All tasks together take one step of all points for one step each; the outputs are
    # taken T + 2 times.
    steps = typical_steps(spec.training.max_steps, most)
    outputs = (spec.num_tasks + 2) * (1 + network.num_test / network.num_samples)
    return (
        Counts(
            network,
            {"training": num_outputs, "linear model": num_outputs},
            num_outputs * spec.num_seeds,
            steps=steps + outputs,
            kernels=spec.num_tasks,
            copies=6 + spec.num_tasks,
            views=1,
            matrices=8,
        ),
    )


class AddingRun(SeveralTrainings):
    """One start, trained on every task, and the sums.

    Attributes:
        output: the output nonlinearity φ.
        seed: seed of the initialization w₀.
        outcome: of the tasks; the first that did not converge decides.
        steps: steps of each task.
        error: E of the first 1, …, T tasks; None if the changes add up to 0.
        linear: ‖F − J Σ λ τ_k‖ / ‖J Σ λ τ_k‖ of all tasks, for the linear model at w₀
            with the same vectors.
        together: f(w₀ + λ Σ τ_k) at the kept test points, (k, C); empty but for the first seed.
        summed: f(w₀) + λ Σ F(w₀ + τ_k) there, (k, C).
        tasks: f(w₀ + τ_k) there, (T, k, C), of curves.
        of_linear: f(w₀) + J λ Σ τ_k there, (k, C), of curves.
    """

    error: tuple[NonNegative | None, ...]
    linear: NonNegative | None
    together: tuple[tuple[float, ...], ...] = ()
    summed: tuple[tuple[float, ...], ...] = ()
    tasks: tuple[tuple[tuple[float, ...], ...], ...] = ()
    of_linear: tuple[tuple[float, ...], ...] = ()

    @property
    def last_error(self) -> float:
        """E of all tasks; NaN if it is unknown."""
        return math.nan if self.error[-1] is None else self.error[-1]

    @property
    def error_of_two(self) -> float:
        """E of the first two tasks; NaN if it is unknown."""
        return math.nan if self.error[1] is None else self.error[1]

    @property
    def growth(self) -> float:
        """E of all tasks over that of the first two; NaN if either is unknown."""
        return self.last_error / self.error_of_two if self.error_of_two else math.nan


class AddingPoint(NetworkPoint[AddingRun]):
    """All runs of one network at one width.

    Attributes:
        network: its letter.
        x: the kept test inputs of curves, (k,).
        x_train, y_train: inputs and targets of each task, of curves.
    """

    key_parts = AddingSpec.key_parts

    kind: Literal["adding"] = "adding"
    network: str
    x: tuple[float, ...] = ()
    x_train: tuple[tuple[float, ...], ...] = ()
    y_train: tuple[tuple[float, ...], ...] = ()


COLUMNS = (
    Column("network", "network", lambda point, _: point.network, role="line"),
    columns.WIDTH,
    columns.NUM_PARAMS,
    columns.OUTPUT,
    columns.SEED,
    Column(
        "addition_error",
        "E",
        lambda _, run: run.error[-1],
        columns.with_error,
        counts=columns.converged,
    ),
    Column("linear_error", "distance to the linear model", lambda _, run: run.linear),
    columns.STEPS,
    columns.OUTCOME,
    *(
        Column(
            f"addition_error_{count}",
            f"E of {count} tasks",
            functools.partial(lambda _, run, count: _error_of(run, count), count=count),
            optional=True,
        )
        for count in range(2, MOST_TASKS)
    ),
)


def _error_of(run: AddingRun, count: int) -> float | None:
    """Return E of the first tasks if there are more."""
    return run.error[count - 1] if count < len(run.error) else None


class AddingResult(ResultValue):
    """Result of an ``adding`` run.

    E = ‖F(w₀ + λ Σ τ_k) − λ Σ F(w₀ + τ_k)‖ / ‖λ Σ F(w₀ + τ_k)‖ of every network,
    width, output and seed.

    Source: docs/math/adding-networks.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = AddingResult.model_validate_json((GALLERY / "adding-networks.json").read_bytes())
    >>> sorted({point.network for point in result.points})
    ['A', 'B']
    """

    columns = COLUMNS
    spec: AddingSpec
    points: tuple[AddingPoint, ...]


def adding_summary(spec: AddingSpec, points: Sequence[AddingPoint]) -> str:
    """Return the table of means over seeds and the exponent of E for each network and output."""
    return summary_of_networks(spec, points, COLUMNS, lambda run: run.last_error, "E")


EXPERIMENT = Experiment(
    AddingSpec, AddingPoint, AddingResult, counts, adding_summary, record_bytes=1500
)
