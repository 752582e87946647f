"""Custom derivative rules of a wrong structure, shape or type.

Refused by name, with the whole reason.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import (
    InvalidInput,
    KernelOperator,
    empirical_ntk,
    hessian_norm,
    layer_quantities,
    linearity_report,
    linearize,
    loss_hessian,
    quadratic_model,
    train,
)
from ntk_core.traced import MalformedRule, NoSecondDerivative
from tests.plain_derivatives import plain_kernel

# Each test runs with its first cases in the fast tier.
pytestmark = pytest.mark.first_cases(2)

RNG = np.random.default_rng(0)
PARAMS = {"w": RNG.standard_normal((4, 5)), "v": RNG.standard_normal((5, 2))}
MOVED = {name: 1.05 * leaf for name, leaf in PARAMS.items()}
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((3, 2))
Activation = Callable[[Any], Any]


def slope(z: Any) -> Any:
    return 1 - jnp.tanh(z) ** 2


def forward_rule(rule: Callable[..., Any], function: Activation = jnp.tanh) -> Activation:
    ruled = jax.custom_jvp(lambda z: function(z))
    ruled.defjvp(rule)
    return ruled


def backward_rule(
    backward: Callable[..., Any],
    forward: Callable[..., Any] | None = None,
    function: Activation = jnp.tanh,
) -> Activation:
    ruled = jax.custom_vjp(lambda z: function(z))
    ruled.defvjp(forward or (lambda z: (function(z), z)), backward)
    return ruled


def solved(**rules: Any) -> Activation:
    """Solve A h = tanh z, row by row."""
    matrix = 2 * jnp.eye(5) + jnp.eye(5, k=1)

    def solve(matvec: Any, b: Any) -> Any:
        return jnp.linalg.solve(matrix.astype(b.dtype), b)

    def one(row: Any) -> Any:
        return jax.lax.custom_linear_solve(
            lambda v: matrix.astype(v.dtype) @ v, row, solve, **rules
        )

    return jax.vmap(lambda row: one(jnp.tanh(row)))


def model(activation: Activation) -> Callable[[Any, Any], Any]:
    return lambda params, x: activation(x @ params["w"]) @ params["v"]


def on_host(z: Any) -> Any:
    shape = jax.ShapeDtypeStruct(z.shape, z.dtype)
    return jax.pure_callback(np.tanh, shape, z, vmap_method="sequential")


def raised(*_: Any) -> Any:
    raise ZeroDivisionError("division by zero")


# Rule, and words of its reason.
FIRST: dict[str, tuple[Activation, str]] = {
    "shape of a tangent": (
        forward_rule(lambda at, by: (jnp.tanh(at[0]), by[0].sum())),
        "Custom JVP rule",
    ),
    "shape of a cotangent": (backward_rule(lambda z, g: (g.sum(),)), "shape"),
    "type of a tangent": (
        forward_rule(lambda at, by: (jnp.tanh(at[0]), by[0].astype(jnp.float16))),
        "float16",
    ),
    "type of a cotangent": (
        backward_rule(lambda z, g: ((slope(z) * g).astype(jnp.float16),)),
        "float16",
    ),
    "integers as cotangents": (backward_rule(lambda z, g: (jnp.ones(z.shape, int),)), "int"),
    "no tangent": (forward_rule(lambda at, by: None), "Custom JVP rule"),
    "three results": (forward_rule(lambda at, by: (at[0], by[0], by[0])), "pair"),
    "a tuple as tangent": (forward_rule(lambda at, by: (at[0], (by[0], by[0]))), "container"),
    "one argument": (forward_rule(lambda at: at), "positional argument"),
    "an error of its own": (forward_rule(raised), "division by zero"),
    "a tangent that is not linear": (
        forward_rule(lambda at, by: (jnp.tanh(at[0]), by[0] ** 2)),
        "Transpose rule",
    ),
    "a branch on a value": (
        backward_rule(lambda z, g: (g if g.sum() > 0 else 2 * g,)),
        "boolean conversion",
    ),
    "no cotangents": (backward_rule(lambda z, g: None), "Custom VJP bwd rule"),
    "an array in place of a tuple": (backward_rule(lambda z, g: g), "tuple"),
    "two cotangents of one argument": (backward_rule(lambda z, g: (g, g)), "structure"),
    "an error in the backward rule": (backward_rule(raised), "division by zero"),
    "a forward pass without residuals": (
        backward_rule(lambda z, g: (g,), lambda z: jnp.tanh(z)),
        "pair",
    ),
    "a forward pass of another shape": (
        backward_rule(lambda z, g: (g,), lambda z: (jnp.tanh(z).sum(), z)),
        "shape",
    ),
    "text as residual": (backward_rule(lambda z, g: (g,), lambda z: (jnp.tanh(z), "a")), "'a'"),
    "a solver without transpose": (solved(), "transpose_solve required"),
    "a host function": (on_host, "Pure callbacks do not support"),
    "a decomposition without derivative": (
        lambda z: jnp.linalg.svd(z[:, None])[1] + z,
        "not implemented for full matrices",
    ),
    "an operation without derivative": (lambda z: jnp.nextafter(z, 1.0), "not implemented"),
    "an argument without derivative": (
        lambda z: jax.scipy.special.betainc(jnp.abs(z) + 1, 1.0, 0.3),
        "not supported",
    ),
    "products of equal places": (
        lambda z: jnp.ones(z.shape).at[:, [0, 0, 1, 2, 3]].multiply(z),
        "unique",
    ),
}
CALLS: dict[str, Callable[[Any], object]] = {
    "kernel": lambda f: empirical_ntk(f, PARAMS, X),
    "operator": lambda f: KernelOperator(f, PARAMS, X),
    "linear model": lambda f: linearize(f, PARAMS)(MOVED, X),
    "quadratic model": lambda f: quadratic_model(f, PARAMS)(MOVED, X),
    "report": lambda f: linearity_report(f, PARAMS, MOVED, X),
    "training": lambda f: train(f, PARAMS, X, Y, max_steps=1),
    "loss": lambda f: loss_hessian(f, PARAMS, X, Y).norm(),
    "Hessian": lambda f: hessian_norm(f, PARAMS, X[0], batched=False),
    "layers": lambda f: layer_quantities(f, PARAMS, X[0]),
}


@pytest.mark.long_after(3)
@pytest.mark.parametrize("rule", FIRST)
def test_malformed_rules_are_refused(rule: str) -> None:
    activation, reason = FIRST[rule]
    for name, call in CALLS.items():
        with pytest.raises(MalformedRule, match="without a first derivative") as refused:
            call(model(activation))
        assert reason in str(refused.value), name


def failing_slope(z: Any) -> Any:
    """The slope of tanh, whose own rule returns a cotangent of another shape."""
    return backward_rule(lambda z, g: (g.sum(),), function=slope)(z)


# The first derivative is right, the second one fails.
SECOND: dict[str, Activation] = {
    "backward rule": backward_rule(lambda z, g: (failing_slope(z) * g,)),
    "forward rule": forward_rule(lambda at, by: (jnp.tanh(at[0]), failing_slope(at[0]) * by[0])),
}
SECOND_CALLS = ("quadratic model", "loss", "Hessian")


@pytest.mark.slow
@pytest.mark.first_cases(1)  # each rule compiles a kernel and a report
@pytest.mark.parametrize("rule", SECOND)
def test_rules_without_second_derivatives_keep_the_first(rule: str) -> None:
    apply = model(SECOND[rule])
    found = np.asarray(empirical_ntk(apply, PARAMS, X))
    expected = plain_kernel(model(jnp.tanh), PARAMS, X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    report = linearity_report(apply, PARAMS, MOVED, X)
    assert np.isfinite(report.kernel_change)
    assert np.isnan(report.second_order_share)
    for name in SECOND_CALLS:
        with pytest.raises(NoSecondDerivative, match="without a second derivative"):
            CALLS[name](apply)


@pytest.mark.long  # compiles a kernel and a report
def test_operations_without_second_derivatives_keep_the_first() -> None:
    apply = model(lambda z: jax.scipy.special.gammainc(jnp.abs(z) + 1, 1.0))
    found = np.asarray(empirical_ntk(apply, PARAMS, X))
    expected = plain_kernel(apply, PARAMS, X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(linearity_report(apply, PARAMS, MOVED, X).second_order_share)
    for name in SECOND_CALLS:
        with pytest.raises(NoSecondDerivative, match="without a second derivative"):
            CALLS[name](apply)


def test_second_derivatives_of_chains_are_refused_by_layers() -> None:
    with pytest.raises(InvalidInput, match="without a second derivative"):
        CALLS["layers"](model(SECOND["backward rule"]))
