"""Validation of numbers and random keys that requests for Hessians contain."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.real_numbers import is_finite_number


def check_count(field: str, given: Any, least: int) -> None:
    """Refuse anything else than an integer of at least ``least``.

    Raises:
        InvalidInput: with the field.
    """
    if not is_integer(given) or given < least:
        raise InvalidInput(field, given, f"an integer of at least {least}")


def check_radii(radii: Sequence[Any]) -> None:
    """Refuse radii of balls that are not finite positive numbers in increasing order.

    Raises:
        InvalidInput: for ``radius``.
    """
    are_numbers = all(map(is_finite_number, radii))
    if not (radii and are_numbers and min(radii) > 0 and list(radii) == sorted(radii)):
        raise InvalidInput("radius", list(radii), "finite numbers above 0, in increasing order")


def checked_key(key: object) -> Array:
    """Return a key of ``jax.random``, a fixed one for None; raw keys of integers count too.

    Raises:
        InvalidInput: for anything else.
    """
    if key is None:
        return jax.random.key(0)
    if isinstance(key, Array | np.ndarray):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ():
            return jnp.asarray(key)
        if key.dtype == np.uint32 and key.shape == jax.random.key_data(jax.random.key(0)).shape:
            return jax.random.wrap_key_data(jnp.asarray(key))
    given = kind_of(key) if not isinstance(key, int | float) else key
    raise InvalidInput("key", given, "one key of jax.random, such as jax.random.key(0)")


def is_integer(given: Any) -> bool:
    return isinstance(given, Integral) and not isinstance(given, bool)
