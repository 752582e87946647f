"""Settings of training."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from linearity_lab.settings.part import SpecPart, one_of
from ntk_core.dynamics.choices import LOSSES, MAX_SOLVED_ROWS, METHODS, Method
from ntk_core.errors import InvalidInput
from ntk_core.terms import Term

USUAL_LOSS = "usual"
_USUAL = Term(
    USUAL_LOSS, "usual loss", "cross-entropy for softmax, the square loss of φ(f) otherwise"
)

if TYPE_CHECKING:  # type checkers want names; at run time they come from the tables
    LossName = str
    MethodName = str
    LinearMethodName = str
    AnyLossName = str
else:
    LossName = one_of(LOSSES)
    MethodName = one_of(METHODS)
    # Methods with a stable rate, at the rate of the spec.
    LinearMethodName = one_of(
        {name: each for name, each in METHODS.items() if each.is_linear and each.rate_factor == 1.0}
    )
    AnyLossName = one_of({USUAL_LOSS: _USUAL, **LOSSES})


def check_targets(
    loss: str, *, has_classes: bool, num_outputs: int | None = None, field: str = "loss"
) -> None:
    """Refuse a loss that needs classes for data without them, or one-hot targets for one output."""
    term = LOSSES[loss]
    if term.needs_classes and not has_classes:
        others = [each.name for each in LOSSES.values() if not each.needs_classes]
        allowed = f"{' or '.join(others)}, for data without classes"
        raise InvalidInput(field, loss, allowed, others[0])
    if term.targets == "one-hot" and num_outputs == 1:
        others = [each.name for each in LOSSES.values() if each.targets != "one-hot"]
        raise InvalidInput(field, loss, f"{' or '.join(others)}, for one output", others[0])


def check_solved_rows(
    method: str, *, num_points: int, num_outputs: int | None, field: str = "training.optimizer"
) -> None:
    """Refuse a method that solves a system of all outputs for more rows n·C than it can take."""
    num_rows = num_points * (num_outputs or 1)
    if METHODS[method].solves and num_rows > MAX_SOLVED_ROWS:
        allowed = f"another method, or at most {MAX_SOLVED_ROWS} outputs of all samples, n·C"
        given = f"{method} with n·C = {num_rows:,}"
        raise InvalidInput(field, given, allowed, "gradient-descent")


class DescentSpec(SpecPart):
    """Learning rate and stopping rule of a training.

    Steps to a loss threshold, L(w) ≤ ``loss_threshold``, or to ``max_steps``.

    Source: Liu, Zhu & Belkin 2020, §6 and App. B; rate and threshold are our choice,
    docs/jobs-and-results.md.

    >>> DescentSpec(max_steps=100).learning_rate
    'auto'
    """

    learning_rate: Literal["auto"] | Annotated[float, Field(gt=0, le=1e6)] = Field(
        default="auto", title="Learning rate η"
    )
    """Step size η; auto: from the largest eigenvalue of the kernel at w₀, shown with the result."""
    loss_threshold: float = Field(default=0.01, gt=0, le=10, title="Loss threshold")
    """Training stops below this mean loss L."""
    max_steps: int = Field(default=5_000, ge=1, le=10_000_000, title="Maximum steps")
    """Longer runs are stopped and marked."""
    num_records: int = Field(default=24, ge=2, le=200, title="Records")
    """Number of steps, logarithmically spaced, at which ΔK is measured."""

    @model_validator(mode="before")
    @classmethod
    def _takes_other_training(cls, given: Any) -> Any:
        """Take settings of training that have other defaults."""
        is_other = isinstance(given, DescentSpec) and type(given) is not cls
        return _settings_for(cls, given) if is_other else given


def _without_method(given: Any) -> Any:
    """Take the common settings of a :class:`TrainingSpec`."""
    is_other = isinstance(given, DescentSpec) and type(given) is not DescentSpec
    return DescentSpec.model_validate(_settings_for(DescentSpec, given)) if is_other else given


def _settings_for(kind: type[DescentSpec], given: DescentSpec) -> dict[str, Any]:
    """Return the given settings for another kind of training.

    Refuse those that it does not have.
    """
    for name in sorted(given.model_fields_set - set(kind.model_fields)):
        allowed = "no such setting here, where the experiment chooses it"
        raise InvalidInput(f"training.{name}", getattr(given, name), allowed)
    return {name: getattr(given, name) for name in given.model_fields_set}


# The field of experiments that choose methods and losses themselves.
DescentSettings = Annotated[DescentSpec, BeforeValidator(_without_method)]


class TrainingSpec(DescentSpec):
    """Settings of a training: method, loss, learning rate and stopping rule.

    Gradient descent w ← w − η ∇L(w), or another method, to L(w) ≤ ``loss_threshold`` or
    ``max_steps``.

    Source: Liu, Zhu & Belkin 2020, §6 and App. B; rate and threshold are our choice,
    docs/jobs-and-results.md.

    >>> TrainingSpec(max_steps=100).learning_rate
    'auto'
    """

    selector: ClassVar[str] = "optimizer"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "momentum": tuple(name for name, each in METHODS.items() if each.takes_momentum),
        "batch_size": tuple(name for name, each in METHODS.items() if each.batches == "always"),
    }

    optimizer: MethodName = Field(default="gradient-descent", title="Method")
    """How weights move in each step."""
    momentum: float = Field(default=0.9, ge=0, lt=1, title="Momentum μ")
    """Fraction μ of the last step that momentum keeps."""
    batch_size: int = Field(default=10, ge=1, le=10_000, title="Batch size")
    """Samples per step, redrawn each epoch."""
    loss: AnyLossName = Field(default=USUAL_LOSS, title="Loss")
    """Training loss of every output."""

    @property
    def method(self) -> Method:
        """The entry of the method."""
        return METHODS[self.optimizer]

    @property
    def is_gradient_descent(self) -> bool:
        """Whether steps are gradients of all samples, at any rate."""
        return not self.method.num_copies and self.method.batches == "never"

    def targets_of(self, y: Any) -> Any:
        """Return the targets of the loss from the targets y of the data, (n, C)."""
        return y if self.loss == USUAL_LOSS else LOSSES[self.loss].targets_of(y)

    def check_data(self, *, has_classes: bool, num_outputs: int | None, num_points: int) -> None:
        """Refuse a loss that does not suit the targets, and batches larger than the data."""
        if self.loss != USUAL_LOSS:
            check_targets(
                self.loss, has_classes=has_classes, num_outputs=num_outputs, field="training.loss"
            )
        check_solved_rows(self.optimizer, num_points=num_points, num_outputs=num_outputs)
        if self.uses("batch_size") and self.batch_size > num_points:
            raise InvalidInput(
                "training.batch_size",
                self.batch_size,
                f"at most {num_points:,}, the number of training points",
            )


class SquareTrainingSpec(TrainingSpec):
    """Settings of a training whose default loss is the square loss of every output.

    Source: as for :class:`TrainingSpec`.

    >>> SquareTrainingSpec().loss
    'square'
    """

    loss: LossName = Field(default="square", title="Loss")
    """Training loss of every output."""
