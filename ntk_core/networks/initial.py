"""Which random numbers a seed stands for: those of the initial weights w₀ at one width."""

import jax
from jax import Array
from jax.typing import ArrayLike


def initial_key(seed: ArrayLike, width: int, *more: int) -> Array:
    """The key of w₀ for this seed and width: ``fold_in(key(seed), width)``.

    With ``key(seed)`` alone the draws of a narrow network would be the first of a wide one's, and runs at neighboring
    widths would not be independent.

    Args:
        seed: of the run, a scalar; may be traced.
        width: m, the swept width.
        more: what else tells networks of one sweep apart, such as the input dimension; folded in, one by one.

    >>> jax.random.bits(initial_key(0, 8)) == jax.random.bits(initial_key(0, 9))
    Array(False, dtype=bool)
    """
    key = jax.random.key(seed)
    for number in (width, *more):
        key = jax.random.fold_in(key, number)
    return key
