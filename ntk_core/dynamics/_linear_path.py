"""The linear model of a network along gradient descent, trained by its kernel at w₀."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int, Shaped

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import KernelAndStart, KernelModel
from ntk_core.dynamics._optimizer import Optimizer
from ntk_core.dynamics._short_runs import compiled
from ntk_core.dynamics._steps import DescentState, advance, start
from ntk_core.traced import through_output

# Records of ``softmax_changes`` are padded to a multiple of this, so that trainings which stop
# at other records share one compiled program. Our choice.
PADDED_TO = 32


def linear_path(
    loss: Loss,
    kernel: Float[Array, "n n C C"],
    f0: Float[Array, "n C"],
    y: Float[Array, "n C"],
    rate: Array | float,
    steps: Int[Array, " T"],
) -> Float[Array, "T n C"]:
    """Return F_lin at some steps of gradient descent; for compiled programs.

    F_lin ← F_lin − η K ∂L/∂F, with the kernel K of F at w₀: the outputs of gradient
    descent in its weights.

    Args:
        loss: with its F, the pre-outputs or φ of them.
        kernel: of the pre-outputs at w₀, (n, n, C, C).
        f0: pre-outputs at w₀, (n, C).
        y: targets, (n, C).
        rate: η of the mean loss.
        steps: ascending.

    Source: Lee et al. 2019, §2.2.
    """
    model = KernelModel(loss)
    descent = Optimizer()
    of_model = through_output(loss.model_output, kernel, f0, f0)
    fixed = KernelAndStart(of_model, loss.model(f0))

    def to_record(state: DescentState, step: Array) -> tuple[DescentState, Array]:
        # The model knows its points by their rows in the kernel, so the targets stand in for x.
        state = advance(model, descent, state, fixed, y, y, rate, step)
        return state, model.outputs(state.trained, fixed, y)

    at_start = start(model, descent, jnp.zeros_like(fixed.start), len(y))
    _, outputs = jax.lax.scan(to_record, at_start, steps)
    return outputs


def softmax_changes(
    kernel: ArrayLike,
    f0: ArrayLike,
    y: ArrayLike,
    rate: float,
    steps: Sequence[int],
    loss: str = "cross-entropy",
) -> tuple[float, ...]:
    """Return ΔK(t) of softmax(f_lin) at some steps of training, in float64.

    The kernel of softmax(f_lin) is S_i K S_jᵀ with S = diag(p) − p pᵀ. It vanishes as p becomes 0
    or 1, for any f: its change is near 1 although nothing in f_lin has changed.

    Args:
        kernel: K(w₀) of f, (n, n, C, C).
        f0: outputs at w₀, (n, C).
        y: one-hot targets, (n, C).
        rate: learning rate η of the mean loss.
        steps: recorded steps, ascending from 0.
        loss: of softmax(f_lin): ``cross-entropy`` or ``square``.

    Returns:
        One change per step; NaN from a divergence on, and for a kernel that is 0, as of a dead
        network.

    Source: Liu, Zhu & Belkin 2020, App. B, Eq. 46, with f_lin in place of f.
    """
    num_records = len(steps)
    num_missing = -num_records % PADDED_TO
    padded_steps = np.pad(np.asarray(steps, np.int32), (0, num_missing), mode="edge")
    # NumPy converts to float64 without a compiled program.
    given = [np.asarray(each, np.float64) for each in (kernel, f0, y)]
    rule = LossOfPreOutputs("softmax", loss)
    with jax.enable_x64(True):
        changes = _softmax_changes(rule, *given, np.float64(rate), padded_steps)
    return tuple(np.asarray(changes, float)[:num_records].tolist())


@dataclass(frozen=True)
class LossOfPreOutputs(Loss):
    """A loss whose model F is f: its linear model is f_lin, also where φ(f) enters the loss."""

    @property
    def model_output(self) -> str:
        """``linear``: F = f."""
        return "linear"

    def of_model(self, outputs: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        """The mean loss of φ(f), a scalar, as a function of f, (n, C)."""
        usual = Loss(self.output, self.kind)
        return usual(outputs, y)


# XLA's older emitters compile this in half the time, and its steps are as fast.
@compiled("data", usual_level=1, static_argnums=0)
def _softmax_changes(
    loss: Loss, kernel: Array, f0: Array, y: Array, rate: Array | float, steps: Array
) -> Float[Array, " T"]:
    return changes_along(kernel, f0, linear_path(loss, kernel, f0, y, rate, steps))


def changes_along(
    kernel: Float[Array, "n n C C"], f0: Float[Array, "n C"], path: Float[Array, "T n C"]
) -> Float[Array, " T"]:
    """Return ΔK(t) of softmax(f) along a path of f from f₀, for a constant kernel of f.

    For compiled programs; see :func:`softmax_changes`.

    Source: Liu, Zhu & Belkin 2020, App. B, Eq. 46, with f_lin in place of f.
    """
    first = through_output("softmax", kernel, f0, f0)
    size = jnp.linalg.norm(first.ravel())

    def change_at(f: Array) -> Array:
        difference = through_output("softmax", kernel, f, f) - first
        change = jnp.linalg.norm(difference.ravel()) / size
        return jnp.where(size > 0, change, jnp.nan)

    # One record at a time: kernels of all records may not fit into memory.
    return jax.lax.map(change_at, path)
