"""Custom derivative rules: right where they are derivatives,
refused where the Hessian is not symmetric.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import (
    InvalidInput,
    ball_sup,
    empirical_ntk,
    hessian_density,
    hessian_eigenpairs,
    hessian_norm,
    layer_quantities,
    linearity_report,
    linearize,
    quadratic_model,
    train,
)
from ntk_core.dynamics import loss_hessian_product
from ntk_core.hessians import hessian_block_norms, path_sup, vector_hessian_norm
from ntk_core.traced import AsymmetricHessian

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

RNG = np.random.default_rng(0)
PARAMS = {
    "w": RNG.standard_normal((3, 5)),
    "u": RNG.standard_normal((5, 4)),
    "v": RNG.standard_normal((4, 2)),
}
MOVED = {name: 1.05 * leaf for name, leaf in PARAMS.items()}
X = RNG.standard_normal((4, 3))
Y = RNG.standard_normal((4, 2))


def with_reverse_rule(function, slope):
    """Return a ``custom_vjp`` of an elementwise function."""
    ruled = jax.custom_vjp(function)
    ruled.defvjp(lambda z: (function(z), z), lambda z, g: (slope(z) * g,))
    return ruled


def slope_of_tanh(z):
    return 1 - jnp.tanh(z) ** 2


one_rule = with_reverse_rule(jnp.tanh, slope_of_tanh)
rule_in_a_rule = with_reverse_rule(one_rule, lambda z: 1 - one_rule(z) ** 2)
rule_in_rules_in_a_rule = with_reverse_rule(rule_in_a_rule, lambda z: 1 - rule_in_a_rule(z) ** 2)


@jax.custom_jvp
def rule_in_a_forward_rule(z):
    return one_rule(z)


rule_in_a_forward_rule.defjvp(lambda at, by: (one_rule(at[0]), (1 - one_rule(at[0]) ** 2) * by[0]))


def checkpointed(z):
    return jax.checkpoint(one_rule)(z)


RIGHT = (one_rule, rule_in_a_rule, rule_in_rules_in_a_rule, rule_in_a_forward_rule, checkpointed)

straight_through = with_reverse_rule(lambda z: jnp.round(z), jnp.ones_like)
reversal = with_reverse_rule(lambda z: z, lambda z: -jnp.ones_like(z))
rescaled = with_reverse_rule(jnp.sin, lambda z: 3 * jnp.cos(z))
# Rules that are wrong only for large arguments, as clipped slopes are.
clipped_slope = with_reverse_rule(jnp.tanh, lambda z: jnp.maximum(1 - jnp.tanh(z) ** 2, 0.9))


@jax.custom_jvp
def multiplied(a, b):
    return a * b


multiplied.defjvp(lambda at, by: (at[0] * at[1], 2 * at[0] * by[1] + at[1] * by[0]))


def product_of_neighbors(z):
    return multiplied(z, jnp.roll(z, 1, -1))


WRONG = {
    "straight-through": straight_through,
    "reversal": reversal,
    "rescaled": rescaled,
    "forward rule": product_of_neighbors,
    "clipped slope": clipped_slope,
}


def model(activation):
    def apply(params, x):
        hidden = activation(jnp.tanh(x @ params["w"]) @ params["u"])
        return jnp.tanh(hidden) @ params["v"]

    return apply


HESSIANS = {
    "norm": lambda f: hessian_norm(f, PARAMS, X[0], batched=False).value,
    "norms of a batch": lambda f: hessian_norm(f, PARAMS, X, batched=True).value,
    "eigenpairs": lambda f: hessian_eigenpairs(f, PARAMS, X[0], num_wanted=2).eigenvalues,
    "density": lambda f: hessian_density(f, PARAMS, X[0], num_probes=2, num_steps=4).nodes,
    "ball": lambda f: ball_sup(f, PARAMS, X[0], 0.1, num_starts=1, num_steps=1).ascent,
    "path": lambda f: path_sup(f, [PARAMS, MOVED], X[0]).values,
    "blocks": lambda f: hessian_block_norms(f, PARAMS, X[0]).values,
    "all outputs": lambda f: vector_hessian_norm(f, PARAMS, X[0]).value,
    "quadratic model": lambda f: quadratic_model(f, PARAMS)(MOVED, X),
    "loss": lambda f: loss_hessian_product(f, PARAMS, X, Y, MOVED)["u"],
}


SLOW = ("ball", "path", "blocks", "all outputs", "norms of a batch")


def calls():
    """Mark calls that compile for seconds as slow."""
    found = []
    for call in HESSIANS:
        found.append(pytest.param(call, marks=[pytest.mark.slow] if call in SLOW else []))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("call", calls())
def test_nested_rules_give_the_hessians_of_tanh(x64, call):
    found = HESSIANS[call](model(rule_in_a_rule))
    expected = HESSIANS[call](model(jnp.tanh))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.long_after(2)
@pytest.mark.parametrize("activation", RIGHT)
def test_right_rules_give_the_norm_of_the_dense_hessian(x64, activation):
    found = hessian_norm(model(activation), PARAMS, X[0], batched=False)
    flat, unravel = jax.flatten_util.ravel_pytree(PARAMS)
    plain = model(jnp.tanh)
    hessian = jax.hessian(lambda w: plain(unravel(w), X[:1])[0, 0])(flat)
    assert found.value == pytest.approx(np.abs(np.linalg.eigvalsh(hessian)).max(), rel=1e-7)


@pytest.mark.parametrize("call", ["quadratic model", "loss"])
def test_second_derivatives_of_backward_rules_in_forward_rules(x64, call):
    found = HESSIANS[call](model(rule_in_a_forward_rule))
    np.testing.assert_allclose(found, HESSIANS[call](model(jnp.tanh)), rtol=1e-6)


@pytest.mark.slow  # four compiled programs
def test_layer_quantities_of_nested_rules_are_those_of_tanh(x64):
    def chain(activation):
        return lambda params, x: activation(activation(x @ params["w"]) @ params["u"]) @ params["v"]

    found = layer_quantities(chain(rule_in_a_rule), PARAMS, X[0])
    expected = layer_quantities(chain(jnp.tanh), PARAMS, X[0])
    np.testing.assert_allclose(found.block_bounds, expected.block_bounds, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("call", HESSIANS)
def test_asymmetric_hessians_are_refused(call):
    with pytest.raises(AsymmetricHessian, match="asymmetric Hessian"):
        HESSIANS[call](model(straight_through))


@pytest.mark.long_after(2)
@pytest.mark.sampled(3)  # backward rules of a value and of a sign, and a forward rule
@pytest.mark.parametrize("rule", WRONG)
def test_asymmetric_rules_are_refused(rule):
    for call in ("norm", "loss", "quadratic model"):
        with pytest.raises(AsymmetricHessian, match="asymmetric Hessian"):
            HESSIANS[call](model(WRONG[rule]))


@pytest.mark.long_after(1)
@pytest.mark.slow  # kernels, linear models and reports
@pytest.mark.sampled(2)  # a value unlike its slope, and a rescaled slope
@pytest.mark.parametrize("rule", WRONG)
def test_first_derivatives_of_such_rules_remain(x64, rule):
    apply = model(WRONG[rule])
    kernel = empirical_ntk(apply, PARAMS, X)
    jacobian = jax.jacrev(lambda w: apply(w, X))(PARAMS)
    expected = sum(
        np.einsum("iap,jbp->ijab", *2 * (np.reshape(leaf, (4, 2, -1)),))
        for leaf in jacobian.values()
    )
    np.testing.assert_allclose(kernel, expected, rtol=1e-9)
    along = sum(
        np.reshape(jacobian[name], (4, 2, -1)) @ (MOVED[name] - PARAMS[name]).ravel()
        for name in PARAMS
    )
    outputs = np.asarray(apply(PARAMS, X))
    np.testing.assert_allclose(linearize(apply, PARAMS)(MOVED, X), outputs + along, rtol=1e-9)
    report = linearity_report(apply, PARAMS, MOVED, X)
    assert np.isnan(report.second_order_share)
    assert np.isfinite(report.kernel_change)


@pytest.mark.long  # four norms and a ball
def test_parameters_decide_about_a_rule():
    # The slope is clipped where tanh'(z) < 0.9, not near 0.
    small = jax.tree.map(lambda leaf: 0.01 * leaf, PARAMS)
    found = hessian_norm(model(clipped_slope), small, X[0], batched=False)
    expected = hessian_norm(model(jnp.tanh), small, X[0], batched=False)
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    with pytest.raises(AsymmetricHessian):
        hessian_norm(model(clipped_slope), [small, PARAMS], X[0], batched=False)
    with pytest.raises(AsymmetricHessian):
        ball_sup(model(clipped_slope), small, X[0], 8.0, num_starts=1, num_steps=1)


def test_other_outputs_do_not_decide():
    def two_heads(params, x):
        hidden = jnp.tanh(x @ params["w"]) @ params["u"]
        own = jnp.tanh(hidden) @ params["v"][:, :1]
        other = jnp.tanh(reversal(hidden)) @ params["v"][:, 1:]
        return jnp.concatenate([own, other], 1)

    hessian_norm(two_heads, PARAMS, X[0], 0, batched=False)
    with pytest.raises(AsymmetricHessian):
        hessian_norm(two_heads, PARAMS, X[0], 1, batched=False)


@pytest.mark.long_after(2)
@pytest.mark.sampled(6)  # a grid of types, widths and sizes
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("width", [3, 100])
@pytest.mark.parametrize("size", [0.01, 1.0, 10.0])
def test_right_rules_raise_no_false_alarm(dtype, width, size):
    rng = np.random.default_rng(width)
    shapes = {"w": (3, width), "u": (width, width), "v": (width, 2)}
    params = {}
    for name, shape in shapes.items():
        params[name] = jnp.asarray(size * rng.standard_normal(shape) / shape[0] ** 0.5, dtype)
    x = jnp.asarray(X, dtype)
    apply = model(with_reverse_rule(lambda z: jnp.sin(z), jnp.cos))
    quadratic_model(apply, params)(params, x)


@pytest.mark.slow
def test_checks_inside_of_jit_use_random_numbers():
    def product(apply):
        return jax.jit(lambda w, x: loss_hessian_product(apply, w, x, Y, MOVED)["u"])

    found = product(model(one_rule))(PARAMS, X)
    expected = loss_hessian_product(model(jnp.tanh), PARAMS, X, Y, MOVED)["u"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(AsymmetricHessian):
        product(model(straight_through))(PARAMS, X)


def nonlinear(backward):
    function = jax.custom_vjp(lambda z: z)
    function.defvjp(lambda z: (z, None), lambda _, g: (backward(g),))
    return function


CLIPS = {
    "clip": lambda g: jnp.clip(g, -0.1, 0.1),
    "sign": jnp.sign,
    "round": jnp.round,
    "normalize": lambda g: g / jnp.linalg.norm(g),
    "square": lambda g: g * g,
    "where": lambda g: jnp.where(jnp.abs(g) < 1, g, 0),
}
FIRST = {
    "kernel": lambda f: empirical_ntk(f, PARAMS, X),
    "linear model": lambda f: linearize(f, PARAMS)(MOVED, X),
    "report": lambda f: linearity_report(f, PARAMS, MOVED, X),
    "training": lambda f: train(f, PARAMS, X, Y, optimizer="adam", max_steps=1),
    "norm": lambda f: hessian_norm(f, PARAMS, X[0], batched=False),
}


@pytest.mark.long_after(2)
@pytest.mark.parametrize("rule", CLIPS)
@pytest.mark.parametrize("call", FIRST)
def test_nonlinear_backward_rules_are_refused(call, rule):
    with pytest.raises(InvalidInput, match="not linear in its cotangent"):
        FIRST[call](model(nonlinear(CLIPS[rule])))


@pytest.mark.parametrize("rule", ["clip", "round", "normalize"])
@pytest.mark.parametrize("call", FIRST)
def test_nonlinear_rules_of_weights_are_refused(call, rule):
    limited = nonlinear(CLIPS[rule])

    def apply(params, x):
        hidden = jnp.tanh(x @ limited(params["w"])) @ params["u"]
        return jnp.tanh(hidden) @ params["v"]

    # A rule that is not linear has no symmetric Hessian either.
    with pytest.raises(InvalidInput, match=r"not linear in its cotangent|asymmetric Hessian"):
        FIRST[call](apply)
