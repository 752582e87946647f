"""Random parameters and inputs for checks, whose verdict must not depend on the given numbers.

Weights that start at zero, masks of ones and equal rows hide parts of a function. Random numbers show them. A function
may be finite only on a part of its domain, such as that of a logarithm; then numbers near the given ones are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

Numbers = Array | np.ndarray
# Random numbers of one array; larger ones repeat them. A prime, so that rows of a matrix differ. Our choice.
PATTERN = 65_521


class Draw(Enum):
    """Distribution of random numbers.

    Attributes:
        FREE: normal numbers of the given size.
        NEAR: given numbers shrunk by random factors, which keeps signs and bounds; small positive numbers for zeros.
    """

    FREE = "free"
    NEAR = "near"


def draws(params: PyTree, *inputs: Numbers) -> Iterator[tuple[PyTree, list[Numbers]]]:
    """Yield random parameters and inputs of the given kinds, from the most to the least different ones."""
    for how in Draw:
        rng = np.random.default_rng(0)
        drawn = jax.tree.map(partial(_parameter, rng, how), params)
        yield drawn, [_rows(rng, how, x) for x in inputs]


def _parameter(rng: np.random.Generator, how: Draw, leaf: Numbers) -> Numbers:
    """Draw one parameter; single integers (counters, sizes) and keys are kept."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or jnp.issubdtype(dtype, jax.dtypes.extended) or not leaf.size:
        return leaf
    given = np.asarray(leaf)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return leaf if given.ndim == 0 else _whole_numbers(rng, given)
    root_of_fan_in = max(1, *leaf.shape[:1], 1) ** 0.5
    return _floats(rng, how, given, 1 / root_of_fan_in, centered=True)


def _rows(rng: np.random.Generator, how: Draw, x: Numbers) -> Numbers:
    given = np.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return _whole_numbers(rng, given)
    return _floats(rng, how, given, 1.0, centered=False)


def _whole_numbers(rng: np.random.Generator, given: np.ndarray) -> np.ndarray:
    """Draw integers from the given range and 0 and 1, since a mask may have been all ones or zeros."""
    if given.dtype == bool:
        return rng.integers(0, 2, given.shape).astype(bool)
    low = min(0, int(given.min(initial=0)))
    high = max(1, int(given.max(initial=1)))
    return rng.integers(low, high, given.shape, endpoint=True).astype(given.dtype)


def _floats(
    rng: np.random.Generator, how: Draw, given: np.ndarray, default: float, centered: bool
) -> np.ndarray:
    """Draw numbers of the size of the given ones; of size ``default`` if all are zero."""
    numbers = given.astype(np.float64)
    largest = float(np.abs(numbers).max(initial=0))
    if not np.isfinite(largest):
        return given
    unit = largest or 1.0
    scaled = numbers / unit  # squares of numbers like 1e200 overflow
    if how is Draw.FREE:
        mean = 0.0 if centered else float(scaled.mean())
        spread = float(np.sqrt(np.mean((scaled - mean) ** 2)))
        if not spread:
            spread = default if not largest else 1.0
        found = mean + spread * _pattern(rng.standard_normal, given.size)
        return (unit * found.reshape(given.shape)).astype(given.dtype)
    factors = _pattern(lambda size: rng.uniform(0.5, 1.0, size), given.size).reshape(given.shape)
    small = 0.1 * default / unit if not largest else 0.1
    shrunk = np.where(scaled == 0, small * factors, scaled * factors)
    return (unit * shrunk).astype(given.dtype)


def _pattern(draw: Callable[[int], np.ndarray], size: int) -> np.ndarray:
    return np.resize(draw(min(size, PATTERN)), size)
