"""A base for experiments that train networks against something swept."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.networks.sizes import num_copies
from linearity_lab.networks.spec import ArchitectureSpec, OutputName
from linearity_lab.runs import (
    Outcome,
    SweepSpec,
    Value,
    WidthPoint,
    costs,
    finite_sup,
)
from linearity_lab.settings.part import Once
from linearity_lab.settings.training import DescentSpec, TrainingSpec
from ntk_core.dynamics import MAX_KERNEL_ROWS, most_kernel_points
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import almost_everywhere
from ntk_core.stored_numbers import NonNegative

Outputs = Annotated[tuple[OutputName, ...], Once]


def outputs_field(default: tuple[str, ...], words: str = "") -> Any:
    """Field of the compared outputs; ``words`` describe how each is trained."""
    words = f"Output nonlinearities φ to compare{words}."
    return Field(
        default=default,
        min_length=1,
        max_length=4,
        title="Outputs φ",
        description=words,
        json_schema_extra={"common_ending": " output"},
    )


class TrainedSweep(SweepSpec):
    """Base of specs whose points train one network per line and seed.

    Validates that the network accepts the data, and counts the work of training.
    """

    max_kernel_rows: ClassVar[int | None] = None
    """Largest n·C of a kernel, if all of its eigenvalues are computed."""

    if TYPE_CHECKING:  # fields of the subclasses, which order them
        architecture: ArchitectureSpec
        training: DescentSpec

    @model_validator(mode="after")
    def _network_takes_data(self) -> Self:
        shapes = self.shapes()
        # Experiments without a field of this name have their own loss and batches.
        training = getattr(self, "training", None)
        if isinstance(training, TrainingSpec):
            training.check_data(
                has_classes=shapes is None or bool(shapes.class_names),
                num_outputs=None if shapes is None else shapes.num_outputs,
                num_points=self.dataset.num_points,
            )
        if shapes is not None:
            self.architecture.check_inputs(shapes.input_shape, widths=self.widths)
            n = shapes.num_samples
            most = self.max_kernel_rows and self.max_kernel_rows // shapes.num_outputs
            if most is not None and n > most:
                raise InvalidInput(
                    "dataset.num_samples", n, f"at most {most}: all n·C eigenvalues are taken"
                )
        return self

    @property
    def num_kernel_rows(self) -> int:
        """Rows n·C of the kernels along training.

        The largest number if the data set is not yet known.
        """
        shapes = self.shapes()
        if shapes is None:
            return MAX_KERNEL_ROWS
        num_points = min(shapes.num_samples, most_kernel_points(shapes.num_outputs))
        return num_points * shapes.num_outputs

    @property
    def almost_everywhere(self) -> str:
        """Curvature that second derivatives miss at kinks; empty without kinks."""
        return almost_everywhere(self.architecture.activations, self.all_outputs)

    def typical_steps(self, most: bool) -> int:
        """Typical steps until convergence, or with ``most`` all allowed steps."""
        return costs.typical_steps(self.training.max_steps, most)

    def counted(self, width: int) -> costs.Counted:
        """Count the network of this width on the data."""
        return costs.Counted.of(self, self.architecture, width, num_copies(self.architecture))

    def trainings(self, width: int, num_lines: int, steps: float, **more: Any) -> costs.Counts:
        """Count one width: ``num_lines`` trainings per seed, with a kernel at each record.

        Args:
            more: further counts, see :class:`Counts`; kernels are added to those of the records.
        """
        programs = {"training": len(self.all_outputs), **more.pop("programs", {})}
        kernels = self.training.num_records + more.pop("kernels", 0)
        held = {"copies": 5, "views": 1, "matrices": 20, **more}
        if isinstance(self.training, TrainingSpec):
            held["copies"] += self.training.method.num_copies
            if self.training.method.solves:
                kernels += steps
                held["cubes"] = held.get("cubes", 0) + steps
        return costs.Counts(
            self.counted(width),
            programs,
            num_lines * self.num_seeds,
            steps=steps,
            kernels=kernels,
            **held,
        )


class RecordedTraining(Value):
    """Kernel change along one training run.

    Attributes:
        steps: the recorded steps.
        change: ΔK there, relative to the kernel at w₀.

    >>> training = RecordedTraining(steps=(0, 10, 50), change=(0.0, 0.2, 0.1))
    >>> training.sup_change, training.num_steps
    (0.2, 50)
    """

    recorded_at: ClassVar[str] = "steps"

    steps: tuple[NonNegativeInt, ...]
    change: tuple[NonNegative, ...]

    @property
    def sup_change(self) -> float:
        """Sup of ΔK(t) over recorded times (Liu, Zhu & Belkin 2020, §6)."""
        return finite_sup(self.change)

    @property
    def num_steps(self) -> int:
        """Steps taken until the run ended."""
        return self.steps[-1]


class TrainedRun(RecordedTraining):
    """One training by gradient descent.

    Attributes:
        seed: seed of the initialization w₀.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        outcome: how it ended, see ``ntk_core.dynamics._history.ended``.
        loss: the mean training loss at the recorded steps; not finite after a divergence.
    """

    seed: NonNegativeInt
    learning_rate: NonNegative
    outcome: Outcome
    loss: tuple[NonNegative, ...]


Run = TypeVar("Run", bound=Value)


class TrainedPoint(WidthPoint, Generic[Run]):
    """All trainings of one width.

    Attributes:
        num_params: p, number of trained parameters.
        runs: one entry per training.
        line: the fields of a run that name its line in figures and tables.
    """

    line: ClassVar[tuple[str, ...]] = ("output",)

    num_params: NonNegativeInt
    runs: tuple[Run, ...]

    def of(self, *line: object) -> tuple[Run, ...]:
        """Runs with these values of the fields of :attr:`line`, in order.

        None or a missing value selects all.
        """
        runs = self.runs
        for name, value in zip(self.line, line, strict=False):
            if value is not None:
                runs = tuple(run for run in runs if getattr(run, name) == value)
        return runs


def along(
    points: Iterable[TrainedPoint[Run]], *line: object, by: str = "width"
) -> list[tuple[float, Run]]:
    """(width, run) of all runs of one line, see :meth:`TrainedPoint.of`."""
    return [(float(getattr(point, by)), run) for point in points for run in point.of(*line)]
