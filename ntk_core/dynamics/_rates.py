"""Spectra of kernels, and learning rates derived from them."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import Model
from ntk_core.dynamics._steps import over_seeds
from ntk_core.errors import InvalidInput
from ntk_core.kernels import KernelOperator, real_array
from ntk_core.usual_settings import with_usual_settings

AUTO_RATE_SHARE = 0.25
LIVE_SHARE = 0.5
ADAM_FIRST_MOVE = 0.05
ADAM_ROWS = 16


def kernel_matrix(
    kernel: Float[Array | np.ndarray, "n1 n2 C C"],
) -> Float[np.ndarray, "rows columns"]:
    """Reshape a kernel (n1, n2, C, C) to an n1·C × n2·C matrix in float64, rows (i, a)."""
    rows, columns, num_outputs, _ = kernel.shape
    return (
        np.asarray(kernel, np.float64)
        .transpose(0, 2, 1, 3)
        .reshape(rows * num_outputs, columns * num_outputs)
    )


def eigenvalues(kernel: Float[Array | np.ndarray, "n n C C"]) -> Float[np.ndarray, " rows"]:
    """Return all n·C eigenvalues of a kernel (n, n, C, C), descending; NaN unless finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan)
    return np.linalg.eigvalsh(matrix)[::-1]


def largest_eigenvalue(kernel: Float[Array | np.ndarray, "n n C C"]) -> float:
    """Return λ_max of a symmetric kernel (n, n, C, C) as an nC × nC matrix; NaN unless finite."""
    matrix = kernel_matrix(kernel)
    if not np.isfinite(matrix).all():
        return math.nan
    if len(matrix) < 3:
        return float(np.linalg.eigvalsh(matrix)[-1])
    # A kernel can send (1, …, 1) to 0, and have eigenvectors orthogonal to it.
    start = np.random.default_rng(0).standard_normal(len(matrix))
    try:
        return float(eigsh(matrix, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
    except ArpackError:  # the kernel is 0, or too small to resolve
        return float(np.linalg.eigvalsh(matrix)[-1])


@with_usual_settings
def auto_learning_rate(kernel: Float[Array | np.ndarray, "n n C C"], loss: Loss) -> float:
    """Return η = ¼ · 2n / (β λ_max(K)), a quarter of the linear model's largest stable rate.

    ``kernel`` is the kernel of the pre-outputs f at w₀, (n, n, C, C); β bounds the curvature of
    one sample's loss in f. The quarter is our choice, a margin for kernels that grow during
    training. Infinite if K is 0.

    A network that is dead at most inputs has a small λ_max, so its rate would be too large. A
    single ReLU neuron is active for half of all directions: if fewer than half of the n inputs have
    a gradient (K(x, x) above the relative precision of the kernel), n is replaced by twice their
    number, as for a network alive at half of the inputs.
    """
    array = np.asarray(real_array(kernel, "kernel"))
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(np.float64)
    if array.ndim != 4 or array.shape[0] != array.shape[1] or array.shape[2] != array.shape[3]:
        raise InvalidInput("kernel", f"shape {array.shape}", "shape (n, n, C, C)")
    return _rate(largest_eigenvalue(array), np.einsum("iiaa->i", array), loss)


def streamed_rate(kernel: KernelOperator, loss: Loss) -> float:
    """Return :func:`auto_learning_rate` of a kernel given by products.

    λ_max has the precision of their type.
    """
    sizes = kernel.row_traces
    size = kernel.shape[0]
    if not (np.isfinite(sizes).all() and sizes.any()):
        return math.nan if sizes.any() else math.inf
    if size < 3:
        matrix = np.stack([kernel.flat_product(row) for row in np.eye(size)])
        return _rate(float(np.linalg.eigvalsh(matrix)[-1]), sizes, loss)
    product = LinearOperator(
        kernel.shape, lambda v: kernel.flat_product(v.ravel()), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal(size)
    # The error of an eigenvalue is of the order of its squared residual.
    tolerance = math.sqrt(jnp.finfo(sizes.dtype).eps)
    found = eigsh(product, k=1, which="LA", v0=start, tol=tolerance, return_eigenvectors=False)
    return _rate(float(found[0]), sizes, loss)


def _rate(largest: float, sizes: Float[np.ndarray, " n"], loss: Loss) -> float:
    """η from λ_max and the traces of K(x_i, x_i)."""
    scale = loss.curvature * largest
    if not scale:
        return math.inf
    live = int(np.sum(sizes > jnp.finfo(sizes.dtype).eps * sizes.max(initial=0)))
    return AUTO_RATE_SHARE * 2 * min(len(sizes), live / LIVE_SHARE) / scale if live else math.nan


def adam_rates(
    model: Model, trained: PyTree, fixed: PyTree, x: Array, together: bool
) -> Float[np.ndarray, " seeds"]:
    """Return η = 0.05 / max ‖∇_w F_a(x_i; w₀)‖₁ of each seed (one unless ``together``).

    Adam's first step, η per weight, then changes outputs by at most 0.05. The maximum is over all
    outputs of the first 16 inputs. It grows as √m in the NTK parameterization. Our choice. Infinite
    if no weight changes an output.
    """
    largest = np.asarray(_largest_gradients(model, together, trained, fixed, x[:ADAM_ROWS]))
    largest = largest.astype(np.float64).reshape(-1)
    rates = np.full(len(largest), math.inf)
    np.divide(ADAM_FIRST_MOVE, largest, out=rates, where=largest != 0)
    return rates


@partial(jax.jit, static_argnums=(0, 1))
def _largest_gradients(
    model: Model, together: bool, trained: PyTree, fixed: PyTree, x: Array
) -> Array:
    """max ‖∇_w F_a(x_i; w)‖₁ over inputs and outputs: a scalar, or one for each seed."""

    def of_seed(trained: PyTree, fixed: PyTree) -> Array:
        def norms(row: Array) -> Array:
            jacobian = jax.jacrev(lambda w: model.outputs(w, fixed, row[None])[0])(trained)
            parts = [
                jnp.sum(jnp.abs(leaf), axis=tuple(range(1, leaf.ndim)))
                for leaf in jax.tree.leaves(jacobian)
            ]
            return jnp.max(jnp.sum(jnp.stack(parts), axis=0))

        return jnp.max(jax.lax.map(norms, x))

    found: Array = over_seeds(of_seed, trained, fixed) if together else of_seed(trained, fixed)
    return found
