"""Kernels of any callable: both routes equal explicit Jacobians, and the cheaper one is chosen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import KernelOperator, empirical_ntk
from ntk_core.kernels import _callable as routes
from tests.plain_derivatives import plain_kernel

PARAMS = {"a": np.linspace(-1, 1, 12).reshape(3, 4), "b": np.linspace(0, 1, 8).reshape(4, 2), "step": np.array(3)}
X = np.random.default_rng(0).standard_normal((5, 3))


def apply(params, x):
    """A function without layers, since no parameter is a direct factor."""
    return jnp.tanh(x @ jnp.sin(params["a"])) @ jnp.sin(params["b"]) + params["step"]


@pytest.mark.parametrize("x2", [None, X[:2] + 1], ids=["x1", "x2"])
@pytest.mark.parametrize("by_products", [True, False])
def test_both_routes_give_the_kernel_of_explicit_jacobians(by_products, x2, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: by_products)
    expected = plain_kernel(apply, PARAMS, X, x2)
    np.testing.assert_allclose(empirical_ntk(apply, PARAMS, X, x2), expected, rtol=1e-12)


@pytest.mark.parametrize("x2", [None, X[:2] + 1], ids=["x1", "x2"])
def test_jacobians_in_blocks_give_the_whole_kernel(x2, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: False)
    limit = 2 * 2 * 2 * 20 * 8  # two rows of two outputs of 20 float64 numbers, on both sides
    expected = plain_kernel(apply, PARAMS, X, x2)
    np.testing.assert_allclose(empirical_ntk(apply, PARAMS, X, x2, memory_limit=limit), expected, rtol=1e-12)


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, params, x):
        return apply(params, x)


@pytest.mark.parametrize("function", [functools.partial(apply), Unhashable()], ids=["partial", "unhashable"])
def test_any_callable_will_do(function, x64):
    np.testing.assert_allclose(empirical_ntk(function, PARAMS, X), plain_kernel(apply, PARAMS, X), rtol=1e-12)


@pytest.mark.parametrize("by_products", [True, False])
def test_rules_for_reverse_mode_alone_suffice(by_products, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: by_products)
    bent = jax.custom_vjp(jnp.sin)
    bent.defvjp(lambda a: (jnp.sin(a), a), lambda a, cotangent: (cotangent * jnp.cos(a),))

    def with_rule(params, x):
        return bent(apply(params, bent(x)))

    expected = plain_kernel(with_rule, PARAMS, X)
    np.testing.assert_allclose(empirical_ntk(with_rule, PARAMS, X), expected, rtol=1e-11, atol=1e-14)
    products = KernelOperator(with_rule, PARAMS, X).product(np.ones((5, 2)))
    np.testing.assert_allclose(products, expected.sum((1, 3)), rtol=1e-10)
