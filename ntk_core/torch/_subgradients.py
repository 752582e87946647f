"""Operations whose subgradients differ between PyTorch and torchax, with those of PyTorch.

At a kink, such as a ReLU6 at 0 or the maximum of equal numbers, PyTorch and JAX choose different
subgradients. Inputs of zeros with biases of zero meet kinks in every row. Each function equals
PyTorch's, value and derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return x for x > 0, else slope · x; the slope is that of negative numbers at 0."""
    return jnp.where(x > 0, x, negative_slope * x).astype(x.dtype)


def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Return x between two bounds; the slope is 0 at both."""
    bounded = jnp.where(x <= min_val, min_val, max_val)
    return jnp.where((x > min_val) & (x < max_val), x, bounded).astype(x.dtype)


def clamp(x: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """Return x between two bounds; the slope is 1 at both."""
    found = x
    if min is not None:
        found = jnp.where(found < min, min, found)
    if max is not None:
        found = jnp.where(found > max, max, found)
    return found


def hardsigmoid(x: Array) -> Array:
    """Return x / 6 + ½ between 0 and 1; the slope is 0 at both."""
    bounded = jnp.where(x <= -3, 0.0, 1.0)
    return jnp.where((x > -3) & (x < 3), x / 6 + 0.5, bounded).astype(x.dtype)


def hardswish(x: Array) -> Array:
    """Return x (x + 3) / 6 for |x| < 3; else 0 or x, with their slopes at ±3."""
    outside = jnp.where(x <= -3, 0 * x, x)
    return jnp.where((x > -3) & (x < 3), x * (x + 3) / 6, outside).astype(x.dtype)


def absolute(x: Array) -> Array:
    """Return |x|; the slope is 0 at 0."""
    return jnp.where(x == 0, 0 * x, jnp.abs(x)).astype(jnp.abs(x).dtype)


def log_sigmoid(x: Array) -> Array:
    """Return log σ(x), whose slope at 0 is ½."""
    return jax.nn.log_sigmoid(x)


def largest(x: Array, dim: int | None = None, keepdim: bool = False) -> Array | tuple[Array, Array]:
    """Return the maximum along an axis and its index; the first of equal numbers has the slope."""
    if dim is None or not x.ndim:
        return _whole(jnp.max(x), dim)
    return _selected(x, jnp.argmax(x, dim, keepdims=True), dim, keepdim)


def smallest(
    x: Array, dim: int | None = None, keepdim: bool = False
) -> Array | tuple[Array, Array]:
    """Return the minimum along an axis and its index; the first of equal numbers has the slope."""
    if dim is None or not x.ndim:
        return _whole(jnp.min(x), dim)
    return _selected(x, jnp.argmin(x, dim, keepdims=True), dim, keepdim)


def running_largest(x: Array, dim: int) -> tuple[Array, Array]:
    """Return running maxima and their indices; the last of equal numbers has the slope."""
    return _running(x, dim, jax.lax.cummax)


def running_smallest(x: Array, dim: int) -> tuple[Array, Array]:
    """Return running minima and their indices; the last of equal numbers has the slope."""
    return _running(x, dim, jax.lax.cummin)


def _running(x: Array, dim: int, running: Callable[..., Array]) -> tuple[Array, Array]:
    if not x.ndim:
        return x, jnp.zeros((), int)
    dim %= x.ndim
    places = jax.lax.broadcasted_iota(int, x.shape, dim)
    is_reached = x == running(x, dim)
    index = jax.lax.cummax(jnp.where(is_reached, places, 0), dim)
    return jnp.take_along_axis(x, index, dim), index


def vector_norm(
    x: Array,
    ord: float | str = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: object = None,
) -> Array:
    """Return (Σ |x|^p)^(1/p) along axes; its slopes are 0 where it, or the entry, is 0."""
    power = 2.0 if ord == "fro" else float(ord)
    axes = _axes_of(x, dim)
    sizes = absolute(x)
    if power == 0:
        found = jnp.sum(x != 0, axes, keepdims=keepdim).astype(x.dtype)
    elif abs(power) == math.inf:  # equal entries share the slope
        extreme = jnp.max if power > 0 else jnp.min
        found = extreme(sizes, axes, keepdims=keepdim)
    elif power == 1:
        found = jnp.sum(sizes, axes, keepdims=keepdim)
    else:
        total = jnp.sum(_nonzero_power(sizes, power), axes, keepdims=keepdim)
        found = _nonzero_power(total, 1 / power)
    return found


def _nonzero_power(x: Array, power: float) -> Array:
    """Return x^p of numbers from 0 on; value and slope are 0 at 0 if p is above 0."""
    is_zero = x == 0
    positive = jnp.where(is_zero, 1, x)
    return jnp.where(is_zero, 0.0 if power > 0 else math.inf, positive**power).astype(x.dtype)


def deviation(
    x: Array,
    dim: int | Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Array:
    """Return the standard deviation along axes; its slopes are 0 for equal numbers."""
    removed = 1 if correction is None else correction
    variance = jnp.var(x, _axes_of(x, dim), correction=removed, keepdims=keepdim)
    return _nonzero_power(variance, 0.5)


def _axes_of(x: Array, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes of a reduction; all of them for None or an empty list."""
    if isinstance(dim, int):
        return (dim,)
    return tuple(dim or range(x.ndim))


def angle_of(y: Array, x: Array) -> Array:
    """Return the angle of (x, y); the slope is 0 at the origin."""
    is_origin = (y == 0) & (x == 0)
    at_origin = jax.lax.stop_gradient(jnp.arctan2(y, x))
    return jnp.where(is_origin, at_origin, jnp.arctan2(y, jnp.where(is_origin, 1, x)))


def bessel(x: Array) -> Array:
    """Return I₀(x); the slope is 0 at 0."""
    return jnp.where(x == 0, 1 + 0 * x, jax.scipy.special.i0(jnp.where(x == 0, 1, x)))


def with_sign_of(x: Array, y: ArrayLike) -> Array:
    """Return |x| with the sign of y; the slope is 0 at 0."""
    found = jnp.copysign(x, y)
    return jnp.where(x == 0, jax.lax.stop_gradient(found), found)


def logit(x: Array, eps: float | None = None) -> Array:
    """Return log x / (1 − x) of x between ε and 1 − ε; the slope at both is that of the inside."""
    inside = x if eps is None else clamp(x, eps, 1 - eps)
    return jnp.log(inside / (1 - inside))


def _whole(value: Array, dim: int | None) -> Array | tuple[Array, Array]:
    return value if dim is None else (value, jnp.zeros((), int))


def _selected(x: Array, index: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    value = jnp.take_along_axis(x, index, dim)
    if keepdim:
        return value, index
    return jnp.squeeze(value, dim), jnp.squeeze(index, dim)


PYTORCHS: Mapping[str, Callable[..., Array | tuple[Array, Array]]] = {
    "aten::leaky_relu": leaky_relu,
    "aten::hardtanh": hardtanh,
    "aten::clamp": clamp,
    "aten::clamp_min": lambda x, min: clamp(x, min=min),
    "aten::clamp_max": lambda x, max: clamp(x, max=max),
    "aten::hardsigmoid": hardsigmoid,
    "aten::hardswish": hardswish,
    "aten::abs": absolute,
    "aten::log_sigmoid": log_sigmoid,
    "aten::log_sigmoid_forward": lambda x: (log_sigmoid(x), jnp.zeros((0,), x.dtype)),
    "aten::cummax": running_largest,
    "aten::cummin": running_smallest,
    "aten::linalg_vector_norm": vector_norm,
    "aten::std": deviation,
    "aten::atan2": angle_of,
    "aten::i0": bessel,
    "aten::special_i0": bessel,
    "aten::copysign": with_sign_of,
    "aten::logit": logit,
    "aten::max": largest,
    "aten::min": smallest,
}
