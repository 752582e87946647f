"""Derivative rules of a user are compared and checked, however JAX wraps them.

Those of JAX cost nothing.

Each case is a function twice, with two rules: the rule is the only difference, and the
program does not show it.
"""

from __future__ import annotations

from functools import partial, wraps
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ntk_core import linearity_report, linearize, train
from ntk_core.dynamics import loss_hessian_product
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.traced import traced
from ntk_core.traced._custom_rules import has_rules
from tests.plain_derivatives import normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

PARAMS = normal(w=(3, 8), b=(8,), v=(8, 2))
X = np.random.default_rng(1).standard_normal((4, 3)) / 2
OF_JAX = Path(jax.__file__).parent
# Objects with rules, which their types do not show.
RELU: Any = jax.nn.relu
RELU6: Any = jax.nn.relu6


def slope(factor, a):
    """The derivative of tanh for a factor of 1."""
    return factor * (1 - jnp.tanh(a) ** 2)


def by_defjvps(factor):
    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvps(lambda t, y, a: slope(factor, a) * t)
    return rule


def by_defjvps_of_two(factor):
    """The second of two rules differs, the first is none."""
    rule = jax.custom_jvp(lambda unused, a: jnp.tanh(a))
    rule.defjvps(None, lambda t, y, unused, a: slope(factor, a) * t)
    return lambda a: rule(a, a)


def by_forward_mode_of_another_function(factor):
    """The other function has the values of tanh, and a derivative times a factor."""

    def other(a):
        value = jnp.tanh(a)
        return factor * value + (1 - factor) * jax.lax.stop_gradient(value)

    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(partial(jax.jvp, other))
    return rule


def by_another_function_of_jax(factor):
    """Nothing but functions of JAX: two identities, one with a derivative of zero."""
    rule = jax.custom_jvp(jnp.positive)
    rule.defjvp(partial(jax.jvp, jnp.positive if factor == 1 else jax.lax.stop_gradient))
    return lambda a: rule(jnp.tanh(a))


def by_a_rule_of_jax(factor):
    """JAX's rule of ReLU or of ReLU6, for another function.

    At 6 both are 6, with slopes of 1 and 0.
    """
    rule = jax.custom_jvp(lambda a: jnp.maximum(a, 0))
    rule.defjvp(RELU.jvp if factor == 1 else RELU6.jvp)

    def at_six(a):
        moves = jnp.tanh(a)
        return rule(6 + (moves - jax.lax.stop_gradient(moves)))

    return at_six


def by_a_partial_rule(factor):
    def jvp(factor, primals, tangents):
        return jnp.tanh(primals[0]), slope(factor, primals[0]) * tangents[0]

    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(partial(jvp, factor))
    return rule


def by_a_jitted_rule(factor):
    def jvp(primals, tangents):
        return jnp.tanh(primals[0]), slope(factor, primals[0]) * tangents[0]

    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(jax.jit(jvp))
    return rule


def by_a_jitted_partial_derivative(factor):
    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvps(jax.jit(lambda t, y, a: slope(factor, a) * t))
    return rule


def by_checkpoint(factor):
    def jvp(primals, tangents):
        return jnp.tanh(primals[0]), slope(factor, primals[0]) * tangents[0]

    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(jax.checkpoint(jvp))
    return rule


class Rule:
    def __init__(self, factor):
        self.factor = factor

    def jvp(self, primals, tangents):
        return jnp.tanh(primals[0]), slope(self.factor, primals[0]) * tangents[0]

    def fwd(self, a):
        return jnp.tanh(a), a

    def bwd(self, a, ct):
        return (slope(self.factor, a) * ct,)


def by_methods(factor):
    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(Rule(factor).jvp)
    return rule


def by_methods_of_reverse_mode(factor):
    rule = jax.custom_vjp(jnp.tanh)
    rule.defvjp(Rule(factor).fwd, Rule(factor).bwd)
    return rule


def by_partial_reverse_mode(factor):
    def bwd(factor, a, ct):
        return (slope(factor, a) * ct,)

    rule = jax.custom_vjp(jnp.tanh)
    rule.defvjp(lambda a: (jnp.tanh(a), a), partial(bwd, factor))
    return rule


def by_jitted_reverse_mode(factor):
    rule = jax.custom_vjp(jnp.tanh)
    rule.defvjp(
        jax.jit(lambda a: (jnp.tanh(a), a)), jax.jit(lambda a, ct: (slope(factor, a) * ct,))
    )
    return rule


def by_custom_gradient(factor):
    return jax.custom_gradient(lambda a: (jnp.tanh(a), lambda ct: (slope(factor, a) * ct,)))


def by_the_name_of_relu(factor):
    """A function and a rule that ``wraps`` names like JAX's."""

    @jax.custom_jvp
    @wraps(jax.nn.relu)
    def relu(a):
        return jnp.tanh(a)

    @wraps(RELU.jvp)
    def jvp(primals, tangents):
        return jnp.tanh(primals[0]), slope(factor, primals[0]) * tangents[0]

    relu.defjvp(jvp)
    return relu


def by_a_library_beside_jax(factor):
    """As ``jaxopt``, whose directory begins with that of JAX."""

    def jvp(primals, tangents):
        return jnp.tanh(primals[0]), slope(factor, primals[0]) * tangents[0]

    jvp.__code__ = jvp.__code__.replace(co_filename=f"{OF_JAX}opt/rules.py")
    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvp(jvp)
    return rule


def by_a_function_of_another_library(factor):
    """The backward rule is one of optax, ``scale(slopes, (cotangent,))``."""
    rule = jax.custom_vjp(lambda a: (jnp.tanh(a),))
    rule.defvjp(lambda a: ((jnp.tanh(a),), slope(factor, a)), optax.tree.scale)
    return lambda a: rule(a)[0]


def by_functions_inside_the_rule(factor):
    """The function and its rule call functions of ``jax.nn`` that have rules themselves."""
    rule = jax.custom_jvp(lambda a: jax.nn.softplus(a) + jax.nn.relu(a))
    rule.defjvps(lambda t, y, a: factor * jax.nn.softplus(a) * t)
    return rule


def by_static_values(factor):
    """Only the rule reads the value that is not differentiated."""
    rule = jax.custom_jvp(lambda factor, a: jnp.tanh(a), nondiff_argnums=(0,))
    rule.defjvp(lambda factor, p, t: (jnp.tanh(p[0]), slope(factor, p[0]) * t[0]))
    return partial(rule, factor)


def by_static_values_of_reverse_mode(factor):
    rule = jax.custom_vjp(lambda factor, a: jnp.tanh(a), nondiff_argnums=(0,))
    rule.defvjp(lambda factor, a: (jnp.tanh(a), a), lambda factor, a, ct: (slope(factor, a) * ct,))
    return partial(rule, factor)


def by_the_equation_of_a_root(factor):
    """The same solver of two equations.

    JAX's rule differentiates the equation, which is no part of the program.
    """

    def solve(f, guess):
        return guess

    def root(a):
        return jax.lax.custom_root(
            lambda y: y - jnp.tanh(factor * a + (1 - factor) * jax.lax.stop_gradient(a)),
            jnp.tanh(a),
            solve,
            lambda g, y: y,
        )

    return root


def by_symbolic_zeros(factor):
    rule = jax.custom_jvp(lambda unused, a: jnp.tanh(a))

    def jvp(primals, tangents):
        is_zero = [type(each) is jax.custom_derivatives.SymbolicZero for each in tangents]
        assert is_zero == [True, False]
        return jnp.tanh(primals[1]), slope(factor, primals[1]) * tangents[1]

    rule.defjvp(jvp, symbolic_zeros=True)
    return lambda a: rule(jnp.ones(()), a)


def by_transformed_calls(factor):
    """Inside of jit, vmap and a loop, which wrap the rule again."""
    rule = by_defjvps(factor)

    def looped(rows):
        return jax.lax.scan(lambda carry, row: (carry, jax.jit(rule)(row)), 0.0, rows[None])[1][0]

    return jax.vmap(jax.checkpoint(looped))


CASES = [value for name, value in dict(globals()).items() if name.startswith("by_")]


def with_rule(activation):
    return lambda p, x: activation(x @ p["w"] + p["b"]) @ p["v"]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_functions_that_differ_in_a_rule_have_their_own_kernels(case, x64):
    expected = []
    for factor in (1.0, 0.5):
        apply = with_rule(case(factor))
        kernel = np.asarray(empirical_ntk(apply, PARAMS, X))
        plain = plain_kernel(apply, PARAMS, X)
        np.testing.assert_allclose(kernel, plain, rtol=1e-9, atol=1e-12)
        expected.append(plain)
    assert np.abs(expected[0] - expected[1]).max() > 1e-2


def relu_with_slope(factor, primals, tangents):
    """The value of ReLU, and a derivative that is ``factor`` everywhere."""
    (a,) = primals
    (t,) = tangents
    return jnp.maximum(a, 0), factor * t


@pytest.mark.long_after(1)
@pytest.mark.slow  # compiles kernels twice
@pytest.mark.parametrize("define", ["defjvp", "defjvps"])
def test_a_redefined_rule_of_jax_is_measured(define, x64, monkeypatch):
    apply = with_rule(jax.nn.relu)
    before = np.asarray(empirical_ntk(apply, PARAMS, X))
    monkeypatch.setattr(RELU, "jvp", RELU.jvp)  # restored afterwards
    for factor in (0.5, 0.25):
        if define == "defjvp":
            RELU.defjvp(partial(relu_with_slope, factor))
        else:
            RELU.defjvps(lambda t, y, a, factor=factor: factor * t)
        after = np.asarray(empirical_ntk(apply, PARAMS, X))
        expected = plain_kernel(apply, PARAMS, X)
        np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)
        assert np.abs(after - before).max() > 1e-2
        before = after


def test_a_rule_by_defjvps_that_mixes_rows_is_refused(x64):
    rule = jax.custom_jvp(jnp.tanh)
    rule.defjvps(lambda t, y, a: slope(1, a) * (t + t.mean(0)))
    with pytest.raises(InvalidInput, match="mixes the rows"):
        empirical_ntk(with_rule(rule), PARAMS, X)


@pytest.mark.slow
def test_a_rule_by_defjvps_whose_hessian_is_not_symmetric(x64):
    rule = jax.custom_jvp(lambda a, b: a * b)
    rule.defjvps(lambda t, y, a, b: t * b, lambda t, y, a, b: 3 * t * a)

    def apply(p, x):
        return rule(jnp.tanh(x @ p["w"]), jnp.sin(x @ p["w"] + p["b"])) @ p["v"]

    with pytest.raises(InvalidInput, match="symmetric"):
        hessian_norm(apply, PARAMS, jnp.asarray(X[0]))


ACTIVATIONS_OF_JAX = {
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "softplus": jax.nn.softplus,
    "logit": lambda a: jax.scipy.special.logit(jax.nn.sigmoid(a)),
    "jitted": jax.jit(jax.nn.relu),
    "vmapped": jax.vmap(jax.jit(jax.vmap(jax.nn.relu))),
    "checkpointed": jax.vmap(jax.checkpoint(jax.nn.relu)),
    "in a loop": lambda a: jax.lax.map(jax.nn.relu, a),
    "in a branch": lambda a: jax.lax.cond(a[0, 0] > 0, jax.nn.relu, jax.nn.relu, a),
}


@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", ACTIVATIONS_OF_JAX)
def test_rules_of_jax_are_known(name, x64):
    """They need no comparison: programs are reused, and Hessians not checked for symmetry."""
    apply = with_rule(ACTIVATIONS_OF_JAX[name])
    closed = jax.make_jaxpr(apply)(PARAMS, X)
    assert "custom_jvp_call" in str(closed)
    assert not has_rules(closed.jaxpr)
    again = with_rule(ACTIVATIONS_OF_JAX[name])
    assert traced(again, PARAMS, X) is traced(apply, PARAMS, X)
    np.testing.assert_allclose(
        empirical_ntk(apply, PARAMS, X), plain_kernel(apply, PARAMS, X), rtol=1e-9, atol=1e-12
    )


def test_programs_with_equal_rules_are_reused(x64):
    one = with_rule(by_defjvps(1.0))
    assert traced(with_rule(by_defjvps(1.0)), PARAMS, X) is traced(one, PARAMS, X)


def of_other_values(shift, mode, hidden=False):
    """tanh with a rule that returns tanh + shift; an unused one is hidden by a gate of zero."""
    rule: Any
    if mode == "jvp":
        rule = jax.custom_jvp(jnp.tanh)
        rule.defjvp(lambda p, t: (jnp.tanh(p[0]) + shift, slope(1, p[0]) * t[0]))
    else:
        rule = jax.custom_vjp(jnp.tanh)
        rule.defvjp(lambda a: (jnp.tanh(a) + shift, a), lambda a, ct: (slope(1, a) * ct,))

    def apply(p, x):
        z = x @ p["w"] + p["b"]
        h = jnp.tanh(z) + p["gate"] * rule(z) if hidden else rule(z)
        return h @ p["v"]

    return apply


VALUES_OF_RULES = {
    "kernel": lambda f, p: empirical_ntk(f, p, X),
    "Hessian": lambda f, p: hessian_norm(f, p, X[0]).value,
    "linear model": lambda f, p: linearize(f, p)(p, X),
    "report": lambda f, p: linearity_report(f, p, jax.tree.map(lambda a: 1.1 * a, p), X),
    "training": lambda f, p: train(f, p, X, np.ones((4, 2)), max_steps=1),
    "loss": lambda f, p: loss_hessian_product(f, p, X, np.ones((4, 2)), p),
}


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
@pytest.mark.parametrize("name", VALUES_OF_RULES)
def test_rules_with_other_values_are_refused(name, mode, x64):
    for hidden in (False, True):
        params = {**PARAMS, "gate": np.zeros(8)}
        with pytest.raises(InvalidInput, match="a custom rule whose values differ"):
            VALUES_OF_RULES[name](of_other_values(1e-3, mode, hidden), params)


def test_rules_whose_values_round_otherwise_are_right(x64):
    apply = of_other_values(1e-12, "jvp")
    np.testing.assert_allclose(
        empirical_ntk(apply, PARAMS, X), plain_kernel(apply, PARAMS, X), rtol=1e-9, atol=1e-12
    )
