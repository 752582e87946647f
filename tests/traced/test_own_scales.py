"""A check of a kernel sees each parameter and each output on its own scale."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import empirical_ntk
from ntk_core.errors import InvalidInput
from ntk_core.traced import Program, TracingDisagrees
from tests.plain_derivatives import normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

SHAPES = {"w": (3, 4), "b": (4,), "v": (4, 2), "gain": (4,)}
X = np.random.default_rng(0).standard_normal((3, 3))
SMALL = 1e-6


def block(sizes):
    """Return a new function whose kernel is the sum of parts of these sizes by parameter,
    1 otherwise.
    """

    def apply(p, x):
        values = {}
        for name, leaf in p.items():
            values[name] = leaf * sizes.get(name, 1.0)
        z = x @ values["w"] + values["b"]
        return values["gain"] * jnp.tanh(z) @ values["v"]

    return apply


def two_heads(p, x):
    """The second output, and its gradients, are a millionth of the first."""
    h = jnp.tanh(x @ p["w"] + p["b"])
    return (p["gain"] * h) @ p["v"] * jnp.array([1.0, SMALL])


def multiplied(monkeypatch, change):
    """Replace the parts of traced kernels, as a fault of the analysis would."""
    own = Program.kernels

    def kernels(self, leaves, views1, views2):
        return {
            name: change(name, part) for name, part in own(self, leaves, views1, views2).items()
        }

    monkeypatch.setattr(Program, "kernels", kernels)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("pair", ["with itself", "two batches"])
@pytest.mark.parametrize("per_layer", [False, True])
def test_wrong_part_of_one_parameter_is_seen(name, pair, per_layer, monkeypatch):
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), normal(**SHAPES))
    # Derivatives with respect to this parameter are a thousand times smaller; those of others stay.
    apply = block({name: 1e-3})
    params[name] = params[name] * 1e3
    other = None if pair == "with itself" else X[::-1] + 0.5
    right = empirical_ntk(apply, params, X, other, per_layer=per_layer)
    whole = sum(right.values()) if per_layer else right
    np.testing.assert_allclose(whole, plain_kernel(apply, params, X, other), rtol=1e-3, atol=1e-4)
    multiplied(monkeypatch, lambda part, each: 3 * each if part == name else each)
    with pytest.raises(TracingDisagrees, match=f"for {name}|kernel"):
        empirical_ntk(block({name: 1e-3 + 1e-9}), params, X, other, per_layer=per_layer)


@pytest.mark.parametrize("output", [0, 1])
def test_wrong_part_of_one_output_is_seen(output, monkeypatch):
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), normal(**SHAPES))
    empirical_ntk(two_heads, params, X)

    def fault(part, each):
        return each.at[output].multiply(3).at[:, :, output].multiply(3) if part == "w" else each

    multiplied(monkeypatch, fault)
    with pytest.raises(TracingDisagrees):
        empirical_ntk(lambda p, x: 1.0 * two_heads(p, x), params, X)


def attention_with_bias_of_keys(p, x):
    """The softmax does not change if one number is added to all scores.

    The gradient of the bias is rounding.
    """
    q = x @ p["q"]
    k = x @ p["k"] + p["b"]
    scores = jax.nn.softmax(jnp.einsum("ntd,nsd->nts", q, k), -1)
    return (scores @ (x @ p["v"])).mean(1) @ p["o"]


def bias_before_normalization(p, x):
    z = x.mean(1) @ p["q"] + p["b"].mean()
    z = (z - z.mean(-1, keepdims=True)) / jnp.sqrt(z.var(-1, keepdims=True) + 0.1)
    return jnp.tanh(z @ p["k"]) @ p["v"] @ p["o"]


@pytest.mark.long_after(1)
@pytest.mark.slow  # compiles several checks
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("apply", [attention_with_bias_of_keys, bias_before_normalization])
def test_gradients_that_cancel_are_accepted(apply, dtype):
    shapes = {"q": (4, 4), "k": (4, 4), "b": (4,), "v": (4, 4), "o": (4, 2)}
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), normal(**shapes))
    x = jnp.asarray(np.random.default_rng(1).standard_normal((5, 3, 4)), dtype)
    found = empirical_ntk(apply, params, x)
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    expected = plain_kernel(apply, wide, x.astype(jnp.float32))
    tolerance = 1e-4 if dtype == "float32" else 0.1
    assert np.abs(np.asarray(found) - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.long  # compiles two kernels and an oracle
def test_products_outside_of_their_type_are_refused_later_too():
    """a·a' of 1e-50 times δ·δ' of 1e30 is 1e-20, as large as the part of the other parameter."""

    def apply(p, x):
        return jnp.tanh(x @ p["w"]) @ p["v"] + 1e-10 * p["c"]

    params = {"w": jnp.ones((3, 4)), "v": jnp.ones((4, 2)) / 2, "c": jnp.ones(2)}
    x = jnp.asarray(X, jnp.float32)
    empirical_ntk(apply, params, x)
    params["v"] = 1e15 * params["v"]
    with pytest.raises(InvalidInput, match="outside of float32"):
        empirical_ntk(apply, params, 1e-25 * x)
    np.testing.assert_allclose(
        empirical_ntk(apply, {**params, "v": params["v"] * 1e-15}, x)[0, 0, 0, 1],
        plain_kernel(apply, {**params, "v": params["v"] * 1e-15}, x)[0, 0, 0, 1],
        rtol=1e-4,
    )
