"""Convolutions in the layout that XLA computes quickly on a CPU, also inside loops.

XLA brings the convolutions of a program into this layout, but not those in the bodies of its loops:
there the convolutions in derivatives take 30 times as long (docs/decisions/0005-hessian-norms.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs
from jax.lax import ConvDimensionNumbers

from ntk_core.traced._walk import Rewritten, Value, evaluated_alone, value_of, walk


def has_convolutions(jaxpr: Jaxpr) -> bool:
    """Whether a program has a convolution, itself or in a call or loop."""
    own = any(eqn.primitive.name == "conv_general_dilated" for eqn in jaxpr.eqns)
    return own or any(map(has_convolutions, subjaxprs(jaxpr)))


class ChannelsLast(Rewritten):
    """A function whose convolutions have rows first and channels last.

    It is meant for products with derivatives: differentiating it gives other layouts again.

    >>> import jax
    >>> apply = lambda w, x: jax.lax.conv(x, w, (1,), "VALID")
    >>> ChannelsLast(apply)(jnp.ones((1, 1, 2)), jnp.array([[[1.0, 2.0, 4.0]]])).tolist()
    [[[3.0, 6.0]]]

    Source: our choice; docs/decisions/0005-hessian-norms.md.
    """

    @staticmethod
    def evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
        return _evaluated(jaxpr, consts, *inputs)


def _evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
    def equation(place: int, eqn: JaxprEqn, operands: list[Value]) -> list[Value]:
        if eqn.primitive.name == "conv_general_dilated":
            x, weight = map(jnp.asarray, operands)
            return [convolved(eqn, x, weight)]
        called = eqn.params.get("jaxpr")
        if eqn.primitive.name in ("jit", "pjit") and isinstance(called, ClosedJaxpr):
            return _evaluated(called.jaxpr, called.consts, *operands)
        return evaluated_alone(jaxpr, eqn, operands)

    return walk(jaxpr, consts, inputs, value_of, equation)


def convolved(eqn: JaxprEqn, x: Array, weight: Array) -> Array:
    """Return the convolution of an equation, computed with rows first and channels last."""
    numbers = eqn.params["dimension_numbers"]
    batch, feature, *pixels = numbers.lhs_spec
    out, into, *offsets = numbers.rhs_spec
    rank = x.ndim
    spatial = tuple(range(1, rank - 1))
    last = rank - 1
    params = dict(eqn.params)
    params["dimension_numbers"] = ConvDimensionNumbers(
        lhs_spec=(0, last, *spatial),
        rhs_spec=(last, last - 1, *range(rank - 2)),
        out_spec=(0, last, *spatial),
    )
    z = eqn.primitive.bind(
        jnp.transpose(x, (batch, *pixels, feature)),
        jnp.transpose(weight, (*offsets, into, out)),
        **params,
    )
    # From (rows, *positions, channels) to the order of the equation.
    order = [0] * rank
    for place, axis in enumerate(numbers.out_spec):
        order[axis] = (0, last, *spatial)[place]
    return jnp.transpose(z, order)
