"""Replacement of scatters that write a whole array by elementwise operations.

XLA converts such a scatter to a ``map``, and aborts the process if the array is reversed afterwards
(docs/decisions/0005-hessian-norms.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs

from ntk_core.traced._views import aval_of
from ntk_core.traced._walk import Rewritten, Value, evaluated_alone, value_of, walk


def overwrites(jaxpr: Jaxpr) -> bool:
    """Whether a program writes a whole array by a scatter, including calls and loops."""
    return any(map(_is_whole, jaxpr.eqns)) or any(map(overwrites, subjaxprs(jaxpr)))


def reverses(jaxpr: Jaxpr) -> bool:
    """Whether a program reverses an array, itself or through the derivative of a convolution."""
    own = any(eqn.primitive.name in ("rev", "conv_general_dilated") for eqn in jaxpr.eqns)
    return own or any(map(reverses, subjaxprs(jaxpr)))


def _is_whole(eqn: JaxprEqn) -> bool:
    if not eqn.primitive.name.startswith("scatter"):
        return False
    avals = [aval_of(atom) for atom in eqn.invars]
    numbers = eqn.params["dimension_numbers"]
    operand, indices, update = avals
    placed = numbers.scatter_dims_to_operand_dims or numbers.operand_batching_dims
    return not placed and not indices.size and operand.shape == update.shape


def _written(eqn: JaxprEqn, old: Array, new: Array) -> Array:
    """Combine or replace every entry of ``old`` by that of ``new``."""
    rule = eqn.params["update_jaxpr"]
    consts = eqn.params["update_consts"]
    if rule is None:
        return new
    (found,) = jax.vmap(partial(jax.core.eval_jaxpr, rule, consts))(old.ravel(), new.ravel())
    return jnp.reshape(found, old.shape)


class Plain(Rewritten):
    """A function without such scatters."""

    @staticmethod
    def evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
        return _evaluated(jaxpr, consts, *inputs)


def _evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
    def equation(place: int, eqn: JaxprEqn, operands: list[Value]) -> list[Value]:
        if _is_whole(eqn):
            old, _, new = operands
            return [_written(eqn, jnp.asarray(old), jnp.asarray(new))]
        params = {key: _rewritten(value) for key, value in eqn.params.items()}
        return evaluated_alone(jaxpr, eqn.replace(params=params), operands)

    return walk(jaxpr, consts, inputs, value_of, equation)


def _rewritten(value: object) -> object:
    """Return a parameter of an equation, with overwriting programs rewritten."""
    if isinstance(value, tuple):
        return tuple(map(_rewritten, value))
    if isinstance(value, ClosedJaxpr) and overwrites(value.jaxpr):
        return jax.make_jaxpr(partial(_evaluated, value.jaxpr, value.consts))(*value.in_avals)
    if isinstance(value, Jaxpr) and overwrites(value) and not value.constvars:
        closed = jax.make_jaxpr(partial(_evaluated, value, ()))(*(var.aval for var in value.invars))
        return closed.jaxpr if not closed.consts else value
    return value
