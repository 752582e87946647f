"""Lower bounds of weight displacement (Liu, Zhu & Belkin 2020, Eq. 2) against dense Jacobians on a fine grid."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import linearize
from ntk_core.kernels import least_distance
from ntk_core.networks.architectures import FullyConnected, ScaledNetwork, Subtracted

X = np.random.default_rng(0).standard_normal((4, 3))


def network(**settings):
    return FullyConnected(**{"width": 16, "num_outputs": 2, "activation": "tanh", "use_bias": True, **settings})


def displaced(net, length, seed=1):
    """w₀ and a point at this distance in a random direction of the trained weights."""
    start = net.init(jax.random.key(0), X.shape[1:])
    flat, restore = jax.flatten_util.ravel_pytree(start)
    away = np.random.default_rng(seed).standard_normal(flat.size)
    return start, restore(flat + length * away / np.linalg.norm(away))


def dense_bounds(net, start, end, points):
    """Both bounds by full Jacobians at this many points of the segment."""
    first, restore = jax.flatten_util.ravel_pytree(start)
    last, _ = jax.flatten_util.ravel_pytree(end)

    def outputs(flat):
        return net.apply(restore(flat), X).ravel()

    found = jax.jit(jax.jacrev(outputs))
    jacobians = np.stack([found(first + s * (last - first)) for s in np.linspace(0, 1, points)])
    moved = np.asarray(outputs(last) - outputs(first))
    one = np.max(np.abs(moved) / np.linalg.norm(jacobians, axis=2).max(0))
    u = np.linalg.solve(jacobians[0] @ jacobians[0].T, moved)
    return one, abs(u @ moved) / np.linalg.norm(u @ jacobians, axis=1).max()


@pytest.mark.parametrize("output", ["linear", "swish"])
@pytest.mark.parametrize("length", [0.1, 3.0])
def test_bounds_are_those_of_dense_jacobians_and_hold(length, output, x64):
    net = ScaledNetwork(network(output=output), 2.0)
    start, end = displaced(net, length)
    found = least_distance(net, start, end, X)
    five, many = (dense_bounds(net, start, end, points) for points in (5, 201))
    np.testing.assert_allclose(found, five, rtol=1e-9)
    # Five points nearly reach the supremum, and a smaller value violates no bound.
    np.testing.assert_allclose(found, many, rtol=0.02)
    assert max(found) <= length


def test_linear_model_moves_exactly_its_bound(x64):
    """Gradient descent stays in the span of the gradients; otherwise the bound is the length of the part inside."""
    net = network()
    start = net.init(jax.random.key(0), X.shape[1:])
    flat, restore = jax.flatten_util.ravel_pytree(start)
    linear = linearize(net.apply, start)
    jacobian = np.asarray(jax.jacrev(lambda w: net.apply(restore(w), X).ravel())(flat))
    inside = jacobian.T @ np.random.default_rng(2).standard_normal(len(jacobian))

    found = least_distance(linear, start, restore(flat + inside), X).all_inputs
    assert found == pytest.approx(np.linalg.norm(inside), rel=1e-9)


def test_weights_that_are_not_trained_count_nowhere(x64):
    """A subtracted copy and frozen output weights change neither output differences nor kernels."""
    plain, kept = network(trained="hidden"), Subtracted(network(trained="hidden"))
    start = plain.init(jax.random.key(0), X.shape[1:])
    away = jax.tree.map(lambda w: 0.3 * jnp.ones_like(w), start["hidden1"])
    end = {**start, "hidden1": jax.tree.map(jnp.add, start["hidden1"], away)}
    before = kept.init(jax.random.key(0), X.shape[1:])
    after = {**before, "hidden1": end["hidden1"]}
    np.testing.assert_allclose(least_distance(plain, start, end, X), least_distance(kept, before, after, X), rtol=1e-9)


def test_dead_networks_have_no_bound_and_broken_ones_no_number(x64):
    net = network(activation="relu", use_bias=False)
    start = net.init(jax.random.key(0), X.shape[1:])
    dead = jax.tree.map(jnp.zeros_like, start)
    assert tuple(least_distance(net, dead, dead, X)) == (0, 0)
    broken = jax.tree.map(lambda w: jnp.full_like(w, jnp.nan), start)
    assert np.isnan(least_distance(net, start, broken, X)).all()
