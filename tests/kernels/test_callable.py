"""Kernels of any callable: both routes equal explicit Jacobians, and the cheaper one is chosen."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
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


def test_cheaper_route_depends_on_outputs_and_sharing():
    dense = {"num_params": 10**6, "forward": 1e6, "block": 100}
    assert routes.vector_products_are_cheaper(100, 0, 10, **dense)
    assert not routes.vector_products_are_cheaper(100, 0, 1, **dense)
    shared = {"num_params": 10**4, "forward": 1e8, "block": 100}
    assert not routes.vector_products_are_cheaper(100, 0, 10, **shared)


def test_small_jacobian_blocks_count_recomputation():
    numbers = {"num_outputs": 1, "num_params": 10**6, "forward": 1e6}
    assert not routes.vector_products_are_cheaper(100, 100, **numbers, block=100)
    assert routes.vector_products_are_cheaper(100, 100, **numbers, block=1)


def test_forward_multiplications_count_matrix_products(x64):
    def wide(params, x):
        return x @ params

    counted = routes.forward_multiplications(wide, jnp.ones((50, 40)), jnp.ones((1, 50)), num_params=2000)
    assert counted == pytest.approx(50 * 40, rel=0.05)


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, params, x):
        return apply(params, x)


@pytest.mark.parametrize("function", [functools.partial(apply), Unhashable()], ids=["partial", "unhashable"])
def test_any_callable_will_do(function, x64):
    np.testing.assert_allclose(empirical_ntk(function, PARAMS, X), plain_kernel(apply, PARAMS, X), rtol=1e-12)


def test_a_callable_is_compiled_once(x64, monkeypatch):
    traces = []

    def counted(params, x):
        traces.append(x.shape)
        return apply(params, x)

    empirical_ntk(counted, PARAMS, X)
    first = len(traces)
    empirical_ntk(counted, jax.tree.map(lambda leaf: leaf + 1, PARAMS), X)
    assert len(traces) - first <= 2  # the output's shape and the count of operations; no new program


def test_a_callable_apply_has_no_parts():
    with pytest.raises(InvalidInput, match="per_layer"):
        empirical_ntk(apply, PARAMS, X, per_layer=True)


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
