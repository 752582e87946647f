"""Operations whose subgradients differ between PyTorch and torchax, with those of PyTorch.

At a kink, such as a ReLU6 at 0 or the maximum of equal numbers, PyTorch and JAX choose different
subgradients. Inputs of zeros with biases of zero meet kinks in every row. Each function equals
PyTorch's, value and derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    "aten::max": largest,
    "aten::min": smallest,
}
