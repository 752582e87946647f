"""Condition numbers of kernels that were computed in finite precision. Free of JAX."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ntk_core.real_numbers import real_array, real_number, whole_number

MAX_KERNEL_ROWS = 900  # largest n·C of a kernel with a spectrum at every record
SINGLE_PRECISION = float(np.finfo(np.float32).eps)  # of the kernels of the experiments


def most_kernel_points(num_outputs: int) -> int:
    """Return how many training points have a kernel with a spectrum at every record, by default."""
    return max(1, MAX_KERNEL_ROWS // num_outputs)


class ConditionNumbers(NamedTuple):
    """Condition numbers, and which of them are only lower bounds.

    Attributes:
        values: λ_max / λ_min, or 1 / (rows · ε) where λ_min is within rounding of zero; NaN where
            λ_max is not finite or not above zero.
        is_lower_bound: where λ_min is at most rows · ε · λ_max, so that the kernel may be singular.
    """

    values: Float[np.ndarray, "*shape"]
    is_lower_bound: Bool[np.ndarray, "*shape"]


def condition_numbers(
    smallest: np.ndarray | Sequence[float],
    largest: np.ndarray | Sequence[float],
    num_rows: int,
    precision: float = SINGLE_PRECISION,
) -> ConditionNumbers:
    """Return λ_max / max(λ_min, rows · ε · λ_max) of positive semidefinite kernels.

    Rounding moves the eigenvalues of a kernel by up to about rows · ε · λ_max. Below that, λ_min is
    noise of either sign, and its reciprocal is no condition number.

    >>> found = condition_numbers([0.5, 1e-9], [2.0, 2.0], num_rows=10)
    >>> found.values.round(0).tolist(), found.is_lower_bound.tolist()
    ([4.0, 838861.0], [False, True])

    Args:
        smallest, largest: λ_min and λ_max, arrays of one shape.
        num_rows: rows of the kernel as a matrix, n · C.
        precision: ε of the type in which the kernel was computed, float32 by default.

    Raises:
        InvalidInput: for values that are no numbers, or arrays of two shapes.

    Source: Golub & Van Loan 2013, §8.1.2 (Weyl) and §2.7; the factor rows is the usual
    one of numerical ranks.
    """
    low = real_array(smallest, "smallest")
    high = real_array(largest, "largest", low.shape)
    whole_number(num_rows, "num_rows", 1)
    real_number(precision, "precision", 0)
    is_known = np.isfinite(high) & (high > 0)
    top = np.where(is_known, high, np.nan)
    rounding = num_rows * precision * top
    is_lower_bound = is_known & ~(low > rounding)
    values = top / np.where(low > rounding, low, rounding)
    return ConditionNumbers(values, is_lower_bound)
