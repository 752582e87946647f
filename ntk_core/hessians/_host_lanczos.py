"""Lanczos with full reorthogonalization in NumPy, around a compiled product.

Like :mod:`_lanczos`, for one eigenvalue of one matrix. Only the product is compiled, since the iteration takes longer
to compile than to run; for frequent norms also stretches of it. On an orthonormal basis Q, A is compressed to a
tridiagonal T = Qᵀ A Q. With β the norm of A q_j outside Q and s the last entry of an eigenvector of T, |β s| is the
norm of the residual A y − θ y.

Source: Golub & Van Loan, Matrix Computations (4th ed.), §10.1–10.3; Parlett, The Symmetric Eigenvalue Problem, ch. 13.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal, norm

from ntk_core.hessians._certificate import EXHAUSTED_UP_TO, least_growth, margin_of
from ntk_core.hessians._lanczos import Tridiagonal

STRETCH, SHORTEST = (
    8,
    2,
)  # products per dispatch; near the end as many as the residual's decrease suggests
CHECK_EVERY = (
    16  # check at products 1, …, 16, then at every second, third, …: few unneeded products
)
Vector = Float[np.ndarray, " d"]


class Leading(NamedTuple):
    """Eigenvalue of largest |λ| with its residual, convergence and number of products."""

    value: float
    residual: float
    converged: bool
    num_matvecs: int


def leading(
    product: Callable[[Vector], tuple[ArrayLike, ArrayLike]],
    start: Vector,
    max_matvecs: int,
    tolerance: float,
    dimension: int | None = None,
) -> Leading:
    """The eigenvalue of largest |λ| of P A P, of either sign; NaN if a product is not finite.

    Args:
        product: v ↦ (P v, A P v) for a symmetric A of size d that maps the range of the projection P into itself; its
            arrays are copied when read.
        start: a random vector, (d,).
        max_matvecs: maximum number of products.
        tolerance: of the residual, relative to |θ|.
        dimension: of the range of P, or an upper bound; d by default. Spaces of at most 32 dimensions are exhausted.
    """
    limits = np.finfo(start.dtype)
    inside, image = map(np.asarray, product(start))
    if not (np.all(np.isfinite(inside)) and np.all(np.isfinite(image))):
        return Leading(math.nan, math.nan, False, 1)
    length = norm(inside)
    if length == 0:
        return Leading(0.0, 0.0, True, 1)
    following, image = inside / length, image / length
    dimension = start.size if dimension is None else dimension
    max_matvecs = min(max_matvecs, dimension)
    basis = np.empty((max_matvecs, start.size), start.dtype)  # rows take memory when written
    diagonal, off_diagonal = np.zeros((2, max_matvecs))
    for count in range(1, max_matvecs + 1):
        if count > 1:
            image = np.asarray(product(following)[1])
        if not np.all(np.isfinite(image)):
            return Leading(math.nan, math.nan, False, count)
        basis[count - 1] = following
        rows = basis[:count]
        along = _along(rows, image)
        diagonal[count - 1] = along[-1]
        rest = image - _sum(along, rows)
        rest -= _sum(
            _along(rows, rest), rows
        )  # twice is enough (Parlett, §6.9); once fails after 60 products
        off_diagonal[count - 1] = beta = float(norm(rest))
        following = rest / rest.dtype.type(beta) if beta else rest
        largest = max(np.abs(diagonal[:count]).max(), off_diagonal[: count - 1].max(initial=0.0))
        ending = beta <= 100 * limits.eps * largest or count == max_matvecs
        skipped = count % (1 + count // CHECK_EVERY) != 0 or dimension <= EXHAUSTED_UP_TO
        if skipped and not ending:
            continue
        found = _ritz(diagonal[:count], off_diagonal[:count], tolerance, limits, dimension)
        if found.converged or found.residual == 0:
            break
    return found


def leading_in_stretches(
    advance: Callable[[Tridiagonal, int], Tridiagonal],
    state: Tridiagonal,
    max_matvecs: int,
    tolerance: float,
    dimension: int,
) -> Leading:
    """Like :func:`leading`, with steps and basis on the device.

    Args:
        advance: (state, number of steps) ↦ the state after these steps; the old one may be overwritten.
        state: that before the first step.
        max_matvecs, tolerance, dimension: as for :func:`leading`.
    """
    limits, done, size, before = np.finfo(state.diagonal.dtype), 0, STRETCH, 0.0
    max_matvecs = min(max_matvecs, dimension)
    while True:
        size = min(size, max_matvecs - done)
        state, done = advance(state, size), done + size
        diagonal = np.asarray(state.diagonal)[:done]
        off_diagonal = np.asarray(state.off_diagonal)[:done]
        if not (np.all(np.isfinite(diagonal)) and np.all(np.isfinite(off_diagonal))):
            return Leading(math.nan, math.nan, False, done)
        found = _ritz(diagonal, off_diagonal, tolerance, limits, dimension)
        is_small = dimension <= EXHAUSTED_UP_TO
        unfinished = is_small and done < max_matvecs and found.residual > 0
        if unfinished:
            continue
        if found.converged or done == max_matvecs:
            return found
        due, aim = math.inf, tolerance * abs(found.value)
        if aim and 0 < found.residual < before:
            due = size * math.log(found.residual / aim) / math.log(before / found.residual)
        size, before = min(STRETCH, max(SHORTEST, math.ceil(min(due, STRETCH)))), found.residual


def _ritz(
    diagonal: Float[np.ndarray, " k"],
    off_diagonal: Float[np.ndarray, " k"],
    tolerance: float,
    limits: np.finfo,
    dimension: int,
) -> Leading:
    """Return the Ritz value of largest |θ| of T; β is the next off-diagonal entry."""
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    sizes = np.abs(values)
    at = int(np.argmax(sizes))
    other = 0 if at else len(sizes) - 1  # the other end of the spectrum
    size, beta = float(sizes[at]), float(off_diagonal[-1])
    exhausted = beta <= 100 * limits.eps * size  # the remainder is rounding
    residuals = np.zeros_like(sizes) if exhausted else beta * np.abs(vectors[-1])
    # The other end often converges a few products later, to a larger eigenvalue.
    converged = (
        residuals[at] <= tolerance * size
        and sizes[other] + residuals[other] <= (1 + tolerance) * size
    )
    if not exhausted and len(diagonal) < dimension:
        excess = margin_of(tolerance, dimension)
        converged &= _growth(values, off_diagonal, excess) >= least_growth(dimension)
    # A nonzero value below the precision of the format is unreliable at any residual.
    converged &= not 0 < size * limits.eps < limits.tiny
    return Leading(float(values[at]), float(residuals[at]), bool(converged), len(diagonal))


def _growth(
    values: Float[np.ndarray, " k"], off_diagonal: Float[np.ndarray, " k"], excess: float
) -> float:
    """Return the smaller log |p_k| at ±(1 + excess)·max |θ|; see :mod:`_certificate`."""
    if not np.all(off_diagonal > 0):  # the Krylov space of the start is exhausted
        return math.inf
    beyond = (1 + excess) * np.abs(values).max()
    if beyond == 0:
        return -math.inf
    scale = np.log(off_diagonal).sum()
    above = np.log(beyond - values).sum() - scale
    below = np.log(beyond + values).sum() - scale
    return float(min(above, below))


# Not ``@``: BLAS threads would keep spinning on the cores of the next product (a third of its time).
def _along(rows: Float[np.ndarray, "k d"], vector: Vector) -> Float[np.ndarray, " k"]:
    return np.add.reduce(rows * vector, axis=1)


def _sum(factors: Float[np.ndarray, " k"], rows: Float[np.ndarray, "k d"]) -> Vector:
    return np.einsum("k,kd->d", factors, rows)
