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
) -> Leading:
    """The eigenvalue of largest |λ| of P A P, of either sign.

    Args:
        product: v ↦ (P v, A P v) for a symmetric A of size d that maps the range of the projection P into itself; its
            arrays are copied when read.
        start: a random vector, (d,).
        max_matvecs: maximum number of products.
        tolerance: of the residual, relative to |θ|.
    """
    limits = np.finfo(start.dtype)
    inside, image = map(np.asarray, product(start))
    length = norm(inside)
    if length == 0:
        return Leading(0.0, 0.0, True, 1)
    following, image = inside / length, image / length
    basis = np.empty((max_matvecs, start.size), start.dtype)  # rows take memory when written
    diagonal, off_diagonal = np.zeros((2, max_matvecs))
    for count in range(1, max_matvecs + 1):
        if count > 1:
            image = np.asarray(product(following)[1])
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
        if count % (1 + count // CHECK_EVERY) and not ending:
            continue
        found = _ritz(diagonal[:count], off_diagonal[:count], tolerance, limits)
        if found.converged or found.residual == 0:
            break
    return found


def leading_in_stretches(
    advance: Callable[[Tridiagonal, int], Tridiagonal],
    state: Tridiagonal,
    max_matvecs: int,
    tolerance: float,
) -> Leading:
    """Like :func:`leading`, with steps and basis on the device.

    Args:
        advance: (state, number of steps) ↦ the state after these steps; the old one may be overwritten.
        state: that before the first step.
        max_matvecs, tolerance: as for :func:`leading`.
    """
    limits, done, size, before = np.finfo(state.diagonal.dtype), 0, STRETCH, 0.0
    while True:
        size = min(size, max_matvecs - done)
        state, done = advance(state, size), done + size
        found = _ritz(
            np.asarray(state.diagonal)[:done],
            np.asarray(state.off_diagonal)[:done],
            tolerance,
            limits,
        )
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
    # A nonzero value below the precision of the format is unreliable at any residual.
    converged &= not 0 < size * limits.eps < limits.tiny
    return Leading(float(values[at]), float(residuals[at]), bool(converged), len(diagonal))


# Not ``@``: BLAS threads would keep spinning on the cores of the next product (a third of its time).
def _along(rows: Float[np.ndarray, "k d"], vector: Vector) -> Float[np.ndarray, " k"]:
    return np.add.reduce(rows * vector, axis=1)


def _sum(factors: Float[np.ndarray, " k"], rows: Float[np.ndarray, "k d"]) -> Vector:
    return np.einsum("k,kd->d", factors, rows)
