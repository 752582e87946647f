"""Regression with a kernel: what a linear model predicts once it fits its training points."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, lapack

from ntk_core.errors import InvalidInput
from ntk_core.traced import accepted_targets

# Of the mean of the diagonal, added to it: about the rounding of a float32 kernel of some thousand rows. Our choice.
JITTER = 1e-6


class KernelRegression(NamedTuple):
    """What :func:`kernel_regression` found.

    Attributes:
        outputs: predictions, (others, columns); NaN where a kernel or target is not finite.
        jitter: what was added to the diagonal on top of the ridge, in units of its mean.
        condition: condition number in the 1-norm of the matrix that was inverted, as LAPACK estimates it.
    """

    outputs: Float[np.ndarray, "others columns"]
    jitter: float
    condition: float


def kernel_regression(
    kernel: Float[np.ndarray, "rows rows"],
    targets: Float[np.ndarray, "rows ..."],
    cross: Float[np.ndarray, "others rows"],
    ridge: float = 0.0,
) -> KernelRegression:
    """Return the predictions of kernel ridge regression.

    K(x, X) (K(X, X) + (λ + ε) k̄ 1)⁻¹ y in float64, by Cholesky; k̄ = tr K / rows.

    λ = ``ridge`` and the jitter ε = 1e-6 are in units of k̄, so that a kernel and a multiple of it predict alike. Where
    the factor does not exist, ε is taken ten times as large until it does. Several outputs are rows (i, a) of K, or
    columns of y where their kernels are equal and vanish between them; targets (rows,) count as one column. A kernel of
    0 predicts 0.

    >>> one, two = np.ones((1, 1)), np.full((1, 1), 2.0)
    >>> kernel_regression(two, one, one, ridge=1.0).outputs.item()  # 1 / (2 + 1 · 2)
    0.24999987500006252

    Raises:
        InvalidInput: for a ridge below 0, and for shapes that do not belong together.

    Source: Jacot, Gabriel & Hongler 2018, §5; Rasmussen & Williams 2006, Algorithm 2.1.
    """
    if not ridge >= 0:
        raise InvalidInput("ridge", ridge, "a number from 0 on")
    rows = len(kernel)
    if np.shape(kernel) != (rows, rows):
        raise InvalidInput("kernel", f"shape {np.shape(kernel)}", "a square matrix, such as outputs' rows (i, a)")
    if np.ndim(cross) != 2 or cross.shape[1] != rows:
        raise InvalidInput("cross", f"shape {np.shape(cross)}", f"shape (others, {rows}), as in the kernel")
    targets = accepted_targets(targets, rows, None, "targets")
    nothing = np.full((len(cross), targets.shape[1]), np.nan)
    if not all(np.isfinite(each).all() for each in (kernel, targets, cross)):
        return KernelRegression(nothing, math.nan, math.nan)
    scale = float(np.trace(kernel)) / len(kernel)
    if scale <= 0:
        return KernelRegression(np.zeros_like(nothing), 0.0, math.inf)
    diagonal, jitter = np.diag_indices(len(kernel)), JITTER
    while True:
        matrix = np.array(kernel, np.float64, order="F")
        matrix[diagonal] += (ridge + jitter) * scale
        norm = float(np.abs(matrix).sum(axis=0).max())
        factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        if not failed:
            break
        jitter *= 10
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    solved = cho_solve((factor, True), np.asarray(targets, np.float64), check_finite=False)
    return KernelRegression(cross @ solved, jitter, 1 / reciprocal if reciprocal else math.inf)
