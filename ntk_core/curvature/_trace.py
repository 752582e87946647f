"""The trace of a symmetric matrix from its products with random vectors, with an interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

MIN_PRODUCTS = 6  # two vectors of each of the three parts of Hutch++
Vectors = Float[np.ndarray, "k p"]


@dataclass(frozen=True)
class TraceEstimate:
    """An estimated trace.

    tr A = E vᵀA v for random signs v.

    Attributes:
        value: the estimate, without bias.
        error: its standard error.
        interval: half-width of the 95% interval, ``value`` ± ``interval``, by Student's t;
            over the random vectors.
        num_products: products with the matrix.
        method: ``hutch++`` or ``hutchinson``.

    Source: Hutchinson 1989; Meyer, Musco, Musco & Woodruff 2021.

    >>> TraceEstimate(2.0, 0.1, 0.2, 12, "hutch++").value
    2.0
    """

    value: float
    error: float
    interval: float
    num_products: int
    method: str


def estimated_trace(
    products: Callable[[Vectors], Vectors],
    size: int,
    num_products: int,
    method: str,
    rng: np.random.Generator,
) -> TraceEstimate:
    """Return tr A from products of A with rows of random signs, (k, p) ↦ (k, p).

    Hutchinson: the mean of vᵀA v. Hutch++: tr(QᵀA Q) exactly, for an orthonormal basis Q of A
    g for a third of the vectors g, and Hutchinson on the complement of Q, which lacks the
    largest eigenvalues.
    """

    known = 0.0
    num_left = num_products
    basis = np.zeros((size, 0))
    if method == "hutch++":
        num_sketched = min(num_products // 3, size)
        sketch = products(rng.choice((-1.0, 1.0), (num_sketched, size)))
        basis = np.linalg.qr(sketch.T)[0]  # (p, num_sketched)
        known = float(np.sum(basis.T * products(basis.T)))
        num_left = num_products - 2 * num_sketched
        if num_sketched == size:  # the basis spans the whole space
            return TraceEstimate(known, 0.0, 0.0, 2 * num_sketched, method)
    signs = rng.choice((-1.0, 1.0), (num_left, size))
    rest = signs - (signs @ basis) @ basis.T
    samples = np.sum(rest * products(rest), axis=1)
    error = float(np.std(samples, ddof=1)) / math.sqrt(num_left)
    return TraceEstimate(
        value=known + float(np.mean(samples)),
        error=error,
        interval=float(stdtrit(num_left - 1, 0.975)) * error,
        num_products=num_products,
        method=method,
    )
