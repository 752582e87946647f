"""Directional derivatives of functions with custom rules, by forward or by reverse mode alone."""

from collections.abc import Callable
from typing import Any

import jax
from jax.errors import TracerBoolConversionError
from jax.extend.core import Jaxpr, subjaxprs
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput


class NonlinearRule(InvalidInput):
    """A custom backward rule that is not linear in its cotangent, hence no derivative.

    >>> str(NonlinearRule("net", "a rule", "a linear one"))
    'net: a rule cannot be used; use a linear one'
    """


def derivative_along(function: Callable[[PyTree], Any], at: PyTree) -> Callable[[PyTree], Any]:
    """Return the directional derivative by reverse mode only, for a ``custom_vjp``."""
    return value_and_derivative(function, at)[1]


def value_and_derivative(
    function: Callable[[PyTree], Any], at: PyTree
) -> tuple[Any, Callable[[PyTree], Any]]:
    """Return (function(at), its directional derivative) by reverse mode only.

    u ↦ Jᵀ u is linear, and its transpose is v ↦ J v: the convention of the kernel J Jᵀ, also for
    functions with ``jax.custom_vjp``, for which JAX has no forward mode.
    """
    outputs, pull = jax.vjp(function, at)
    push = transposed(pull, outputs)
    return outputs, lambda direction: push((direction,))


def transposed(
    pull: Callable[[PyTree], tuple[Any, ...]], outputs: PyTree
) -> Callable[[tuple[PyTree, ...]], Any]:
    """Return the transpose of a backward pass u ↦ Jᵀ u.

    Raises:
        NonlinearRule: when called, if the pass is not linear, as with a rule that clips gradients.
    """
    transpose = jax.linear_transpose(pull, outputs)

    def push(directions: tuple[PyTree, ...]) -> Any:
        try:
            return transpose(directions)[0]
        except (RuntimeError, AssertionError, TracerBoolConversionError) as error:
            # JAX finds operations that have no transpose, such as min and sign.
            raise NonlinearRule(
                "net",
                "a function whose custom_vjp is not linear in its cotangent",
                "a linear backward rule; clip or round gradients in the optimizer, after "
                f"differentiation. JAX reports: {error or type(error).__name__}",
            ) from error

    return push


def linearized(
    function: Callable[[PyTree], Any], at: PyTree
) -> tuple[Any, Callable[[PyTree], Any]]:
    """Return (function(at), its directional derivative): forward mode where JAX has it."""
    if is_reverse_only(function, at):
        return value_and_derivative(function, at)
    return jax.linearize(function, at)


def value_and_slope(
    function: Callable[[PyTree], Any], at: PyTree, direction: PyTree
) -> tuple[Any, Any]:
    """Return (function(at), its derivative along ``direction``): forward mode where JAX has it."""
    if not is_reverse_only(function, at):
        return jax.jvp(function, (at,), (direction,))
    outputs, push = value_and_derivative(function, at)
    return outputs, push(direction)


def is_reverse_only(function: Callable[[PyTree], Any], at: PyTree) -> bool:
    """Whether the function has a ``jax.custom_vjp``, hence no forward mode."""
    # A new function each time, since JAX caches traces by identity.
    return has_reverse_rule(jax.make_jaxpr(lambda w: function(w))(at).jaxpr)


def has_reverse_rule(jaxpr: Jaxpr) -> bool:
    """Whether a program contains a ``jax.custom_vjp``."""
    if any(eqn.primitive.name.startswith("custom_vjp_call") for eqn in jaxpr.eqns):
        return True
    return any(map(has_reverse_rule, subjaxprs(jaxpr)))
