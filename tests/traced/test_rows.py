"""Interacting rows are refused at any place in the batch; others are proven independent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import empirical_ntk, kernel_derivative
from ntk_core.traced import layers_of, traced
from ntk_core.traced._row_axes import Proof
from ntk_core.traced._rows import operation_between_rows
from tests.plain_derivatives import normal, plain_kernel

PARAMS = normal(w=(3, 8), v=(8, 2))
ROWS = np.random.default_rng(1).standard_normal((6, 3)) / 2


def net(p, x):
    return jnp.tanh(x @ p["w"]) @ p["v"]


def batch_statistics(p, x):
    a = x @ p["w"]
    return jnp.tanh((a - a.mean(0)) / jnp.sqrt(a.var(0) + 1e-3)) @ p["v"]


def by_the_size(p, x):
    return net(p, x) if len(x) < 3 else net(p, 2 * x)


def hidden_gradient(p, x):
    """A mixture of rows in gradients that outputs do not show."""
    mean = net(p, x).mean(0)
    return net(p, x) + mean - jax.lax.stop_gradient(mean)


def in_a_loop(p, x):
    def step(carry, row):
        carry = carry + row
        return carry, carry @ p["w"] @ p["v"]

    return jax.lax.scan(step, jnp.zeros(3), x)[1]


MIXING = [
    *(by_the_size, hidden_gradient, in_a_loop, batch_statistics),
    lambda p, x: net(
        p, x + jnp.where(x[:, :1] > 5, x, 0).mean(0)
    ),  # of some rows beyond the second one
    lambda p, x: net(p, x * jnp.arange(1.0, 1 + len(x))[:, None]),
    lambda p, x: net(p, x + jax.random.normal(jax.random.key(0), x.shape)),
    lambda p, x: net(p, jax.nn.softmax(x @ x.T) @ x),
]
FLAT = {
    "flattened": lambda p, x: (
        (x.reshape(-1, 1) * jnp.ones((1, 2))).reshape(len(x), -1)[:, :3] @ p["w"] @ p["v"]
    ),
    "transposed": lambda p, x: (p["v"].T @ (p["w"].T @ x.T)).T,
    "one at a time": lambda p, x: jax.lax.map(lambda row: net(p, row), x),
    "take along": lambda p, x: net(p, jnp.take_along_axis(x, jnp.argsort(x, 1), 1)),
    "unstacked": lambda p, x: net(p, sum(jnp.unstack(jnp.stack([x, x**2], 1), axis=1))),
    "tiled": lambda p, x: net(p, jnp.tile(x, (2, 1)).reshape(2, *x.shape)[0]),
    "tiled beside": lambda p, x: net(p, jnp.tile(x, (1, 2))[:, 1:4]),
}


@pytest.mark.slow
def test_mixed_rows_are_refused(x64):
    for mixing in MIXING:
        x = ROWS.copy()
        x[4] += 20
        with pytest.raises(InvalidInput, match="mixes the rows"):
            empirical_ntk(mixing, PARAMS, x)
    for mixing in (
        lambda p, x: jnp.tile(net(p, x), (2, 1))[1:-5],
        lambda p, x: net(p, jnp.unstack(x)[1] + x),
    ):
        proof = Proof(len(ROWS))
        assert operation_between_rows(jax.make_jaxpr(mixing)(PARAMS, ROWS), proof) is not None


@pytest.mark.parametrize("weight", [1e-3, 1e-4])
def test_weak_mixtures_of_rows_are_refused(weight):
    """They change a kernel by 2e-3 and 2e-4 of its size, above rounding in float32."""
    params, x = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (PARAMS, ROWS))
    with pytest.raises(InvalidInput, match="mixes the rows"):
        empirical_ntk(lambda p, x: net(p, x) + weight * jnp.roll(net(p, x), 1, 0), params, x)


def test_equal_first_rows_hide_nothing(x64):
    x = ROWS.copy()
    x[1] = x[0]
    for compute in (
        empirical_ntk,
        layers_of,
        lambda *given: kernel_derivative(*given[:2], given[1], given[2]),
    ):
        with pytest.raises(InvalidInput, match="reduce_sum mixes the rows"):
            compute(batch_statistics, PARAMS, x)
    with pytest.raises(InvalidInput, match="reduce_sum"):
        empirical_ntk(batch_statistics, PARAMS, np.ones((4, 3)))


def test_a_branch_on_the_size_is_met_at_that_size(x64):
    few = empirical_ntk(by_the_size, PARAMS, ROWS[:2])
    np.testing.assert_allclose(few, plain_kernel(net, PARAMS, ROWS[:2]), rtol=1e-10, atol=1e-12)
    with pytest.raises(InvalidInput, match="the size of the batch mixes"):
        empirical_ntk(by_the_size, PARAMS, ROWS)
    with pytest.raises(InvalidInput, match="the size of the batch mixes"):
        empirical_ntk(by_the_size, PARAMS, ROWS[:2], ROWS)


def test_jit_refuses_interacting_rows_and_ignores_nan(x64):
    with pytest.raises(InvalidInput, match="reduce_sum mixes the rows"):
        jax.jit(lambda p: empirical_ntk(lambda q, x: batch_statistics(q, x), p, ROWS))(PARAMS)

    def of_positive(p, x):
        return jnp.tanh(x @ jnp.log(p["w"])) @ p["v"]

    jax.jit(lambda p: empirical_ntk(of_positive, p, ROWS))(jax.tree.map(np.abs, PARAMS))
    assert not traced(of_positive, PARAMS, ROWS).kept.get("kernel, drawn")


@pytest.mark.long
@pytest.mark.first_cases(3)  # each compiles its kernel and an oracle
@pytest.mark.parametrize("name", FLAT)
def test_rows_in_unusual_places_are_accepted(name, x64):
    found = empirical_ntk(FLAT[name], PARAMS, ROWS)
    expected = plain_kernel(FLAT[name], PARAMS, ROWS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
