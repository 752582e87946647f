"""Settings of training."""

from typing import Annotated, Literal

from pydantic import Field

from linearity_lab.settings.part import SpecPart


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
