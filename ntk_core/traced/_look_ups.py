"""One derivative of out-of-range look-ups, in forward and in reverse mode.

JAX's default indexing reads the nearest entry for an index outside an array. Its reverse mode gives
that entry no gradient, its forward mode does. Kernels and training use reverse mode; here linear
and quadratic models, reports and Hessians get the same convention (docs/math/traced-programs.md).
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var
from jax.lax import GatherScatterMode

from ntk_core.traced._views import EquationParams, aval_of

# Programs of replaced look-ups: a function that is traced through its own program
# keeps them as they are.
_REPLACED: set[Jaxpr] = set()
RULED = frozenset({"custom_jvp_call", "custom_vjp_call"})  # keep their own derivatives


@lru_cache(maxsize=512)  # a function that is traced again contains the same inner programs
def with_one_derivative(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program with a derivative of 0, in both modes, for look-ups outside an array."""
    if jaxpr in _REPLACED:
        return jaxpr
    equations = [_equation(eqn) for eqn in jaxpr.eqns]
    if all(new is old for new, old in zip(equations, jaxpr.eqns, strict=True)):
        return jaxpr
    return jaxpr.replace(eqns=equations)


def _equation(eqn: JaxprEqn) -> JaxprEqn:
    if eqn.primitive.name in RULED:
        return eqn
    if eqn.primitive.name == "gather":
        return _look_up(eqn)
    params = {key: _inner(value) for key, value in eqn.params.items()}
    if all(params[key] is value for key, value in eqn.params.items()):
        return eqn
    return eqn.replace(params=params)


def _inner(value: object) -> object:
    """Rewrite the programs among an equation's parameters."""
    if isinstance(value, ClosedJaxpr):
        inner = with_one_derivative(value.jaxpr)
        return value if inner is value.jaxpr else ClosedJaxpr(inner, value.consts)
    if isinstance(value, Jaxpr):
        return with_one_derivative(value)
    if isinstance(value, tuple) and any(isinstance(each, ClosedJaxpr | Jaxpr) for each in value):
        found = tuple(map(_inner, value))
        if all(a is b for a, b in zip(found, value, strict=True)):
            return value
        # A linear solve names its programs.
        make = getattr(type(value), "_make", tuple)
        return make(found)
    return value


def _look_up(eqn: JaxprEqn) -> JaxprEqn:
    """Replace one look-up by a call that stops the derivative outside the array."""
    operand, indices = (aval_of(atom) for atom in eqn.invars)
    in_bounds = eqn.params["mode"] == GatherScatterMode.PROMISE_IN_BOUNDS
    if not in_bounds or not jnp.issubdtype(operand.dtype, jnp.inexact):
        return eqn
    call = _call(
        operand.shape,
        operand.dtype.name,
        indices.shape,
        indices.dtype.name,
        tuple(eqn.params.items()),
        eqn.primitive,
    )
    made: list[Var] = list(eqn.outvars)
    return call.replace(invars=eqn.invars, outvars=made, source_info=eqn.source_info)


@lru_cache(maxsize=512)
def _call(
    shape: tuple[int, ...],
    dtype: str,
    indices_shape: tuple[int, ...],
    indices_dtype: str,
    items: tuple[tuple[str, object], ...],
    gather: Primitive,
) -> JaxprEqn:
    params: EquationParams = dict(items)

    def look_up(operand: Array, indices: Array) -> Array:
        found = jnp.asarray(gather.bind(operand, indices, **params))
        numbers = params["dimension_numbers"]
        last = [shape[axis] - params["slice_sizes"][axis] for axis in numbers.start_index_map]
        limits = jnp.asarray(last, indices.dtype)
        inside = jnp.all((indices >= 0) & (indices <= limits), axis=-1)
        own = [axis for axis in range(found.ndim) if axis not in numbers.offset_dims]
        reads = lax.broadcast_in_dim(inside, found.shape, own)
        return lax.select(reads, found, lax.stop_gradient(found))

    given = (
        jax.ShapeDtypeStruct(shape, dtype),
        jax.ShapeDtypeStruct(indices_shape, indices_dtype),
    )
    call: JaxprEqn = jax.make_jaxpr(jax.jit(look_up))(*given).eqns[0]
    _REPLACED.add(call.params["jaxpr"].jaxpr)
    return call
