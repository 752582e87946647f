"""Records of training, and its outcome. Free of JAX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import PyTree
from numpy.typing import NDArray

from ntk_core.dynamics._condition import ConditionNumbers, condition_numbers

Outcome = Literal["converged", "stuck", "over-budget", "diverged", "dead", "finished"]

# Our choice: slow training reduces its loss by 7% or more in its last half, a plateau by at most
# 2%.
PLATEAU_CHANGE = 0.03
PLATEAU_SHARE = 0.05


def ended(
    steps: Sequence[int], losses: Sequence[float], threshold: float | None, *, dead: bool = False
) -> Outcome:
    """The outcome of a training, by its recorded steps and losses.

    ===============  ===============================================================================
    ``dead``         K(w₀) = 0: gradient descent changes nothing, and there is no automatic rate
    ``converged``    the last loss is at most the threshold
    ``diverged``     the last loss is not finite, or above the first
    ``stuck``        neither, and on a plateau, see :func:`on_plateau`
    ``over-budget``  none of these: the loss was still changing when the steps ran out
    ``finished``     neither dead nor diverged, without a threshold
    ===============  ===============================================================================
    """
    if dead:
        return "dead"
    if threshold is not None and losses[-1] <= threshold:
        return "converged"
    if not (math.isfinite(losses[-1]) and losses[-1] <= losses[0]):
        return "diverged"
    if threshold is None:
        return "finished"
    return "stuck" if on_plateau(steps, losses) else "over-budget"


def on_plateau(steps: Sequence[int], losses: Sequence[float]) -> bool:
    """Whether the loss is on a plateau.

    In the last half of the steps (from the last record in the first half) it varied by less than 3%
    of its final value and by at most a twentieth of its total decrease.

    >>> on_plateau([0, 10, 100, 500, 1000], [1.0, 0.4, 0.21, 0.201, 0.2])
    True
    >>> on_plateau([0, 10, 100, 500, 1000], [1.0, 0.9999, 0.999, 0.995, 0.99])  # a tiny rate
    False
    """
    half = max((index for index, step in enumerate(steps) if 2 * step <= steps[-1]), default=0)
    change = max(losses[half:]) - min(losses[half:])
    return change < PLATEAU_CHANGE * losses[-1] and change <= PLATEAU_SHARE * (
        losses[0] - losses[-1]
    )


FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """One model along the recorded steps; rows after a divergence are not finite.

    Attributes:
        outputs, test_outputs: F at the followed training points (T, k, C) and test points
            (T, k', C).
        loss, test_loss: mean losses, (T,); NaN without test points.
        accuracy, test_accuracy: shares of correctly classified points, (T,); NaN without classes.
        distance: ‖w_t − w₀‖₂, (T,).
        largest_distance: ‖w_t − w₀‖_∞, (T,); NaN for infinite width.
        gradient_norm: ‖∇_w L(w_t)‖₂, (T,).
        outcome: by the training loss, see ``ntk_core.dynamics._history.ended``.
        last_finite_step: the last step whose loss was finite.
        crossing_step: the first recorded step whose training loss is at the threshold; None without
            one.
    """

    outputs: FloatArray
    test_outputs: FloatArray
    loss: FloatArray
    test_loss: FloatArray
    accuracy: FloatArray
    test_accuracy: FloatArray
    distance: FloatArray
    largest_distance: FloatArray
    gradient_norm: FloatArray
    outcome: Outcome
    last_finite_step: int
    crossing_step: int | None = None

    @property
    def pl_ratio(self) -> FloatArray:
        """‖∇L‖² / 2L at the recorded steps, (T,).

        The loss decreases exponentially while this is above a constant μ > 0 (PL* condition).

        Source: Liu, Zhu & Belkin 2020, §5.
        """
        return np.asarray(self.gradient_norm**2 / (2 * np.where(self.loss > 0, self.loss, np.nan)))


@dataclass(frozen=True)
class KernelPath:
    """The tangent kernel of φ(f) along the recorded steps, on the training points.

    Attributes:
        change: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, (T,).
        smallest, largest: λ_min and λ_max of K(w_t) as an nC × nC matrix, (T,).
        pre_output_smallest: λ_min of the kernel of the pre-outputs f, (T,); |φ'| ≥ ρ
            multiplies it by at least ρ².
        pre_output_change: ΔK(t) of the kernel of f at the same parameters, (T,).
        layer_change: for each trained layer, ‖K_l(w_t) − K_l(w₀)‖_F / ‖K(w₀)‖_F, (T,): parts of the
            change, on one scale; empty for a callable.
        num_points: training points over which the kernel is taken, the first ones.
        num_rows: n · C, rows of the kernel as a matrix.
        precision: ε of the type in which the kernel was computed.
    """

    change: FloatArray
    smallest: FloatArray
    largest: FloatArray
    pre_output_smallest: FloatArray
    pre_output_change: FloatArray
    layer_change: dict[str, FloatArray]
    num_points: int
    num_rows: int
    precision: float

    @property
    def sup_change(self) -> float:
        """sup over the recorded steps of ΔK(t)."""
        return max(
            (float(value) for value in self.change if math.isfinite(value)), default=math.nan
        )

    @property
    def condition(self) -> FloatArray:
        """λ_max / λ_min, (T,).

        It is a lower bound where ``condition_is_bound``, and NaN after a divergence.
        """
        return self._condition.values

    @property
    def condition_is_bound(self) -> NDArray[np.bool_]:
        """Whether λ_min is within rounding of zero, (T,): at most n·C·ε·λ_max."""
        return self._condition.is_lower_bound

    @property
    def _condition(self) -> ConditionNumbers:
        return condition_numbers(self.smallest, self.largest, self.num_rows, self.precision)


@dataclass(frozen=True)
class Difference:
    """Difference of two models over all points of a set.

    Attributes:
        mean_square: (1/n) Σ_i ‖F(x_i) − F_lin(x_i)‖², (T,).
        relative: that divided by (1/n) Σ_i ‖F_lin(x_i)‖² (Hu, Xiao, Adlam & Pennington 2020, §4),
            (T,).
    """

    mean_square: FloatArray
    relative: FloatArray


@dataclass(frozen=True)
class TrainingHistory:
    """Result of :func:`ntk_core.train`.

    Row t of every array belongs to ``steps[t]``, the first to w₀.

    Attributes:
        steps: recorded step indices, (T,); time is ``learning_rate`` × step.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        stable_rate: 2n / (β λ_max(K(w₀))), times 1 + μ with momentum: above it the linear model
            diverges (for square loss exactly); None for Adam, for which there is no such rate.
        network: the model itself.
        linearized: its linear model, trained from the same w₀ by the same steps; None if not
            requested.
        infinite: the infinite-width prediction from the same outputs at w₀; None if not
            requested or unknown.
        kernel: the kernel along the path; None if not requested.
        difference, test_difference: network against linear model, on all training and test points.
        followed, followed_test: indices of the followed points.
        params: the trained parameters, a tree like w₀; None in the history of an
            unfinished :class:`Training`.
    """

    steps: NDArray[np.int64]
    learning_rate: float
    stable_rate: float | None
    network: Path
    linearized: Path | None
    infinite: Path | None
    kernel: KernelPath | None
    difference: Difference | None
    test_difference: Difference | None
    followed: NDArray[np.int64]
    followed_test: NDArray[np.int64]
    params: PyTree = None

    def __repr__(self) -> str:
        """Steps and rate, without the recorded arrays."""
        parts = [f"{self.steps[-1]:,} steps, {len(self.steps)} records"] if len(self.steps) else []
        parts.append(f"learning rate {self.learning_rate:.4g}")
        if self.stable_rate is not None:
            parts.append(f"stable below {self.stable_rate:.4g}")
        recorded = [
            name for name in ("linearized", "infinite", "kernel") if getattr(self, name) is not None
        ]
        if recorded:
            parts.append("with " + ", ".join(recorded))
        return f"TrainingHistory({'; '.join(parts)})"

    @property
    def times(self) -> FloatArray:
        """learning_rate × step, (T,); NaN without a rate."""
        return np.asarray(
            self.steps * (self.learning_rate if math.isfinite(self.learning_rate) else math.nan)
        )
