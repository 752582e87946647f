"""Can JAX differentiate a function, once and twice?

Custom rules may have a wrong structure, shape or type.

Such rules raise errors deep inside of JAX, in whichever computation calls them first.
Differentiating the program abstractly, without numbers, finds them before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from jax.interpreters.ad import primitive_jvps
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, reason_of
from ntk_core.traced._custom_rules import has_rules
from ntk_core.traced._derivatives import value_and_slope

# Operations with derivatives that users state, or with derivatives for some arguments or of
# first order only.
UNCERTAIN = frozenset(
    {
        *("custom_linear_solve", "pure_callback", "io_callback"),
        *("svd", "eig", "schur", "reduce", "reduce_window", "scatter_mul", "scatter-mul"),
        *("igamma", "igammac", "igamma_grad_a", "regularized_incomplete_beta"),
    }
)
# Calls of other programs, which JAX differentiates without a rule for the call itself.
CALLS_WITHOUT_RULE = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})
Gradient = Callable[[list[Any], list[Any], Any], PyTree]


class MalformedRule(InvalidInput):
    """A function that JAX cannot differentiate, such as by a custom rule of another shape.

    >>> str(MalformedRule.because(TypeError("shapes (3,) and () differ")))
    'net: a function without a first derivative cannot be used; use operations and custom rules \
that JAX can differentiate, with tangents and cotangents of the shapes and types of their \
arguments. The rule or JAX reports: shapes (3,) and () differ'
    """

    order = "first"

    @classmethod
    def because(cls, error: Exception) -> MalformedRule:
        """Return the refusal with the whole reason."""
        return cls(
            "net",
            f"a function without a {cls.order} derivative",
            "operations and custom rules that JAX can differentiate, with tangents and cotangents "
            "of the shapes and types of their arguments. The rule or JAX reports: "
            f"{reason_of(error)}",
        )


class NoSecondDerivative(MalformedRule):
    """A function whose derivative JAX cannot differentiate.

    >>> NoSecondDerivative.because(TypeError("no rule")).given
    'a function without a second derivative'
    """

    order = "second"


class Rules(NamedTuple):
    """The derivatives that the custom rules of a program define.

    Attributes:
        program: second derivatives of all floats, with custom rules expanded; first ones if
            the rules have no derivatives themselves. None for a program without custom
            rules, or if these fail.
        problem: why there are no second derivatives, or None.
    """

    program: ClosedJaxpr | None
    problem: MalformedRule | None


def rules_of(closed: ClosedJaxpr) -> Rules:
    """Expand the custom rules of a program (*parameters, x) ↦ (n, C)."""
    has_own_rules = has_rules(closed.jaxpr)
    if not has_own_rules and not _is_uncertain(closed.jaxpr):
        return Rules(None, None)
    leaves, x, slope = _gradient(closed)

    def sloped(leaves: list[Array], x: Array) -> PyTree:
        return slope(_moving(leaves), leaves, x)

    def curved(leaves: list[Array], x: Array) -> PyTree:
        moved = _moving(leaves)
        return value_and_slope(lambda each: slope(each, leaves, x), moved, moved)

    problem = None
    for derivative in (curved, sloped):
        try:
            program = jax.make_jaxpr(derivative)(leaves, x)
            _check_types(closed.jaxpr)
        except Exception as error:  # rules are functions of users, and may raise anything
            if not isinstance(error, InvalidInput):
                problem = problem or NoSecondDerivative.because(error)
            continue
        return Rules(program if has_own_rules else None, problem)
    return Rules(None, problem)


def refuse_malformed_rules(closed: ClosedJaxpr, rules: Rules) -> None:
    """Refuse a program that JAX cannot differentiate.

    Programs of operations with derivatives of every order cost nothing here.

    Raises:
        MalformedRule: with the whole message of the rule, or of JAX.
    """
    if rules.program is not None:
        return
    if not has_rules(closed.jaxpr) and not _is_uncertain(closed.jaxpr):
        return
    leaves, x, slope = _gradient(closed)
    try:
        jax.eval_shape(slope, _moving(leaves), leaves, x)
        _check_types(closed.jaxpr)
    except InvalidInput:
        raise
    except Exception as error:  # as above
        raise MalformedRule.because(error) from error


def _gradient(
    closed: ClosedJaxpr,
) -> tuple[list[jax.ShapeDtypeStruct], jax.ShapeDtypeStruct, Gradient]:
    """Return shapes of (parameters, x), and (moved parameters, parameters, x) ↦ ∇ Σ f."""
    avals = [var.aval for var in closed.jaxpr.invars]
    *leaves, rows = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]

    def slope(moved: list[Array], leaves: list[Array], x: Array) -> PyTree:
        def total(moved: list[Array]) -> Array:
            new = iter(moved)
            values = [next(new) if _moves(leaf) else leaf for leaf in leaves]
            return jnp.sum(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *values, x)[0])

        return jax.grad(total)(moved)

    return leaves, rows, slope


def _moving(leaves: list[Any]) -> list[Any]:
    return [leaf for leaf in leaves if _moves(leaf)]


def _moves(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact)) and leaf.size > 0


def _check_types(jaxpr: Jaxpr) -> None:
    """Refuse a ``custom_vjp`` whose cotangents have another type than its arguments.

    JAX casts them, and fails where it differentiates them again; whether kernels agree
    depends on rounding.

    Raises:
        TypeError: with both types.
    """
    for eqn in jaxpr.eqns:
        if eqn.primitive.name.startswith("custom_vjp_call"):
            _check_types_of(eqn, jaxpr)
    for inner in subjaxprs(jaxpr):
        _check_types(inner)


def _check_types_of(eqn: JaxprEqn, around: Jaxpr) -> None:
    arguments = list(dict.fromkeys(var for var in eqn.invars if not isinstance(var, Literal)))
    results = [var for var in eqn.outvars if str(var) != "_" and _is_inexact(var)]
    origin = around.debug_info._replace(
        arg_names=("",) * len(arguments), result_paths=("",) * len(results)
    )
    call = Jaxpr([], arguments, results, [eqn], debug_info=origin)
    places = [at for at, var in enumerate(arguments) if _is_inexact(var)]

    def cotangents(values: list[Array]) -> list[Array]:
        def outputs(moving: list[Array]) -> list[Array]:
            given = list(values)
            for at, value in zip(places, moving, strict=True):
                given[at] = value
            return list(jax.core.eval_jaxpr(call, [], *given))

        found, pull = jax.vjp(outputs, [values[at] for at in places])
        return list(pull(found)[0])

    avals: list[Any] = [var.aval for var in arguments]
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    for at, found in zip(places, jax.eval_shape(cotangents, shapes), strict=True):
        own = shapes[at].dtype
        if found.dtype != own:
            raise TypeError(f"a cotangent of type {found.dtype} for an argument of type {own}")


def _is_inexact(var: Var | Literal) -> bool:
    aval: Any = var.aval
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def _is_uncertain(jaxpr: Jaxpr) -> bool:
    """Whether JAX may lack a derivative of an operation of a program."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in UNCERTAIN:
            return True
        is_known = eqn.primitive in primitive_jvps or eqn.primitive.name in CALLS_WITHOUT_RULE
        if not is_known and any(map(_is_inexact, eqn.invars)):
            return True
    return any(map(_is_uncertain, subjaxprs(jaxpr)))
