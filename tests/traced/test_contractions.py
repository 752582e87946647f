"""Products of long rows in stretches against whole products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.traced import _contractions
from ntk_core.traced._contractions import gram

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize("length", [13, 14, 31])
@pytest.mark.parametrize("rows", [(5,), (3, 12)])
@pytest.mark.parametrize("same", [True, False])
def test_products_of_long_rows_are_summed_over_their_stretches(x64, monkeypatch, length, rows, same):
    monkeypatch.setattr(_contractions, "STRETCH", 7)
    left = jax.random.normal(jax.random.key(0), (*rows, length))
    right = left if same else jax.random.normal(jax.random.key(1), (4, length))
    found = jax.jit(lambda a, b: gram(a, a if same else b))(left, right)
    # Sums of at most 50 products of order one, in a different order.
    np.testing.assert_allclose(found, np.tensordot(left, right, (-1, -1)), rtol=0, atol=200 * EPS * 50)
    assert found.shape == (*rows, *right.shape[:-1])


def test_long_product_is_traced_and_differentiated_as_one_loop(x64, monkeypatch):
    monkeypatch.setattr(_contractions, "STRETCH", 7)
    a = jax.random.normal(jax.random.key(0), (40, 30))
    if jax.default_backend() == "cpu":
        assert "scan" in str(jax.make_jaxpr(lambda a: gram(a, a))(a))
    gradient = jax.grad(lambda a: jnp.sum(gram(a, a) ** 2))(a)
    np.testing.assert_allclose(gradient, 4 * a @ a.T @ a, rtol=0, atol=1e5 * EPS)  # entries of order 10³


def test_many_seeds_at_once_give_each_its_own_products(x64, monkeypatch):
    monkeypatch.setattr(_contractions, "STRETCH", 7)
    a = jax.random.normal(jax.random.key(0), (3, 40, 30))
    np.testing.assert_allclose(jax.vmap(lambda a: gram(a, a))(a), a @ a.transpose(0, 2, 1), rtol=0, atol=1e4 * EPS)
