"""Settings of training."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from linearity_lab.settings.part import SpecPart, one_of
from ntk_core.dynamics.choices import LOSSES, METHODS
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:  # type checkers want names; at run time they come from the tables
    LossName = str
    MethodName = str
    PlainMethodName = str
else:
    LossName = one_of(LOSSES)
    MethodName = one_of(METHODS)
    PlainMethodName = one_of({name: each for name, each in METHODS.items() if each.is_plain})


def check_targets(loss: str) -> None:
    """Refuse a loss that needs classes, for data without them."""
    if LOSSES[loss].needs_classes:
        others = [each.name for each in LOSSES.values() if not each.needs_classes]
        raise InvalidInput(
            "loss", loss, f"{' or '.join(others)}, for data without classes", others[0]
        )


class TrainingSpec(SpecPart):
    """Settings of gradient descent and its stopping rule.

    Gradient descent w ← w − η ∇L(w) to a loss threshold, L(w) ≤ ``loss_threshold``, or to ``max_steps``.

    Source: Liu, Zhu & Belkin 2020, §6 and App. B; rate and threshold are our choice, docs/jobs-and-results.md.

    >>> TrainingSpec(max_steps=100).learning_rate
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
