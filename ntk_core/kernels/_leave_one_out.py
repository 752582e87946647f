"""Kernel regression without each of its training points, from one factorization."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import in_float64, real_array
from ntk_core.kernels._outputs import as_matrix
from ntk_core.kernels._regression import check_ridge, factorized
from ntk_core.traced import accepted_targets
from ntk_core.usual_settings import with_usual_settings


@dataclass(frozen=True, repr=False)
class LeaveOneOut:
    """Result of :func:`leave_one_out`.

    Attributes:
        changes: predictions without point i minus those with all, (n, others, C).
        residuals: y_i minus the prediction at x_i without point i, (n, C).
        jitter: number added to the diagonal in addition to the ridge, in units of the mean
            diagonal.
    """

    changes: Float[np.ndarray, "n others C"]
    residuals: Float[np.ndarray, "n C"]
    jitter: float

    def __repr__(self) -> str:
        n, others, num_outputs = self.changes.shape
        error = np.sqrt(np.mean(self.residuals**2)) if n else np.nan
        return (
            f"LeaveOneOut({n} points, {others} predictions, {num_outputs} outputs; "
            f"root mean square of residuals {error:.4g})"
        )


@with_usual_settings
def leave_one_out(
    kernel: Float[np.ndarray, "..."],
    targets: Float[np.ndarray, "..."],
    cross: Float[np.ndarray, "..."],
    ridge: float = 0.0,
) -> LeaveOneOut:
    """Predict how kernel regression changes without each training point.

    With A = K(X, X) + (λ + ε) k̄ 1 and α = A⁻¹ y, removing point i changes the predictions by
    −K(x, X) (A⁻¹)_{:,i} ((A⁻¹)_{ii})⁻¹ α_i, and y_i − f_{−i}(x_i) = ((A⁻¹)_{ii})⁻¹ α_i. With
    several outputs, ii is the (C, C) block of the point. One factorization gives all points.

    The linear model at w₀, trained to convergence, is f(w₀) plus regression with K(w₀) on
    y − f(w₀). For y − f(w₀), the changes are those of its outputs. λ and ε are in units of k̄ of
    all points, also where one is removed.

    Args:
        kernel: K(X, X), of shape (n, n), shared by all outputs, or (n, n, C, C).
        targets: y, or y − f(w₀), of shape (n, C), or (n,) for one output.
        cross: K(x, X), of shape (others, n) or (others, n, C, C).
        ridge: λ.

    Returns:
        Changes and residuals; NaN where a kernel or target is not finite.

    >>> one, y = np.eye(2), np.array([1.0, 2.0])
    >>> left = leave_one_out(one, y, one, ridge=1.0)
    >>> left.changes[0, 0].round(3)  # at the first point, without it
    array([-0.5])

    Raises:
        InvalidInput: for a ridge below 0 or incompatible shapes.

    Source: Allen 1974 (PRESS); Rasmussen & Williams 2006, §5.4.2; docs/math/leave-one-out.md.
    """
    check_ridge(ridge)
    is_block = np.ndim(real_array(kernel, "kernel")) == 4
    kernel = in_float64(kernel, "kernel")
    cross = in_float64(cross, "cross")
    if kernel.ndim not in (2, 4) or kernel.shape[0] != kernel.shape[1] or not kernel.size:
        raise InvalidInput("kernel", f"shape {kernel.shape}", "(n, n) or (n, n, C, C) with n ≥ 1")
    n = len(kernel)
    size = kernel.shape[2] if is_block else 1  # rows of a point
    if cross.ndim != kernel.ndim or cross.shape[1:] != kernel.shape[1:]:
        allowed = f"shape (others, {', '.join(map(str, kernel.shape[1:]))}), as the kernel"
        raise InvalidInput("cross", f"shape {cross.shape}", allowed)
    num_outputs = size if is_block else None
    y = np.asarray(accepted_targets(targets, n, num_outputs, "targets"), np.float64)
    matrix = as_matrix(kernel) if is_block else kernel
    across = as_matrix(cross, "cross") if is_block else cross
    columns = y.reshape(n * size, -1)  # (n C, 1), or (n, C) columns with one kernel
    others = len(cross)
    outputs = y.shape[1]
    finite = all(np.isfinite(each).all() for each in (matrix, across, y))
    scale = float(np.trace(matrix)) / len(matrix) if finite else math.nan
    if not finite:
        nothing = np.full((n, others, outputs), np.nan)
        return LeaveOneOut(nothing, np.full((n, outputs), np.nan), math.nan)
    if scale <= 0:  # a kernel of 0 predicts 0, with and without a point
        return LeaveOneOut(np.zeros((n, others, outputs)), y, 0.0)
    factor, jitter, _ = factorized(matrix, ridge, scale)
    inverse = cho_solve((factor, True), np.eye(len(matrix)), check_finite=False)
    coefficients = inverse @ columns
    changes = np.empty((n, others, outputs))
    residuals = np.empty((n, outputs))
    for point in range(n):
        rows = slice(point * size, (point + 1) * size)
        residual = np.linalg.solve(inverse[rows, rows], coefficients[rows])
        changes[point] = -(across @ (inverse[:, rows] @ residual)).reshape(others, outputs)
        residuals[point] = residual.reshape(outputs)
    return LeaveOneOut(changes, residuals, jitter)
