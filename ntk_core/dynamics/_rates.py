"""The spectrum of a kernel, and the learning rates that follow from it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from scipy.sparse.linalg import eigsh

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import Model, Origin

AUTO_RATE_SHARE = 0.25
ADAM_FIRST_MOVE = 0.05
ADAM_ROWS = 16


def kernel_matrix(kernel: Float[Array | np.ndarray, "n1 n2 C C"]) -> Float[np.ndarray, "rows columns"]:
    """A kernel (n, n, C, C) as an nC × nC matrix in float64, rows (i, a)."""
    n, _, num_outputs, _ = kernel.shape
    return np.asarray(kernel, np.float64).transpose(0, 2, 1, 3).reshape(n * num_outputs, n * num_outputs)


def eigenvalues(kernel: Float[Array | np.ndarray, "n n C C"]) -> Float[np.ndarray, " rows"]:
    """All n·C eigenvalues of a kernel (n, n, C, C), descending; NaN where the kernel is not finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan)
    return np.linalg.eigvalsh(matrix)[::-1]


def largest_eigenvalue(kernel: Float[Array | np.ndarray, "n n C C"]) -> float:
    """λ_max of a symmetric kernel (n, n, C, C), taken as an nC × nC matrix; NaN where the kernel is not finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return math.nan
    if len(matrix) < 3 or not matrix.any():  # Lanczos iterations need a direction to start from
        return float(np.linalg.eigvalsh(matrix)[-1])
    return float(eigsh(matrix, k=1, which="LA", v0=np.ones(len(matrix)), return_eigenvectors=False)[0])


def auto_learning_rate(kernel: Float[Array | np.ndarray, "n n C C"], loss: Loss) -> float:
    """η = ¼ · 2n / (β λ_max(K)): a quarter of the largest rate at which the linearized model does not diverge.

    ``kernel`` is the kernel of the pre-outputs f at w₀, (n, n, C, C); β bounds the curvature of one sample's loss in f.
    The quarter is our choice: it leaves room for kernels that grow during training. Infinite where K is 0.
    """
    scale = loss.curvature * largest_eigenvalue(kernel)
    return AUTO_RATE_SHARE * 2 * kernel.shape[0] / scale if scale else math.inf


def adam_rate(model: Model, origin: Origin, x: Array) -> float:
    """η = 0.05 / max ‖∇_w F_a(x_i; w₀)‖₁: Adam's first step, of η for each weight, moves no output further than 0.05.

    The maximum is over all outputs of the first 16 inputs. It grows as √m in the NTK parameterization. Our choice.
    """

    def norms(row: Array) -> Array:
        jacobian = jax.jacrev(lambda w: model.outputs(w, origin.fixed, row[None])[0])(origin.trained)
        parts = [jnp.sum(jnp.abs(leaf), axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(jacobian)]
        return jnp.max(jnp.sum(jnp.stack(parts), axis=0))

    return ADAM_FIRST_MOVE / float(jnp.max(jax.jit(lambda rows: jax.lax.map(norms, rows))(x[:ADAM_ROWS])))
