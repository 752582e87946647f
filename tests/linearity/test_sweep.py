"""Sweeps of any ``apply(params, x)`` against width.

Known networks' numbers, one-sentence errors.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput, RowsMix
from ntk_core.hessians import hessian_norm
from ntk_core.linearity import sweep_widths
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.keys import initial_key
from ntk_core.traced import layers_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 1))


def network(width):
    return FullyConnected(width=width, activation="tanh", use_bias=False)


def model(width, key):
    net = network(width)
    return (lambda params, x: net.apply(params, x)), net.init(key, (3,))


@pytest.mark.slow
def test_callable_network_has_its_hessian_norm_and_kernel_change(x64):
    found = sweep_widths(
        model, [4], X, Y, num_seeds=1, num_records=3, max_steps=20, learning_rate=0.1
    )
    (run,) = found.runs
    params = network(4).init(initial_key(0, 4), (3,))
    expected = hessian_norm(network(4), params, jnp.asarray(X[:2]), tolerance=1e-9)
    assert run.hessian_norm == pytest.approx(np.mean(expected.value), rel=1e-4)
    assert run.num_params == 4 * 3 + 4
    moved = params
    # JAX would remember that X itself, closed over, is of float64.
    x, y = (
        jnp.asarray(X),
        jnp.asarray(Y),
    )
    gradient = jax.jit(jax.grad(lambda w: 0.5 * jnp.mean((network(4).apply(w, x) - y) ** 2)))
    for _ in range(run.steps[-1]):
        moved = jax.tree.map(lambda w, g: w - 0.1 * g, moved, gradient(moved))

    @jax.jit
    def kernel(w):
        jacobian = jax.jacrev(lambda w: network(4).apply(w, x)[:, 0])(w)
        flat = jnp.concatenate([leaf.reshape(8, -1) for leaf in jax.tree.leaves(jacobian)], axis=1)
        return flat @ flat.T

    before, after = kernel(params), kernel(moved)
    assert run.steps[-1] == 20
    assert run.change[-1] == pytest.approx(
        float(jnp.linalg.norm(after - before) / jnp.linalg.norm(before)), rel=1e-8
    )
    assert run.loss[0] == pytest.approx(
        float(0.5 * jnp.mean((network(4).apply(params, X) - Y) ** 2)), rel=1e-10
    )


def scaled(captured):
    """A model whose function differs by seed.

    A new one, or one whose captured array each call changes.
    """
    scale = np.ones(())

    def plain(p, x):
        return jnp.tanh(x @ p[0]) @ p[1][:, None]

    def changing(p, x):
        return scale * plain(p, x)

    def model(width, key):
        drawn = scale[()] = jax.random.uniform(key, minval=1.0, maxval=2.0).item()
        return changing if captured else (lambda p, x: drawn * plain(p, x)), (
            jnp.ones((3, width)),
            jnp.ones(width),
        )

    return model


@pytest.mark.parametrize("captured", [True, False])
def test_function_changed_between_seeds_is_measured(captured, x64):
    settings = {"num_records": 2, "max_steps": 2, "num_inputs": 1, "learning_rate": 1e-3}
    found = sweep_widths(scaled(captured), [4], X, Y, num_seeds=2, **settings).runs
    assert found[0].loss[0] != pytest.approx(found[1].loss[0], rel=1e-3)
    for seed, run in enumerate(found):
        (alone,) = sweep_widths(scaled(False), [4], X, Y, num_seeds=1, seed=seed, **settings).runs
        one, other = (
            [*each.loss, *each.change, each.hessian_norm, each.velocity] for each in (run, alone)
        )
        assert one == pytest.approx(other, rel=1e-6, abs=1e-12)


def test_model_is_checked_at_each_call():
    columns = [1]

    def apply(p, x):
        return jnp.tanh(x @ p)[:, : columns[0]]

    def model(width, key):
        columns[0] = 1 if width == 4 else 2
        return apply, jnp.ones((3, width))

    settings = {
        "num_seeds": 1,
        "num_records": 2,
        "max_steps": 1,
        "num_inputs": 0,
        "learning_rate": 1e-3,
    }
    assert len(sweep_widths(model, [4], X, Y, **settings).runs) == 1
    with pytest.raises(InvalidInput, match="2 outputs"):
        sweep_widths(model, [4, 5], X, Y, **settings)


@pytest.mark.slow
def test_cross_entropy_takes_one_hot_and_divergence_is_outcome():
    """With integers among the parameters, which stay as they are."""
    labels = np.eye(2)[np.arange(8) % 2]

    def two(width, key):
        w, v = jax.random.normal(key, (3, width)), jax.random.normal(key, (width, 2))
        params = {"w": w, "v": v, "signs": jnp.array([1, -1])}
        return (lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"] * p["signs"] / width**0.5), params

    settings = {
        "num_seeds": 1,
        "num_inputs": 0,
        "num_records": 2,
        "max_steps": 30,
        "loss": "cross-entropy",
    }
    (run,) = sweep_widths(two, [8], X, labels, **settings).runs
    assert run.loss[-1] < run.loss[0]
    assert (run.num_params, run.hessian_norm) == (3 * 8 + 8 * 2, None)
    (run,) = sweep_widths(
        model, [8], X, Y, **{**settings, "loss": "square", "learning_rate": 1e3}
    ).runs
    assert run.outcome == "diverged"


BAD_MODELS = [
    (lambda width, key: 3, "a model that returns int"),
    (lambda width, key: (jnp.sin, {}, 1), "a model that returns a tuple of 3"),
    (
        lambda width, key: (lambda p, x: x, {"a": jnp.arange(3)}),
        "params: 1 arrays without floating-point numbers",
    ),
    (lambda width, key: (lambda p, x: x @ p, jnp.ones((3, 2))), "2 outputs"),
    (lambda width, key: (lambda p, x: (x @ p) > 0, jnp.ones((3, 1))), "outputs of type bool"),
]


@pytest.mark.parametrize(("bad", "words"), BAD_MODELS)
def test_a_model_that_is_none_is_refused_in_one_sentence(bad, words):
    with pytest.raises(InvalidInput, match=words):
        sweep_widths(bad, [4], X, Y)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"widths": []}, "widths"),
        ({"widths": [2.5]}, "widths"),
        ({"x": X[:3]}, "y"),
        ({"x": X * np.nan}, "x"),
        ({"output_index": 1}, "output_index"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"loss": "hinge"}, "loss"),
    ],
)
def test_a_setting_outside_its_range_is_named(changes, field):
    with pytest.raises(InvalidInput) as error:
        sweep_widths(model, **{"widths": [4], "x": X, "y": Y, **changes})
    assert error.value.field == field


def test_interacting_rows_are_an_error_of_their_own_type():
    def mixing(params, x):
        return x @ params - (x @ params).mean(0)

    with pytest.raises(RowsMix, match="mixes the rows of x"):
        layers_of(mixing, jnp.ones((3, 2)), jnp.ones((4, 3)))
