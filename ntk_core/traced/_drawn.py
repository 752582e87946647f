"""Random parameters and inputs for checks, whose verdict must not depend on the given numbers.

Weights that start at zero, masks of ones and equal rows hide parts of a function. Random numbers
show them. A function may be finite only on a part of its domain, such as that of a logarithm; then
numbers near the given ones are drawn.
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
# Applies a function to every leaf of packed rows, see ``_row_trees``.
EachLeaf = Callable[[Callable[[np.ndarray], Numbers], Numbers], np.ndarray]
# Random numbers of one array; larger ones repeat them. A prime, so that rows of a matrix
# differ. Our choice.
PATTERN = 65_521


class Draw(Enum):
    """Distribution of random numbers.

    Attributes:
        FREE: normal numbers of the given size.
        NEAR: given numbers shrunk by random factors, which keeps signs and bounds; small
            positive numbers for zeros.
    """

    FREE = "free"
    NEAR = "near"


def draws(
    params: PyTree, *inputs: Numbers, each_leaf: EachLeaf | None = None
) -> Iterator[tuple[PyTree, list[Numbers]]]:
    """Yield random parameters and inputs of the given kinds.

    The most different ones come first, the least different ones last.

    Args:
        each_leaf: of inputs that are packed trees, whose leaves are drawn one by one.
    """
    for how in Draw:
        rng = np.random.default_rng(0)
        drawn = jax.tree.map(partial(_parameter, rng, how), params)
        draw = partial(_rows, rng, how)
        yield drawn, [draw(x) if each_leaf is None else each_leaf(draw, x) for x in inputs]


def _parameter(rng: np.random.Generator, how: Draw, leaf: Numbers) -> Numbers:
    """Draw one parameter; single integers (counters, sizes) and keys are kept."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or jnp.issubdtype(dtype, jax.dtypes.extended) or not leaf.size:
        return leaf
    given = np.asarray(leaf)
    if not jnp.issubdtype(dtype, jnp.inexact):
        return leaf if given.ndim == 0 else placed(_whole_numbers(rng, given), leaf)
    root_of_fan_in = max(1, *leaf.shape[:1], 1) ** 0.5
    return placed(_floats(rng, how, given, 1 / root_of_fan_in, centered=True), leaf)


def _rows(rng: np.random.Generator, how: Draw, x: Numbers) -> Numbers:
    given = np.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return placed(_whole_numbers(rng, given), x)
    return placed(_floats(rng, how, given, 1.0, centered=False), x)


def placed(drawn: np.ndarray, given: Numbers) -> Numbers:
    """Return numbers on the device of the given ones.

    Arrays that are bound to a device, as those from PyTorch, need other compiled programs than
    arrays that are not.
    """
    if isinstance(given, jax.Array) and given.committed:
        return jax.device_put(drawn, given.sharding)
    return jax.device_put(drawn)


def _whole_numbers(rng: np.random.Generator, given: np.ndarray) -> np.ndarray:
    """Draw integers from the given range and 0 and 1.

    A mask may have been all ones or zeros.
    """
    if given.dtype == bool:
        return rng.integers(0, 2, given.shape).astype(bool)
    low = min(0, int(given.min(initial=0)))
    high = max(1, int(given.max(initial=1)))
    drawn = rng.integers(low, high, given.shape, endpoint=True)
    return np.asarray(drawn.astype(given.dtype))


def _floats(
    rng: np.random.Generator, how: Draw, given: np.ndarray, default: float, centered: bool
) -> np.ndarray:
    """Draw numbers of the size of the given ones; of size ``default`` if all are zero."""
    flat = given.reshape(-1)
    largest = max(abs(float(flat.max(initial=0))), abs(float(flat.min(initial=0))))
    if not np.isfinite(largest):
        return given
    unit = largest or 1.0  # squares of numbers like 1e200 overflow
    if how is Draw.FREE:
        mean, spread = _moments(flat, unit, centered)
        if not spread:
            spread = default if not largest else 1.0
        pattern = mean + spread * rng.standard_normal(min(flat.size, PATTERN))
        found = np.resize((unit * pattern).astype(given.dtype), flat.size)
        return found.reshape(given.shape)
    factors = np.resize(rng.uniform(0.5, 1.0, min(flat.size, PATTERN)), flat.size)
    scaled = flat.astype(np.float64) / unit
    small = 0.1 * default / unit if not largest else 0.1
    shrunk = np.where(scaled == 0, small * factors, scaled * factors)
    return np.asarray((unit * shrunk).astype(given.dtype).reshape(given.shape))


def _moments(flat: np.ndarray, unit: float, centered: bool) -> tuple[float, float]:
    """Return mean and spread of numbers / unit, a stretch at a time; a centered mean is 0."""
    total = 0.0
    squares = 0.0
    for start in range(0, flat.size, PATTERN):
        stretch = flat[start : start + PATTERN].astype(np.float64) / unit
        total += float(stretch.sum())
        squares += float(stretch @ stretch)
    size = max(1, flat.size)
    if centered:
        return 0.0, (squares / size) ** 0.5
    mean = total / size
    variance = squares / size - mean**2
    # Equal numbers: their variance is the rounding of two squares.
    if variance <= 1e-12 * mean**2:
        return mean, 0.0
    return mean, variance**0.5


def numbers_for_call(
    params: PyTree, x: Numbers, each_leaf: EachLeaf | None
) -> tuple[PyTree, Numbers] | None:
    """Replace unknown parameters and inputs by small random numbers; see :func:`numbers_for`."""
    if each_leaf is not None and isinstance(x, jax.core.Tracer):
        draw = partial(_random, np.random.default_rng(0))
        x = each_leaf(draw, np.zeros(x.shape, x.dtype))
    found: tuple[PyTree, Numbers] | None = numbers_for((params, x))
    return found


def numbers_for(given: PyTree) -> PyTree | None:
    """Replace unknown arrays by small random numbers.

    Return None for keys, which cannot be drawn.
    """
    leaves = jax.tree.leaves(given)
    if any(
        isinstance(each, jax.core.Tracer) and jnp.issubdtype(each.dtype, jax.dtypes.extended)
        for each in leaves
    ):
        return None
    return jax.tree.map(partial(_drawn, np.random.default_rng(0)), given)


def _drawn(rng: np.random.Generator, leaf: Numbers) -> Numbers:
    return _random(rng, leaf) if isinstance(leaf, jax.core.Tracer) else leaf


def _random(rng: np.random.Generator, leaf: Numbers) -> Array:
    """Return small random numbers of the shape and type of an array."""
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.asarray(rng.integers(0, 2, leaf.shape), leaf.dtype)
    return jnp.asarray(
        rng.standard_normal(leaf.shape, np.float32) / max(1, *leaf.shape[:1]) ** 0.5, leaf.dtype
    )
