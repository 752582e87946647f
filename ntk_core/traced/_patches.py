"""Convolutions as products of patches: on a CPU their second derivatives are ten times as fast.

XLA runs the convolutions in derivatives of convolutions by a general loop there
(docs/decisions/0005-hessian-norms.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs

from ntk_core.traced._views import aval_of, shape_of
from ntk_core.traced._walk import Rewritten, Value, evaluated_alone, value_of, walk

MOST_OFFSETS = 49  # of a kernel, whose patches are copies of the inputs; our choice


def has_convolutions(jaxpr: Jaxpr) -> bool:
    """Whether a program has a convolution that can be a product of patches."""
    return any(map(_is_plain, jaxpr.eqns)) or any(map(has_convolutions, subjaxprs(jaxpr)))


def _is_plain(eqn: JaxprEqn) -> bool:
    if eqn.primitive.name != "conv_general_dilated":
        return False
    params = eqn.params
    is_grouped = params["feature_group_count"] != 1 or params["batch_group_count"] != 1
    is_transposed = any(each != 1 for each in params["lhs_dilation"])
    shape = shape_of(eqn.invars[1])
    offsets = math.prod(shape[axis] for axis in params["dimension_numbers"].rhs_spec[2:])
    return not is_grouped and not is_transposed and offsets <= MOST_OFFSETS


class ByPatches(Rewritten):
    """A function without convolutions.

    >>> apply = lambda w, x: jax.lax.conv(x, w, (1,), "VALID")
    >>> ByPatches(apply)(jnp.ones((1, 1, 2)), jnp.array([[[1.0, 2.0, 4.0]]])).tolist()
    [[[3.0, 6.0]]]

    Source: our choice; docs/decisions/0005-hessian-norms.md.
    """

    @staticmethod
    def evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
        return _evaluated(jaxpr, consts, *inputs)


def _evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
    def equation(place: int, eqn: JaxprEqn, operands: list[Value]) -> list[Value]:
        if _is_plain(eqn):
            x, weight = operands
            return [convolved(eqn, jnp.asarray(x), jnp.asarray(weight))]
        called = eqn.params.get("jaxpr")
        if eqn.primitive.name in ("jit", "pjit") and isinstance(called, ClosedJaxpr):
            return _evaluated(called.jaxpr, called.consts, *operands)
        return evaluated_alone(jaxpr, eqn, operands)

    return walk(jaxpr, consts, inputs, value_of, equation)


def convolved(eqn: JaxprEqn, x: Array, weight: Array) -> Array:
    """Return the convolution of an equation as one product."""
    params = eqn.params
    numbers = params["dimension_numbers"]
    batch, feature, *spatial = numbers.lhs_spec
    x = jnp.transpose(x, (batch, *spatial, feature))  # channels last
    out, into, *kernel = numbers.rhs_spec
    weight = jnp.transpose(weight, (*kernel, into, out))
    *offsets, channels, num_features = weight.shape
    widths = [(low, high, 0) for low, high in params["padding"]]
    padded = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *widths, (0, 0, 0)])
    sizes = [shape_of(eqn.outvars[0])[axis] for axis in numbers.out_spec[2:]]
    windows = []
    for offset in itertools.product(*map(range, offsets)):
        cuts = []
        for o, size, stride, dilation in zip(
            offset, sizes, params["window_strides"], params["rhs_dilation"], strict=True
        ):
            start = o * dilation
            cuts.append(slice(start, start + (size - 1) * stride + 1, stride))
        windows.append(padded[:, *cuts])
    patches = jnp.stack(windows, axis=-2)  # (n, *positions, offsets, channels)
    rows = patches.reshape(-1, len(windows) * channels)
    z = (rows @ weight.reshape(-1, num_features)).reshape(len(x), *sizes, num_features)
    # From (n, *positions, features) to the order of the equation.
    order = [0] * z.ndim
    order[numbers.out_spec[0]] = 0
    order[numbers.out_spec[1]] = z.ndim - 1
    for place, axis in enumerate(numbers.out_spec[2:]):
        order[axis] = 1 + place
    return jnp.transpose(z, order).astype(aval_of(eqn.outvars[0]).dtype)
