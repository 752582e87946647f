"""Functions with ``jax.custom_vjp``, and parameters with random keys.

The numbers of the plain function.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import gauss_newton_product, loss_hessian_product
from ntk_core.hessians import layer_quantities

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

RNG = np.random.default_rng(0)


@jax.custom_vjp
def one_rule(z):
    return jnp.tanh(z)


one_rule.defvjp(lambda z: (jnp.tanh(z), z), lambda z, g: ((1 - jnp.tanh(z) ** 2) * g,))


@jax.custom_vjp
def rule_in_a_rule(z):
    return one_rule(z)


rule_in_a_rule.defvjp(lambda z: (one_rule(z), z), lambda z, g: (jax.vjp(one_rule, z)[1](g)[0],))


@jax.custom_jvp
def rule_in_a_forward_rule(z):
    return one_rule(z)


rule_in_a_forward_rule.defjvp(lambda at, by: (one_rule(at[0]), (1 - jnp.tanh(at[0]) ** 2) * by[0]))

RULES = (one_rule, rule_in_a_rule, rule_in_a_forward_rule)
PRODUCTS = (gauss_newton_product, loss_hessian_product)


def model(activation):
    return lambda params, x: activation(x @ params["a"]) @ params["b"]


def drawn():
    params = {"a": jnp.asarray(RNG.normal(size=(3, 4))), "b": jnp.asarray(RNG.normal(size=(4, 2)))}
    return params, jnp.asarray(RNG.normal(size=(5, 3))), jnp.asarray(RNG.normal(size=(5, 2)))


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("activation", RULES)
def test_products_of_custom_rules_are_those_of_tanh(x64, product, activation):
    params, x, y = drawn()
    found = product(model(activation), params, x, y, params)
    expected = product(model(jnp.tanh), params, x, y, params)
    for name in params:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("activation", [jnp.tanh, *RULES])
def test_products_keep_keys_and_integers_of_parameters(x64, product, activation):
    params, x, y = drawn()
    more = {**params, "key": jax.random.key(3), "count": jnp.arange(3)}
    found = product(model(activation), more, x, y, more)
    expected = product(model(jnp.tanh), params, x, y, params)
    for name in params:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-10)
    assert found["count"].tolist() == [0, 1, 2]
    assert jax.random.key_data(found["key"]).tolist() == jax.random.key_data(more["key"]).tolist()


@pytest.mark.slow
def test_layer_quantities_of_a_custom_rule_are_those_of_tanh(x64):
    params, x, _ = drawn()
    found = layer_quantities(model(one_rule), params, x[0])
    expected = layer_quantities(model(jnp.tanh), params, x[0])
    np.testing.assert_allclose(found.block_bounds, expected.block_bounds, rtol=1e-8)
