"""Kernel regression: predictions of a linear model that fits its training points."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, lapack, solve_triangular

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_float64, real_array
from ntk_core.kernels._outputs import as_matrix
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import accepted_targets
from ntk_core.usual_settings import with_usual_settings

# Share of the mean diagonal, about the rounding of a float32 kernel with a thousand rows. Our
# choice.
JITTER = 1e-6


class KernelRegression(NamedTuple):
    """Result of :func:`kernel_regression`.

    Attributes:
        outputs: predictions, (others, columns); NaN where a kernel or target is not finite.
        jitter: number added to the diagonal in addition to the ridge, in units of the mean
            diagonal.
        condition: condition number of the inverted matrix in the 1-norm, as estimated by LAPACK.
        variance: predictive variance for each row of ``cross``; None without a prior.
    """

    outputs: Float[np.ndarray, "others columns"]
    jitter: float
    condition: float
    variance: Float[np.ndarray, "..."] | None = None

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.outputs.shape))
        variance = "" if self.variance is None else ", with variances"
        return (
            f"KernelRegression({shape} predictions{variance}; condition {self.condition:.2g}, "
            f"jitter {self.jitter:.0e})"
        )


@with_usual_settings
def kernel_regression(
    kernel: Float[np.ndarray, "..."],
    targets: Float[np.ndarray, "..."],
    cross: Float[np.ndarray, "..."],
    ridge: float = 0.0,
    prior: Float[np.ndarray, "..."] | None = None,
) -> KernelRegression:
    """Return the predictions of kernel ridge regression.

    K(x, X) (K(X, X) + (λ + ε) k̄ 1)⁻¹ y in float64, by Cholesky; k̄ = tr K / rows.

    λ = ``ridge`` and the jitter ε = 1e-6 are in units of k̄, so a kernel and its multiples predict
    alike. ε increases tenfold until the Cholesky factor exists. Several outputs are rows (i, a) of
    K, or columns of y if they share one kernel and are independent. A kernel of 0 predicts 0.

    Args:
        kernel: K(X, X), of shape (rows, rows) or (n, n, C, C).
        targets: y, of shape (rows, columns), (rows,) for one column, or (n, C).
        cross: K(x, X), of shape (others, rows) or (others, n, C, C).
        ridge: λ.
        prior: diagonal K(x, x), for the variance of the Gaussian process with this kernel and noise
            (λ + ε) k̄: K(x, x) − K(x, X) (K(X, X) + (λ + ε) k̄ 1)⁻¹ K(X, x), never below 0.

    Returns:
        Predictions with jitter, condition number and variance; (others, C) for a
        kernel (n, n, C, C).

    >>> one, two = np.ones((1, 1)), np.full((1, 1), 2.0)
    >>> kernel_regression(two, one, one, ridge=1.0).outputs.item()  # 1 / (2 + 1 · 2)
    0.24999987500006252

    Raises:
        InvalidInput: for a ridge below 0 or incompatible shapes.

    Source: Jacot, Gabriel & Hongler 2018, §5; Rasmussen & Williams 2006, Algorithm 2.1.
    """
    if np.ndim(real_array(kernel, "kernel")) == 4:
        return _over_outputs(kernel, targets, cross, ridge, prior)
    check_ridge(ridge)
    kernel = in_float64(kernel, "kernel")
    cross = in_float64(cross, "cross")
    targets = in_float64(targets, "targets")
    prior = None if prior is None else in_float64(prior, "prior")
    if not kernel.ndim or not kernel.size:
        raise InvalidInput("kernel", f"shape {kernel.shape}", "a matrix with at least one row")
    rows = len(kernel)
    if np.shape(kernel) != (rows, rows):
        raise InvalidInput(
            "kernel", f"shape {np.shape(kernel)}", "a square matrix, such as outputs' rows (i, a)"
        )
    if np.ndim(cross) != 2 or cross.shape[1] != rows:
        raise InvalidInput(
            "cross", f"shape {np.shape(cross)}", f"shape (others, {rows}), as in the kernel"
        )
    targets = np.asarray(accepted_targets(targets, rows, None, "targets"), np.float64)
    if prior is not None and np.shape(prior) != (len(cross),):
        raise InvalidInput(
            "prior", f"shape {np.shape(prior)}", f"shape ({len(cross)},), one number a row of cross"
        )
    nothing = np.full((len(cross), targets.shape[1]), np.nan)
    if not all(np.isfinite(each).all() for each in (kernel, targets, cross)):
        no_variance = None if prior is None else nothing[:, 0]
        return KernelRegression(nothing, math.nan, math.nan, no_variance)
    scale = float(np.trace(kernel)) / len(kernel)
    if scale <= 0:
        return KernelRegression(np.zeros_like(nothing), 0.0, math.inf, prior)
    factor, jitter, condition = factorized(kernel, ridge, scale)
    solved = cho_solve((factor, True), targets, check_finite=False)
    variance = None
    if prior is not None:
        # With the factor L, L⁻¹ K(X, x): its squares sum to the variance that the targets remove.
        half = solve_triangular(factor, cross.T, lower=True, check_finite=False)
        removed = np.einsum("ri,ri->i", half, half)
        variance = np.maximum(prior - removed, 0.0)
    return KernelRegression(cross @ solved, jitter, condition, variance)


def factorized(kernel: np.ndarray, ridge: float, scale: float) -> tuple[np.ndarray, float, float]:
    """Return the Cholesky factor of K + (λ + ε) k̄ 1, the jitter ε, and the condition number."""
    diagonal = np.diag_indices(len(kernel))
    jitter = JITTER
    while True:
        matrix = np.array(kernel, np.float64, order="F")
        matrix[diagonal] += (ridge + jitter) * scale
        norm = float(np.abs(matrix).sum(axis=0).max())
        factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        if not failed:
            break
        jitter *= 10
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    condition = 1 / reciprocal if reciprocal else math.inf
    return factor, jitter, condition


def check_ridge(ridge: object) -> None:
    """Refuse anything but a finite number from 0 on."""
    if not (is_finite_number(ridge) and ridge >= 0):
        raise InvalidInput("ridge", ridge, "a finite number from 0 on")


def _over_outputs(
    kernel: np.ndarray,
    targets: np.ndarray,
    cross: np.ndarray,
    ridge: float,
    prior: np.ndarray | None,
) -> KernelRegression:
    """Regress with outputs as rows (i, a); predictions (others, C), variances (others, C)."""
    kernel = in_float64(kernel, "kernel")
    cross = in_float64(cross, "cross")
    if not kernel.size:
        raise InvalidInput("kernel", f"shape {kernel.shape}", "a matrix with at least one row")
    num_outputs = kernel.shape[2]
    others = len(cross) if cross.ndim else 0
    y = accepted_targets(targets, len(kernel), num_outputs, "targets")
    if np.ndim(cross) != 4:
        raise InvalidInput(
            "cross",
            f"shape {np.shape(cross)}",
            f"shape (others, {len(kernel)}, C, C), as the kernel",
        )
    if prior is not None:
        if np.shape(prior) != (others, num_outputs, num_outputs):
            raise InvalidInput(
                "prior",
                f"shape {np.shape(prior)}",
                f"shape ({others}, {num_outputs}, {num_outputs})",
            )
        prior = np.einsum("iaa->ia", in_float64(prior, "prior")).ravel()
    rows = np.asarray(y).reshape(-1, 1)
    found = kernel_regression(as_matrix(kernel), rows, as_matrix(cross, "cross"), ridge, prior)
    shape = (others, num_outputs)
    variance = None if found.variance is None else found.variance.reshape(shape)
    return found._replace(outputs=found.outputs.reshape(shape), variance=variance)
