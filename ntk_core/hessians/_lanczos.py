"""Lanczos iteration with full reorthogonalization, in one compiled loop.

A symmetric matrix A of size d is known only through v ↦ A v. After j steps A is compressed to a
tridiagonal matrix T of size j whose extreme eigenvalues θ (Ritz values) approach those of A. With
s_j the last entry of the eigenvector of T, |β_j s_j| is the exact norm of the residual A y − θ y.
So some eigenvalue of A is within that distance of θ. For an isolated eigenvalue the error is of the
order of its square.

Source: Golub & Van Loan, Matrix Computations (4th ed.), §10.1–10.3; Parlett, The Symmetric
Eigenvalue Problem, ch. 13.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from ntk_core.hessians._certificate import (
    EXHAUSTED_UP_TO,
    Ritz,
    growth_of,
    is_settled,
    least_growth,
    least_margin,
)

MatVec = Callable[[Array], Array]

STEPS_BETWEEN_CHECKS = 4  # an eigendecomposition of T costs about one step on small networks
SMALLEST_CHECK = 32
ROUNDING = 100  # times eps and the norm: remainders and distances of nodes below are rounding
ROWS_AT_ONCE = 8  # of the basis; with 10⁵ entries each they fit into a core's cache


class Tridiagonal(NamedTuple):
    """The compressed matrix and its basis.

    Attributes:
        diagonal: α, (max_steps,).
        off_diagonal: β, (max_steps,): β_j joins steps j and j + 1, the last one is the
            norm of the remainder.
        basis: orthonormal rows, (max_steps + 1, d); rows that were not reached are zero.
        num_steps: steps done, each one product with A.
    """

    diagonal: Array
    off_diagonal: Array
    basis: Array
    num_steps: Array


class _Found(NamedTuple):
    """The wanted Ritz values, and weights of their vectors.

    The weights are over the basis, (num_wanted, max_steps).
    """

    ritz: Ritz
    weights: Array


class Extreme(NamedTuple):
    """The eigenvalues of largest absolute value.

    Attributes:
        values: signed, by falling absolute value, (num_wanted,).
        residuals: ‖A y − θ y‖ of each, (num_wanted,).
        vectors: unit eigenvectors as rows, (num_wanted, d).
        converged: whether every residual is at most tolerance · |θ_1|, and neither end of T may
            be near a larger one.
        num_steps: products with A.
    """

    values: Array
    residuals: Array
    vectors: Array
    converged: Array
    num_steps: Array


def lanczos_extreme(
    matvec: MatVec,
    start: Float[Array, " d"],
    spare: Float[Array, " d"],
    *,
    max_steps: int,
    tolerance: float | Array,
    num_wanted: int = 1,
    project: MatVec = lambda v: v,
    dimension: int | None = None,
) -> Extreme:
    """Return eigenpairs of largest |λ|, of both signs.

    Their residuals stop the iteration inside the compiled loop.

    Args:
        matvec: v ↦ A v for a symmetric A of size d that maps the range of ``project`` into itself.
        start: starting vector, (d,), in the range of ``project``.
        spare: a random vector, (d,), for a new direction after an invariant subspace. Each restart
            may find one more copy of a repeated eigenvalue.
        max_steps: maximum number of products, at most the dimension of the space.
        tolerance: relative to |θ_1|.
        num_wanted: number of eigenpairs, at most ``max_steps``.
        project: orthogonal projection onto the searched subspace.
        dimension: of the range of ``project``, or an upper bound; d by default. Spaces of at most
            32 dimensions are exhausted.
    """
    dimension = start.size if dimension is None else dimension
    least_steps = min(dimension, max_steps) if dimension <= EXHAUSTED_UP_TO else 1
    excess = jnp.maximum(tolerance, least_margin(dimension))
    needed = least_growth(dimension)
    limits = jnp.finfo(start.dtype)

    def body(state: tuple[Tridiagonal, _Found]) -> tuple[Tridiagonal, _Found]:
        before, found = state
        tridiagonal = step(matvec, project, before, spare)
        is_last = tridiagonal.num_steps == max_steps
        is_due = (tridiagonal.num_steps % STEPS_BETWEEN_CHECKS == 0) | is_last
        found = lax.cond(
            is_due,
            lambda tridiagonal, _: _decomposed(tridiagonal, num_wanted, max_steps, excess),
            lambda _, found: found,
            tridiagonal,
            found,
        )
        return tridiagonal, found

    def converged(tridiagonal: Tridiagonal, found: _Found) -> Array:
        is_complete = tridiagonal.num_steps >= dimension
        is_long_enough = tridiagonal.num_steps >= least_steps
        settled = is_settled(
            found.ritz, tolerance, needed, is_complete, float(limits.eps), float(limits.tiny)
        )
        return jnp.asarray(settled & is_long_enough)

    def continues(state: tuple[Tridiagonal, _Found]) -> Array:
        return (state[0].num_steps < max_steps) & ~converged(*state)

    unknown = jnp.full(num_wanted, jnp.inf, start.dtype)
    nothing = Ritz(jnp.zeros_like(unknown), unknown, unknown[0], -unknown[0])
    no_weights = jnp.zeros((num_wanted, max_steps), start.dtype)
    tridiagonal, found = lax.while_loop(
        continues, body, (beginning(start, max_steps), _Found(nothing, no_weights))
    )
    return Extreme(
        values=found.ritz.values,
        residuals=found.ritz.residuals,
        vectors=found.weights @ tridiagonal.basis[:max_steps],
        converged=converged(tridiagonal, found),
        num_steps=tridiagonal.num_steps,
    )


def lanczos_quadrature(
    matvec: MatVec,
    start: Float[Array, " d"],
    spare: Float[Array, " d"],
    *,
    num_steps: int,
    project: MatVec = lambda v: v,
) -> tuple[Float[Array, " steps"], Float[Array, " steps"]]:
    """Return nodes θ and weights ω of a quadrature, both (num_steps,).

    Σ_j ω_j θ_j^k = vᵀ A^k v with v = start/‖start‖, for k < 2 · num_steps.

    Source: Golub & Meurant, Matrices, Moments and Quadrature, ch. 6.
    """
    tridiagonal = beginning(start, num_steps)
    tridiagonal = lax.fori_loop(
        0, num_steps, lambda _, state: step(matvec, project, state, spare), tridiagonal
    )
    nodes, vectors = _eigenpairs(_dense(tridiagonal, num_steps))
    return nodes, vectors[0] ** 2


def beginning(start: Float[Array, " d"], max_steps: int) -> Tridiagonal:
    length = jnp.linalg.norm(start)
    first = start / jnp.where(length > 0, length, 1)
    basis = jnp.zeros((max_steps + 1, start.size), start.dtype).at[0].set(first)
    zeros = jnp.zeros(max_steps, start.dtype)
    return Tridiagonal(zeros, zeros, basis, jnp.asarray(0))


def step(matvec: MatVec, project: MatVec, tridiagonal: Tridiagonal, spare: Array) -> Tridiagonal:
    """One product with A; orthogonalize the new direction twice against all earlier ones."""
    diagonal, off_diagonal, basis, index = tridiagonal
    q = basis[index]
    w = matvec(q)
    diagonal = diagonal.at[index].set(jnp.vdot(q, w))
    # Division by a small β would amplify rounding outside the subspace from step to step.
    w = project(_orthogonal(w, basis, index + 1))
    beta = _length(w)
    scale = jnp.maximum(jnp.max(jnp.abs(diagonal)), jnp.max(off_diagonal))
    invariant = beta <= ROUNDING * jnp.finfo(w.dtype).eps * scale

    def fresh(_: Array) -> Array:
        # A different vector per step, without compiling a generator.
        random = project(jnp.roll(spare, index))
        rest = _orthogonal(random, basis, index + 1)
        size = _length(rest)
        # Nothing but rounding is left where the basis spans the whole space.
        exhausted = size <= 100 * jnp.finfo(w.dtype).eps * jnp.linalg.norm(random)
        return jnp.where(exhausted, 0, rest / jnp.where(exhausted, 1, size))

    following = lax.cond(invariant, fresh, lambda w: w / beta, w)
    off_diagonal = off_diagonal.at[index].set(jnp.where(invariant, 0, beta))
    return Tridiagonal(diagonal, off_diagonal, basis.at[index + 1].set(following), index + 1)


def _length(w: Float[Array, " d"]) -> Float[Array, ""]:
    """Return ‖w‖₂ even if squares of its entries underflow (below 1e−38 in float32)."""
    largest = jnp.max(jnp.abs(w))
    scale = jnp.where(largest > 0, largest, 1)
    return scale * jnp.linalg.norm(w / scale)


def _orthogonal(
    w: Float[Array, " d"], basis: Float[Array, "k d"], num_rows: Int[Array, ""]
) -> Float[Array, " d"]:
    """Remove from w its part in the span of the first basis rows.

    There are ``num_rows`` of them. Twice is enough (Parlett §6.9).

    On a CPU a few rows at a time stay in the cache for their two products with w; the remaining
    zero rows are skipped.
    """
    size = len(basis)
    num_parts: int | Array = 1
    if jax.default_backend() == "cpu" and len(basis) > ROWS_AT_ONCE:
        size = ROWS_AT_ONCE
        num_parts = -(-num_rows // size)  # rounded up

    def without(index: Array | int, w: Array) -> Array:
        # The last part starts earlier instead of exceeding the basis; repeated removal is harmless.
        rows = lax.dynamic_slice_in_dim(basis, index % num_parts * size, size)
        return w - (rows @ w) @ rows

    return lax.fori_loop(0, 2 * num_parts, without, w)


def _eigenpairs(matrix: Float[Array, "k k"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Return eigenvalues, rising, and eigenvectors as columns.

    Without A + Aᵀ, which would overflow for entries of more than half of the largest number.
    """
    values, vectors = jnp.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors


def _dense(tridiagonal: Tridiagonal, size: int) -> Float[Array, "size size"]:
    """Return T of this size; rows beyond the finished steps are zero and add zero eigenvalues."""
    step = jnp.arange(size)
    # The last β that is done belongs to the remainder, not to T.
    is_inside = step[:-1] + 1 < tridiagonal.num_steps
    beta = jnp.where(is_inside, tridiagonal.off_diagonal[: size - 1], 0)
    return jnp.diag(tridiagonal.diagonal[:size]) + jnp.diag(beta, 1) + jnp.diag(beta, -1)


def _decomposed(
    tridiagonal: Tridiagonal, num_wanted: int, max_steps: int, excess: float | Array
) -> _Found:
    """Return the ``num_wanted`` Ritz values of largest absolute value.

    Missing ones have infinite residuals.

    T is decomposed at the smaller of two sizes while that suffices, since an eigendecomposition at
    ``max_steps`` would cost more than the products.
    """
    small = min(max(SMALLEST_CHECK, num_wanted), max_steps)

    def at_size(tridiagonal: Tridiagonal, size: int) -> _Found:
        values, vectors = _eigenpairs(_dense(tridiagonal, size))
        _, largest = lax.top_k(jnp.abs(values), num_wanted)
        last = tridiagonal.num_steps - 1
        residuals = tridiagonal.off_diagonal[last] * jnp.abs(vectors[last])
        # Only the two ends of the spectrum can be larger than the wanted values.
        not_wanted = (jnp.abs(values) + residuals).at[largest].set(0)
        reach = jnp.max(not_wanted[jnp.array([0, -1])])
        is_found = jnp.arange(num_wanted) < tridiagonal.num_steps  # the others are padding
        weights = jnp.zeros((num_wanted, max_steps), values.dtype)
        weights = weights.at[:, :size].set(vectors[:, largest].T)
        growth = growth_of(
            jnp,
            values,
            tridiagonal.off_diagonal,
            tridiagonal.num_steps,
            values[largest],
            excess,
        )
        residuals = jnp.where(is_found, residuals[largest], jnp.inf)
        return _Found(Ritz(values[largest], residuals, reach, growth), weights)

    if small == max_steps:
        return at_size(tridiagonal, max_steps)
    return lax.cond(
        tridiagonal.num_steps <= small,
        lambda tridiagonal: at_size(tridiagonal, small),
        lambda tridiagonal: at_size(tridiagonal, max_steps),
        tridiagonal,
    )
