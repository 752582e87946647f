"""Full-batch gradient descent, in compiled stretches between which the host may look, record and stop."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse.linalg import eigsh

from ntk_core.architectures import Network, NetworkParams, merge
from ntk_core.dynamics._losses import Loss

AUTO_RATE_SHARE = 0.25


class DescentState(NamedTuple):
    """Where a run is.

    Attributes:
        trained: trained parameters w_t.
        step: t.
        loss: the loss at w_{t-1}, which the last step has seen; infinite before the first step.
    """

    trained: NetworkParams
    step: Array
    loss: Array


def start(trained: NetworkParams) -> DescentState:
    """The state before the first step; ``trained`` is handed over (its buffers are reused)."""
    # Full types from the start, the same as those that a step gives back, so that one compilation serves all stretches.
    return DescentState(trained, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf, jnp.result_type(float)))


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def descend(
    net: Network,
    loss: Loss,
    state: DescentState,
    fixed: NetworkParams,
    x: Array,
    y: Array,
    rate: Array,
    until_step: Array,
    threshold: Array,
) -> DescentState:
    """w_{t+1} = w_t − η ∇L(w_t) until ``until_step``, or until the loss is at most ``threshold`` or not finite.

    The stretch has a dynamic length, so that one compilation serves all of a run. ``state`` is donated.
    """

    def goes_on(state: DescentState) -> Array:
        first = state.step == 0
        return (state.step < until_step) & (first | ((state.loss > threshold) & jnp.isfinite(state.loss)))

    def step(state: DescentState) -> DescentState:
        value, gradient = jax.value_and_grad(lambda w: loss(net.pre_outputs(merge(w, fixed), x), y))(state.trained)
        moved = jax.tree.map(lambda w, g: w - rate * g, state.trained, gradient)
        return DescentState(moved, state.step + 1, value)

    return jax.lax.while_loop(goes_on, step, state)


def kernel_matrix(kernel: Array | np.ndarray) -> np.ndarray:
    """A kernel (n, n, C, C) as an nC × nC matrix in float64, rows (i, a)."""
    n, _, num_outputs, _ = kernel.shape
    return np.asarray(kernel, np.float64).transpose(0, 2, 1, 3).reshape(n * num_outputs, n * num_outputs)


def eigenvalues(kernel: Array | np.ndarray) -> np.ndarray:
    """All n·C eigenvalues of a kernel (n, n, C, C), descending; NaN where the kernel is not finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan)
    return np.linalg.eigvalsh(matrix)[::-1]


def largest_eigenvalue(kernel: Array | np.ndarray) -> float:
    """λ_max of a symmetric kernel (n, n, C, C), taken as an nC × nC matrix; NaN where the kernel is not finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return math.nan
    if len(matrix) < 3:
        return float(np.linalg.eigvalsh(matrix)[-1])
    return float(eigsh(matrix, k=1, which="LA", v0=np.ones(len(matrix)), return_eigenvectors=False)[0])


def auto_learning_rate(kernel: Array, loss: Loss) -> float:
    """η = ¼ · 2n / (β λ_max(K)): a quarter of the largest rate at which the linearized model does not diverge.

    ``kernel`` is the kernel of the pre-outputs f at w₀, (n, n, C, C); β bounds the curvature of one sample's loss in f.
    The quarter is our choice: it leaves room for kernels that grow during training.
    """
    return AUTO_RATE_SHARE * 2 * kernel.shape[0] / (loss.curvature * largest_eigenvalue(kernel))


def record_steps(max_steps: int, num_records: int) -> list[int]:
    """Increasing steps at which to look, from 1 to ``max_steps``, evenly spaced on a logarithmic axis."""
    grid = np.geomspace(1, max_steps, min(num_records, max_steps))
    return sorted({round(step) for step in grid} | {max_steps})
