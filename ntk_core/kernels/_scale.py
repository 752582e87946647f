"""Frobenius norms and their ratios at any scale of numbers, in float16, bfloat16 and float32.

Squares of float32 numbers overflow above 1e19 and vanish below 1e-23. A norm is therefore a pair
(r, e) that stands for r · 2^e: entries are divided by 2^e, exactly, before they are squared.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Shaped

from ntk_core.traced import wide


class ScaledNorm(NamedTuple):
    """A norm r · 2^e.

    Attributes:
        size: r, 0 or from ½ to the root of the number of entries; NaN or infinite like the entries.
        exponent: e.
    """

    size: Float[Array, ""]
    exponent: Int[Array, ""]


def widened(x: Shaped[Array, "..."]) -> Array:
    """Return floats of at least 32 bits, in which sums of millions of scaled squares fit."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.astype(jnp.result_type(float))
    return x.astype(wide(x.dtype))


def exponent_of(*arrays: Float[Array, "..."]) -> Int[Array, ""]:
    """Return the least e with |x| < 2^e for all finite entries of all arrays; 0 if all are 0.

    Processors may read denormal numbers as 0.
    """
    dtype = jnp.result_type(*arrays)
    largest = jnp.zeros((), dtype)
    for x in arrays:
        sizes = jnp.abs(jax.lax.stop_gradient(x))
        of_array = jnp.max(jnp.where(jnp.isfinite(sizes), sizes, 0), initial=0)
        largest = jnp.maximum(largest, of_array.astype(dtype))
    _, exponent = jnp.frexp(largest)  # of one number, since that of every entry takes long
    return exponent


def scaled(x: Float[Array, "..."], exponent: Int[Array, ""]) -> Float[Array, "..."]:
    """Return x / 2^exponent, exact unless the result is denormal.

    In two steps, since 2^−exponent may be beyond the type; both change x in the same direction.
    """
    first = -exponent // 2
    one = jnp.ones((), x.dtype)
    return x * jnp.ldexp(one, first) * jnp.ldexp(one, -exponent - first)


def scaled_norm(x: Shaped[Array, "..."]) -> ScaledNorm:
    """Return ‖x‖_F of any finite scale."""
    x = widened(x)
    exponent = exponent_of(x)
    return ScaledNorm(jnp.sqrt(jnp.sum(scaled(x, exponent) ** 2)), exponent)


def norm_ratio(above: ScaledNorm, below: ScaledNorm) -> Float[Array, ""]:
    """Return the quotient of two norms; NaN for 0/0."""
    return jnp.ldexp(above.size / below.size, above.exponent - below.exponent)


@jax.jit
def relative_norm(x: Shaped[Array, "..."], origin: Shaped[Array, "..."]) -> Float[Array, ""]:
    """Return ‖x‖_F / ‖origin‖_F at any scale of both."""
    return norm_ratio(scaled_norm(x), scaled_norm(origin))


@jax.jit
def relative_change(now: Shaped[Array, "..."], origin: Shaped[Array, "..."]) -> Float[Array, ""]:
    """Return ‖now − origin‖_F / ‖origin‖_F of arrays of one shape, at any scale of both."""
    now = widened(now)
    origin = widened(origin)
    dtype = jnp.result_type(now, origin)
    # One common scale keeps the difference finite: both are below ½ in size.
    exponent = exponent_of(now, origin) + 1
    moved = scaled(now.astype(dtype), exponent) - scaled(origin.astype(dtype), exponent)
    size, own_exponent = scaled_norm(moved)
    return norm_ratio(ScaledNorm(size, own_exponent + exponent), scaled_norm(origin))
