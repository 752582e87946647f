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

NO_EXPONENT = -(2**14)  # below the exponents of all floating-point types


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


def exponent_of(x: Float[Array, "..."]) -> Int[Array, ""]:
    """Return the least e with |x| < 2^e for all finite entries; 0 if all are 0.

    Processors may read denormal numbers as 0.
    """
    mantissas, exponents = jnp.frexp(jax.lax.stop_gradient(x))
    counts = (mantissas != 0) & jnp.isfinite(mantissas)
    largest = jnp.max(jnp.where(counts, exponents, NO_EXPONENT), initial=NO_EXPONENT)
    return jnp.where(largest == NO_EXPONENT, 0, largest)


def scaled(x: Float[Array, "..."], exponent: Int[Array, ""]) -> Float[Array, "..."]:
    """Return x / 2^exponent, exact unless the result is denormal."""
    mantissas, exponents = jnp.frexp(x)
    return jnp.ldexp(mantissas, exponents - exponent)


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
    exponent = jnp.maximum(exponent_of(now), exponent_of(origin)) + 1
    moved = scaled(now.astype(dtype), exponent) - scaled(origin.astype(dtype), exponent)
    size, own_exponent = scaled_norm(moved)
    return norm_ratio(ScaledNorm(size, own_exponent + exponent), scaled_norm(origin))
