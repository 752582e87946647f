"""Alignment, distance, leading eigenspaces and their angles."""

import math

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped
from scipy.linalg import eigh, subspace_angles
from scipy.sparse.linalg import eigsh

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_float64, unit
from ntk_core.kernels._outputs import as_matrix
from ntk_core.usual_settings import with_usual_settings

DENSE_ROWS = 1500  # up to this size all eigenvectors are as fast as the leading ones


@with_usual_settings
def alignment(kernel: Float[ArrayLike, "..."], y: Shaped[ArrayLike, "..."]) -> float:
    """Return the alignment of a kernel with its targets.

    A = yᵀKy / (‖K‖_F ‖y‖²), from 0 to 1; 1 for K = y yᵀ. NaN where either is 0.

    >>> alignment(np.eye(4), np.ones(4))
    0.5

    Args:
        kernel: (n, n, C, C), or (n, n) for a kernel that is the same for each output and
            vanishes between them.
        y: (n, C), or (n,) for one output.

    Returns:
        A number from 0 to 1.

    Raises:
        InvalidInput: for incompatible shapes.

    Source: Cristianini, Shawe-Taylor, Elisseeff & Kandola 2001.
    """
    matrix = as_matrix(in_float64(kernel, "kernel"))
    targets = in_float64(y, "y")
    if np.ndim(kernel) == 4 and targets.shape == (np.shape(kernel)[0], np.shape(kernel)[2]):
        targets = targets.reshape(-1)
    columns = targets[:, None] if targets.ndim == 1 else targets
    if columns.ndim != 2 or matrix.shape != (len(columns), len(columns)):
        raise InvalidInput(
            "y", f"shape {np.shape(y)}", f"one row for each row of the kernel {np.shape(kernel)}"
        )
    # The alignment depends on neither scale.
    matrix = unit(matrix)
    columns = unit(columns)
    size = float(np.linalg.norm(matrix)) * math.sqrt(columns.shape[1]) * float(np.sum(columns**2))
    return float(np.sum(columns * (matrix @ columns))) / size if size else math.nan


@with_usual_settings
def kernel_distance(kernel: Float[ArrayLike, "..."], other: Float[ArrayLike, "..."]) -> float:
    """Return the scale-free distance of two kernels.

    1 − ⟨K, K'⟩ / (‖K‖_F ‖K'‖_F) of two kernels of one shape, (n, n) or (n, n, C, C): 0 for
    multiples of each other. NaN where either is 0.

    >>> kernel_distance(np.eye(4), np.diag([1.0, 0.0, 0.0, 0.0]))
    0.5

    Args:
        kernel, other: kernels of one shape.

    Returns:
        A number from 0 to 1 for positive semidefinite kernels.

    Raises:
        InvalidInput: for different shapes.

    Source: Fort, Dziugaite, Paul, Kharaghani, Roy & Ganguli 2020, §3.
    """
    kernel = in_float64(kernel, "kernel")
    other = in_float64(other, "other")
    if kernel.shape != other.shape:
        raise InvalidInput(
            "other", f"shape {other.shape}", f"shape {kernel.shape}, that of the kernel"
        )
    kernel = unit(kernel)
    other = unit(other)
    norms = [float(np.linalg.norm(each)) for each in (kernel, other)]
    if not all(norms) or not np.isfinite(norms).all():
        return math.nan
    # 1 − cos, without the cancellation of nearly equal kernels.
    return 0.5 * float(np.linalg.norm(kernel / norms[0] - other / norms[1])) ** 2


def leading_eigenvectors(
    kernel: Float[np.ndarray, "rows rows"], count: int
) -> Float[np.ndarray, "rows count"]:
    """Return eigenvectors of the ``count`` largest eigenvalues (or all), descending, in columns."""
    rows = len(kernel)
    count = min(count, rows)
    if rows <= DENSE_ROWS or 2 * count > rows:
        return np.asarray(eigh(kernel, subset_by_index=[rows - count, rows - 1])[1][:, ::-1])
    start = np.random.default_rng(0).standard_normal(rows)  # a kernel can send (1, …, 1) to 0
    values, vectors = eigsh(kernel, k=count, which="LA", v0=start)
    return np.asarray(vectors[:, np.argsort(values)[::-1]])


def target_share(
    vectors: Float[np.ndarray, "rows count"], y: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " count"]:
    """‖P_k y‖² / ‖y‖² with P_k onto the first k = 1, 2, … of the orthonormal columns.

    Ascending, at most 1.

    >>> target_share(np.eye(2), np.array([3.0, 4.0])).tolist()
    [0.36, 1.0]
    """
    direction = unit(np.asarray(y, np.float64))
    return np.asarray(np.cumsum((vectors.T @ direction) ** 2) / (direction @ direction))


def principal_angles(
    vectors: Float[np.ndarray, "rows count"], others: Float[np.ndarray, "rows count"]
) -> Float[np.ndarray, " count"]:
    """Angles between two subspaces, in degrees, ascending: arccos of the singular values of VᵀV'.

    Source: Björck & Golub 1973.
    """
    return np.asarray(np.degrees(subspace_angles(vectors, others))[::-1])
