"""Random keys of initial weights."""

import jax
from jax import Array
from jax.typing import ArrayLike


def initial_key(seed: ArrayLike, width: int, *more: int) -> Array:
    """Return the key of w₀ for this seed and width: ``fold_in(key(seed), width)``.

    With ``key(seed)`` alone, networks of neighboring widths would share random numbers.

    Args:
        seed: of the run, a scalar; may be traced.
        width: m, the swept width.
        more: further numbers to fold in, such as the input dimension.

    >>> jax.random.bits(initial_key(0, 8)) == jax.random.bits(initial_key(0, 9))
    Array(False, dtype=bool)
    """
    key = jax.random.key(seed)
    for number in (width, *more):
        key = jax.random.fold_in(key, number)
    return key
