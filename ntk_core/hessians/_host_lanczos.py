"""Lanczos iterations for one eigenvalue, stopped outside of programs.

They have full reorthogonalization and treat one matrix.

One loop checks after some steps whether to stop. The steps are either NumPy around a compiled
product, since an iteration takes longer to compile than to run, or compiled stretches of
:func:`_lanczos.step` for frequent norms. On an orthonormal basis Q, A is compressed to a
tridiagonal T = Qᵀ A Q. With β the norm of A q_j outside Q and s the last entry of an eigenvector of
T, |β s| is the norm of the residual A y − θ y.

Source: Golub & Van Loan, Matrix Computations (4th ed.), §10.1–10.3; Parlett, The Symmetric
Eigenvalue Problem, ch. 13.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal, norm

from ntk_core.hessians._certificate import (
    EXHAUSTED_UP_TO,
    Ritz,
    growth_of,
    is_settled,
    least_growth,
    margin_of,
)
from ntk_core.hessians._lanczos import Tridiagonal

STRETCH = 8  # products per dispatch; near the end as many as the residual's decrease suggests
SHORTEST = 2
# Check at products 1, …, 16, then at every second, third, …: few unneeded products.
CHECK_EVERY = 16
Vector = Float[np.ndarray, " d"]
Entries = Float[np.ndarray, " k"]


class Leading(NamedTuple):
    """Eigenvalue of largest |λ| with its residual, convergence and number of products."""

    value: float
    residual: float
    converged: bool
    num_matvecs: int


@runtime_checkable
class _Steps(Protocol):
    """A Lanczos iteration that can continue.

    Attributes:
        dtype: of the products.
        restarts: whether it finds a new direction after an invariant subspace.
    """

    dtype: np.dtype
    restarts: bool

    def advance(self, size: int) -> tuple[Entries, Entries]:
        """Do up to ``size`` steps; return the diagonal and the β of all steps so far."""

    def next_size(self, found: Leading, tolerance: float) -> int:
        """Return the number of steps until the next check."""


def leading(
    product: Callable[[Vector], tuple[ArrayLike, ArrayLike]],
    start: Vector,
    max_matvecs: int,
    tolerance: float,
    dimension: int | None = None,
) -> Leading:
    """The eigenvalue of largest |λ| of P A P, of either sign; NaN if a product is not finite.

    Args:
        product: v ↦ (P v, A P v) for a symmetric A of size d that maps the range of the projection
            P into itself; its arrays are copied when read.
        start: a random vector, (d,).
        max_matvecs: maximum number of products.
        tolerance: of the residual, relative to |θ|.
        dimension: of the range of P, or an upper bound; d by default. Spaces of at most 32
            dimensions are exhausted.
    """
    inside, image = map(np.asarray, product(start))
    if not (np.all(np.isfinite(inside)) and np.all(np.isfinite(image))):
        return Leading(math.nan, math.nan, False, 1)
    length = norm(inside)
    if length == 0:
        return Leading(0.0, 0.0, True, 1)
    dimension = start.size if dimension is None else dimension
    most = min(max_matvecs, dimension)
    steps = _ProductByProduct(product, inside / length, image / length, most)
    first_size = most if dimension <= EXHAUSTED_UP_TO else 1
    return _searched(steps, first_size, most, tolerance, dimension)


def leading_in_stretches(
    advance: Callable[[Tridiagonal, int], Tridiagonal],
    state: Tridiagonal,
    max_matvecs: int,
    tolerance: float,
    dimension: int,
) -> Leading:
    """Like :func:`leading`, with steps and basis on the device.

    Args:
        advance: (state, number of steps) ↦ the state after these steps; the old one may be
            overwritten.
        state: that before the first step.
        max_matvecs, tolerance, dimension: as for :func:`leading`.
    """
    most = min(max_matvecs, dimension)
    return _searched(_InStretches(advance, state), STRETCH, most, tolerance, dimension)


def _searched(
    steps: _Steps, first_size: int, most: int, tolerance: float, dimension: int
) -> Leading:
    """Continue until the leading eigenvalue is found, or ``most`` products are done."""
    size = first_size
    done = 0
    while True:
        diagonal, off_diagonal = steps.advance(min(size, most - done))
        done = len(diagonal)
        if not (np.all(np.isfinite(diagonal)) and np.all(np.isfinite(off_diagonal))):
            return Leading(math.nan, math.nan, False, done)
        found = _ritz(diagonal, off_diagonal, tolerance, np.finfo(steps.dtype), dimension)
        is_exhausted = found.residual == 0
        if done == most or (is_exhausted and not steps.restarts):
            return found
        if dimension <= EXHAUSTED_UP_TO and not is_exhausted:
            continue
        if found.converged:
            return found
        size = steps.next_size(found, tolerance)


class _ProductByProduct:
    """Steps in NumPy, each around one call of a compiled product.
    They end at an invariant subspace.
    """

    restarts = False

    def __init__(
        self,
        product: Callable[[Vector], tuple[ArrayLike, ArrayLike]],
        first: Vector,
        image: Vector,
        most: int,
    ):
        """Begin with a unit vector and its image."""
        self.dtype = first.dtype
        self._product = product
        self._following = first
        self._first_image = image
        self._basis = np.empty((most, first.size), first.dtype)  # rows take memory when written
        self._diagonal = np.zeros(most)
        self._off_diagonal = np.zeros(most)
        self._done = 0

    def advance(self, size: int) -> tuple[Entries, Entries]:
        for _ in range(size):
            self._step()
            if self._is_at_an_end():
                break
        return self._diagonal[: self._done], self._off_diagonal[: self._done]

    def next_size(self, found: Leading, tolerance: float) -> int:
        count = self._done + 1
        while count % (1 + count // CHECK_EVERY) != 0:
            count += 1
        return count - self._done

    def _step(self) -> None:
        at = self._done
        self._done += 1
        q = self._following
        image = self._first_image if at == 0 else np.asarray(self._product(q)[1])
        if not np.all(np.isfinite(image)):
            self._diagonal[at] = math.nan
            return
        self._basis[at] = q
        rows = self._basis[: self._done]
        along = _along(rows, image)
        self._diagonal[at] = along[-1]
        rest = image - _sum(along, rows)
        # Twice is enough (Parlett, §6.9); once fails after 60 products.
        rest -= _sum(_along(rows, rest), rows)
        beta = float(norm(rest))
        self._off_diagonal[at] = beta
        self._following = rest / rest.dtype.type(beta) if beta else rest

    def _is_at_an_end(self) -> bool:
        """Whether the last product ends the iteration.

        It was not finite, or left nothing but rounding outside of the basis.
        """
        last = self._done - 1
        if math.isnan(self._diagonal[last]):
            return True
        largest_of_diagonal = np.abs(self._diagonal[: self._done]).max()
        largest = max(largest_of_diagonal, self._off_diagonal[:last].max(initial=0.0))
        return bool(self._off_diagonal[last] <= 100 * np.finfo(self.dtype).eps * largest)


class _InStretches:
    """Compiled steps, with the basis on the device; restart after an invariant subspace."""

    restarts = True

    def __init__(self, advance: Callable[[Tridiagonal, int], Tridiagonal], state: Tridiagonal):
        self.dtype = state.diagonal.dtype
        self._advance = advance
        self._state = state
        self._done = 0
        self._size = STRETCH  # of the last stretch
        self._residual_before = 0.0  # at the check before; 0 before the first

    def advance(self, size: int) -> tuple[Entries, Entries]:
        self._state = self._advance(self._state, size)
        self._done += size
        self._size = size
        diagonal = np.asarray(self._state.diagonal)[: self._done]
        return diagonal, np.asarray(self._state.off_diagonal)[: self._done]

    def next_size(self, found: Leading, tolerance: float) -> int:
        """As many steps as the residual needs if it falls as in the last stretch."""
        aim = tolerance * abs(found.value)
        before = self._residual_before
        self._residual_before = found.residual
        if not (aim and 0 < found.residual < before):
            return STRETCH
        fall_of_a_stretch = math.log(before / found.residual)
        due = self._size * math.log(found.residual / aim) / fall_of_a_stretch
        return min(STRETCH, max(SHORTEST, math.ceil(min(due, STRETCH))))


def _ritz(
    diagonal: Entries, off_diagonal: Entries, tolerance: float, limits: np.finfo, dimension: int
) -> Leading:
    """Return the Ritz value of largest |θ| of T; the last β is that of the remainder."""
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    sizes = np.abs(values)
    at = int(np.argmax(sizes))
    other = 0 if at else len(sizes) - 1  # the other end of the spectrum
    beta = float(off_diagonal[-1])
    is_exhausted = beta <= 100 * limits.eps * sizes[at]  # the remainder is rounding
    residuals = np.zeros_like(sizes) if is_exhausted else beta * np.abs(vectors[-1])
    num_steps = len(diagonal)
    is_complete = is_exhausted or num_steps >= dimension
    found = Ritz(values[[at]], residuals[[at]], sizes[other] + residuals[other], math.inf)
    settled = partial(
        is_settled,
        tolerance=tolerance,
        needed=least_growth(dimension),
        is_complete=is_complete,
        eps=float(limits.eps),
        tiny=float(limits.tiny),
    )
    converged = settled(found)
    # The growth takes longer than the rest of the rule, and few checks come to it.
    if converged and not is_complete:
        excess = margin_of(tolerance, dimension)
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0 where T is zero
            growth = growth_of(np, values, off_diagonal, num_steps, found.values, excess)
        converged = settled(found._replace(growth=growth))
    return Leading(float(values[at]), float(residuals[at]), bool(converged), num_steps)


# Not ``@``: BLAS threads would keep spinning on the cores of the next product (a third of its
# time).
def _along(rows: Float[np.ndarray, "k d"], vector: Vector) -> Float[np.ndarray, " k"]:
    return np.add.reduce(rows * vector, axis=1)


def _sum(factors: Float[np.ndarray, " k"], rows: Float[np.ndarray, "k d"]) -> Vector:
    return np.einsum("k,kd->d", factors, rows)
