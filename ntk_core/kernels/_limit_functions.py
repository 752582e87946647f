"""Operations of a program applied as they are: to known arrays, and to numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn

from ntk_core.kernels._limit_values import Known, refusal
from ntk_core.traced import aval_of, shape_of

CUSTOM = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}
SAME_SLOPE = 1e-4  # relative; slopes of custom rules may be in float32


def constant(value: object) -> Known:
    array: Any = value
    if not isinstance(array, jax.Array | np.ndarray):
        array = np.asarray(array)
    if hasattr(array, "dtype") and is_float_type(array.dtype):
        array = np.asarray(array, np.float64)  # so that its numbers can be read while compiling
    return Known(array, array, False)


def evaluated(eqn: JaxprEqn, operands: list[Known]) -> list[Known]:
    """Evaluate an operation on known arrays, for the rows of x1 and of x2."""

    def apply(*values: Any) -> Any:
        own = [
            jnp.asarray(value, aval_of(atom).dtype)
            for value, atom in zip(values, eqn.invars, strict=True)
        ]
        return bound(eqn, own)

    depends = any(operand.depends for operand in operands)
    if depends:
        axes = [0 if operand.depends else None for operand in operands]
        each = jax.vmap(apply, axes)
        left = each(*(operand.left for operand in operands))
        right = each(*(operand.right for operand in operands))
    else:
        with jax.ensure_compile_time_eval():
            left = right = apply(*(operand.left for operand in operands))
    if not eqn.primitive.multiple_results:
        left = [left]
        right = [right]
    return [Known(one, two, depends) for one, two in zip(left, right, strict=True)]


def bound(eqn: JaxprEqn, values: Sequence[Array]) -> Any:
    """Apply the operation of an equation, with its own rules of differentiation."""
    params: Any = eqn.primitive.get_bind_params(eqn.params)
    functions: Sequence[Any] = ()
    if isinstance(params, tuple):  # before JAX 0.10
        functions, params = params
    return eqn.primitive.bind(*functions, *values, **params)


class Applied:
    """An elementwise operation applied to functions of one number."""

    def __init__(self, eqn: JaxprEqn, functions: tuple[Callable[[Array], Array] | np.ndarray, ...]):
        self.eqn = eqn
        self.functions = functions

    def __call__(self, t: Array) -> Array:
        values = [
            jnp.broadcast_to(each(t) if callable(each) else each, t.shape)
            for each in self.functions
        ]
        # Constants take the type of t.
        values = [
            value.astype(t.dtype) if is_float_type(value.dtype) else value for value in values
        ]
        params = dict(self.eqn.params)
        if self.eqn.primitive.name == "convert_element_type" and is_float_type(params["new_dtype"]):
            return values[0].astype(t.dtype)
        result = self.eqn.primitive.bind(*values, **params)
        return jnp.asarray(result)

    @property
    def __name__(self) -> str:
        return f"a function ending with {self.eqn.primitive.name}"


def scaled(function: Callable[[Array], Array], factor: float) -> Callable[[Array], Array]:
    return function if factor == 1 else lambda t: function(factor * t)


def composed(
    outer: Callable[[Array], Array], inner: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    return lambda t: outer(inner(t))


def is_float_type(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))


def is_choice(eqn: JaxprEqn) -> bool:
    """Whether an operand is of booleans or integers."""
    return not is_float_type(aval_of(eqn.invars[0]).dtype)


def check_slopes(eqn: JaxprEqn) -> None:
    """Refuse a custom rule whose derivative is not that of its function, at random numbers."""
    with jax.ensure_compile_time_eval():
        _compare_slopes(eqn)


def _compare_slopes(eqn: JaxprEqn) -> None:
    name = eqn.primitive.name
    floats = [is_float_type(aval_of(atom).dtype) for atom in eqn.invars]
    rng = np.random.default_rng(0)
    values = [
        jnp.asarray(
            rng.standard_normal(shape_of(atom)) if is_float else jnp.zeros(shape_of(atom)),
            aval_of(atom).dtype,
        )
        for atom, is_float in zip(eqn.invars, floats, strict=True)
    ]
    called = eqn.params[CUSTOM[name]]

    def by_rule(*moving: Array) -> Array:
        return _mixture(bound(eqn, _filled(moving)))

    def by_program(*moving: Array) -> Array:
        return _mixture(jax.core.eval_jaxpr(called.jaxpr, called.consts, *_filled(moving)))

    def _filled(moving: Sequence[Array]) -> list[Array]:
        rest = iter(moving)
        return [
            next(rest) if is_float else value
            for value, is_float in zip(values, floats, strict=True)
        ]

    moving = [value for value, is_float in zip(values, floats, strict=True) if is_float]
    places = tuple(range(len(moving)))
    for one, two in zip(
        jax.grad(by_rule, places)(*moving), jax.grad(by_program, places)(*moving), strict=True
    ):
        scale = float(jnp.abs(two).max(initial=1e-30))
        if not float(jnp.abs(one - two).max(initial=0.0)) <= SAME_SLOPE * scale:
            raise refusal(name, "whose derivative is not that of its function")


def _mixture(results: Any) -> Array:
    """Return a random mixture of all results."""
    rng = np.random.default_rng(1)
    total = jnp.zeros(())
    for result in jax.tree.leaves(results):
        total = total + jnp.sum(result * jnp.asarray(rng.standard_normal(result.shape)))
    return total
