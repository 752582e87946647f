"""When may Lanczos stop? One rule for the iteration in NumPy and for the compiled one.

It stops when the residuals of the wanted Ritz values are small, the other end of the spectrum
allows no larger eigenvalue, and a larger one that the start hides is improbable. The last part is a
probabilistic bound:

Let v be a random unit vector of the space, γ its component along a unit eigenvector of λ, and p_k
the Lanczos polynomial of step k: p_k(A) v is the next basis vector, so |γ p_k(λ)| <= ‖p_k(A)
v‖ = 1. Unless |γ| <= δ, every eigenvalue therefore satisfies |p_k(λ)| < 1/δ, at all steps. Outside
of the Ritz values θ_i |p_k| increases, and

    |p_k(t)| = Π_i |t − θ_i| / Π_j β_j.

Where |p_k(±(1 + margin)·θ)| >= 1/δ, the norm is at most (1 + margin)·θ, except with
the chance of |γ| <= δ.

Source: Hochstenbach 2013, Probabilistic upper bounds for the matrix two-norm, J. Sci. Comput. 57.
"""

import math
from types import ModuleType
from typing import Any, NamedTuple

EXHAUSTED_UP_TO = 32  # dimensions; all products of a smaller space cost less than their compilation
CHANCE = 5e-4  # of a start that hides the leading eigenvector, for any matrix
# The smallest margins. Products in narrow spaces cost little more than their dispatch, and there
# eigenvalues within 1% to 3% of the leading one are missed more often;
# docs/math/hessian_in_a_small_space.md has the measured rates.
NARROW_UP_TO = 256  # dimensions
NARROW_MARGIN = 1e-2
WIDE_MARGIN = 3e-2


def margin_of(tolerance: float, dimension: int) -> float:
    """Return the relative excess of the norm over its estimate that has to be unlikely."""
    return max(tolerance, least_margin(dimension))


def least_margin(dimension: int) -> float:
    """Return the margin of small tolerances.

    The residual alone then suffices for almost every matrix.
    """
    return NARROW_MARGIN if dimension <= NARROW_UP_TO else WIDE_MARGIN


def least_growth(dimension: int) -> float:
    """Return log(1/δ) for the smallest component of a random unit vector.

    It is below δ with the chance ``CHANCE``.

    The density of one component is c (1 − t²)^((d − 3)/2) <= c for d >= 3, so P(|γ| <= δ) <= 2 c δ.
    """
    d = max(dimension, 3)
    log_density = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - math.log(math.pi) / 2
    return log_density + math.log(2 / CHANCE)


Numbers = Any  # arrays of NumPy, or of JAX inside a compiled loop


class Ritz(NamedTuple):
    """The wanted Ritz values of T.

    The other attributes decide whether they are the eigenvalues of largest |λ|.

    Attributes:
        values: θ, signed, by falling absolute value, (num_wanted,).
        residuals: ‖A y − θ y‖ of each, (num_wanted,).
        reach: an end of the spectrum of T that is not wanted is near an eigenvalue of at
            most |θ| + residual.
        growth: the least log |p_k| where a larger eigenvalue could have been missed.
    """

    values: Numbers
    residuals: Numbers
    reach: Numbers
    growth: Numbers


def is_settled(
    ritz: Ritz, tolerance: Numbers, needed: float, is_complete: Numbers, eps: float, tiny: float
) -> Numbers:
    """Whether the wanted eigenvalues are found, to ``tolerance`` · |θ_1|.

    Args:
        ritz: the wanted Ritz values.
        tolerance: relative to |θ_1|.
        needed: the least growth, from :func:`least_growth`.
        is_complete: whether the basis spans the whole space, so that nothing can be missed.
        eps, tiny: of the type of the products.
    """
    size = abs(ritz.values[0])
    # A nonzero value below the precision of the format is unreliable at any residual.
    is_lost = (size > 0) & (size * eps < tiny)
    # The other end often converges a few products later, to a larger eigenvalue.
    is_largest = ritz.reach <= abs(ritz.values[-1]) + tolerance * size
    is_certain = is_complete | (ritz.growth >= needed)
    has_small_residuals = (ritz.residuals <= tolerance * size).all()
    return has_small_residuals & is_largest & is_certain & ~is_lost


def growth_of(
    xp: ModuleType,
    values: Numbers,
    off_diagonal: Numbers,
    num_steps: Numbers,
    leading: Numbers,
    excess: Numbers,
) -> Numbers:
    """Return the least log |p_k| where an eigenvalue could be missed.

    It is one of the eigenvalues that belong to the wanted ones.

    These are all |t| >= |θ_k| + excess·|θ_1| at a distance of at least excess·|θ_1| from the wanted
    Ritz values. Between two zeros log |p_k| is concave, so its minimum is at an end of an interval.

    Args:
        xp: numpy or jax.numpy.
        values: all Ritz values, (size,), with zeros for steps that are not done.
        off_diagonal: β, of which the first ``num_steps`` count.
        num_steps: steps done, k.
        leading: the wanted Ritz values, by falling absolute value.
        excess: the margin.
    """
    width = excess * xp.abs(leading[0])
    least = xp.abs(leading[-1]) + width
    ends = xp.concatenate([leading[:-1] - width, leading[:-1] + width])
    ends = xp.where(xp.abs(ends) >= least, ends, least)
    points = xp.concatenate([ends, xp.stack([least, -least])])
    num_padding = len(values) - num_steps
    numerators = xp.sum(xp.log(xp.abs(points[:, None] - values)), axis=1)
    numerators = numerators - num_padding * xp.log(xp.abs(points))
    is_done = xp.arange(len(off_diagonal)) < num_steps
    denominator = xp.sum(xp.where(is_done, xp.log(off_diagonal), 0))
    growth = xp.min(numerators) - denominator
    # After an invariant subspace the Krylov space of the start has nothing more to show.
    is_invariant = xp.any(is_done & (off_diagonal == 0))
    return xp.where(is_invariant, xp.inf, xp.where(least > 0, growth, -xp.inf))
