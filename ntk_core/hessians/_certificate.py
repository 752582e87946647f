"""When has Lanczos seen the largest eigenvalue? A probabilistic bound on what it may have missed.

Let v be a random unit vector of the space, γ its component along a unit eigenvector of λ, and p_k the Lanczos
polynomial of step k: p_k(A) v is the next basis vector, so |γ p_k(λ)| <= ‖p_k(A) v‖ = 1. Unless |γ| <= δ, every
eigenvalue therefore satisfies |p_k(λ)| < 1/δ, at all steps. Outside of the Ritz values θ_i |p_k| increases, and

    |p_k(t)| = Π_i |t − θ_i| / Π_j β_j.

Where |p_k(±(1 + margin)·θ)| >= 1/δ, the norm is at most (1 + margin)·θ, except with the chance of |γ| <= δ.

Source: Hochstenbach 2013, Probabilistic upper bounds for the matrix two-norm, J. Sci. Comput. 57.
"""

import math

EXHAUSTED_UP_TO = 32  # dimensions; all products of a smaller space cost less than their compilation
CHANCE = 5e-4  # of a start that hides the leading eigenvector, for any matrix
# The smallest margins. Products in narrow spaces cost little more than their dispatch, and there eigenvalues within 1%
# to 3% of the leading one are missed more often; docs/math/hessian_in_a_small_space.md has the measured rates.
NARROW_UP_TO = 256  # dimensions
NARROW_MARGIN = 1e-2
WIDE_MARGIN = 3e-2


def margin_of(tolerance: float, dimension: int) -> float:
    """Return the relative excess of the norm over its estimate that has to be unlikely."""
    return max(tolerance, least_margin(dimension))


def least_margin(dimension: int) -> float:
    """Return the margin of small tolerances; the residual alone then suffices for almost every matrix."""
    return NARROW_MARGIN if dimension <= NARROW_UP_TO else WIDE_MARGIN


def least_growth(dimension: int) -> float:
    """Return log(1/δ), where a component of a random unit vector is below δ with the chance ``CHANCE``.

    The density of one component is c (1 − t²)^((d − 3)/2) <= c for d >= 3, so P(|γ| <= δ) <= 2 c δ.
    """
    d = max(dimension, 3)
    log_density = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - math.log(math.pi) / 2
    return log_density + math.log(2 / CHANCE)
