"""Lower bounds of gradients and of weight displacement against sampled gradients
and dense Jacobians.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import norm

from ntk_core.dynamics import linearize
from ntk_core.kernels import empirical_ntk, gradient_norm_bound, least_distance
from ntk_core.kernels._gradient_bound import HOMOGENEOUS
from ntk_core.networks.architectures import (
    DAGNetwork,
    FullyConnected,
    ScaledNetwork,
    Subtracted,
    activation_function,
)
from ntk_core.networks.graphs import (
    arbitrary_graph,
    dense_graph,
    few_bottleneck_neurons_graph,
    fully_connected_graph,
)

X = np.random.default_rng(0).standard_normal((4, 3))


def network(**settings):
    return FullyConnected(
        **{"width": 16, "num_outputs": 2, "activation": "tanh", "use_bias": True, **settings}
    )


def displaced(net, length, seed=1):
    """w₀ and a point at this distance in a random direction of the trained weights."""
    start = net.init(jax.random.key(0), X.shape[1:])
    flat, restore = ravel_pytree(start)
    away = np.random.default_rng(seed).standard_normal(flat.size)
    return start, restore(flat + length * away / np.linalg.norm(away))


def dense_bounds(net, start, end, points):
    """Both bounds by full Jacobians at this many points of the segment."""
    first, restore = ravel_pytree(start)
    last, _ = ravel_pytree(end)

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
    """Gradient descent stays in the span of the gradients.

    Otherwise the bound is the length of the part inside.
    """
    net = network()
    start = net.init(jax.random.key(0), X.shape[1:])
    flat, restore = ravel_pytree(start)
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
    np.testing.assert_allclose(
        least_distance(plain, start, end, X), least_distance(kept, before, after, X), rtol=1e-9
    )


def test_dead_networks_have_no_bound_and_broken_ones_no_number(x64):
    net = network(activation="relu", use_bias=False)
    start = net.init(jax.random.key(0), X.shape[1:])
    dead = jax.tree.map(jnp.zeros_like, start)
    assert tuple(least_distance(net, dead, dead, X)) == (0, 0)
    broken = jax.tree.map(lambda w: jnp.full_like(w, jnp.nan), start)
    assert np.isnan(least_distance(net, start, broken, X)).all()


def of(graph, **settings):
    groups = tuple(
        type(group)(group.name, group.size, None, group.factor, group.power)
        for group in graph.groups
    )
    return DAGNetwork(
        **{"width": 12, "use_bias": False, "groups": groups, "edges": graph.edges, **settings}
    )


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_degrees_and_second_moments_are_those_of_the_activations(name, x64):
    degree, second_moment = HOMOGENEOUS[name]
    z, function = np.linspace(-9, 9, 180_001), activation_function(name)
    np.testing.assert_allclose(function(3.0 * z), 3.0**degree * function(z), rtol=1e-12)
    assert np.trapezoid(function(z) ** 2 * norm.pdf(z), z) == pytest.approx(second_moment, rel=1e-6)


@functools.partial(jax.jit, static_argnums=0)
def _squares(net, keys, x):
    """(‖∇f‖², part from the output layer) for each seed."""

    def one(key):
        parts = empirical_ntk(net, net.init(key, x.shape), x[None], per_layer=True)
        return sum(part[0, 0, 0, 0] for part in parts.values()), parts["output"][0, 0, 0, 0]

    return jax.lax.map(one, keys, batch_size=100)


def measured(net, num_seeds=500):
    x = jnp.asarray([0.5, -2.0, 1.0])
    whole, last = (
        np.asarray(each)
        for each in _squares(net, jax.random.split(jax.random.key(0), num_seeds), x)
    )
    return gradient_norm_bound(net, x), whole, last


@pytest.mark.parametrize("use_bias", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bound_of_relu_networks_is_the_output_layers_part(use_bias, x64):
    """With degree 1 Jensen's inequality is an equality, along any graph without removed edges."""
    bound, whole, last = measured(
        of(few_bottleneck_neurons_graph(), activation="relu", use_bias=use_bias)
    )
    assert abs(last.mean() - bound) <= 4 * last.std() / np.sqrt(last.size)
    assert whole.mean() > bound


@pytest.mark.parametrize(
    ("graph", "activation"),
    [
        pytest.param(dense_graph(2, 0.5), "relu", id="dropped"),
        pytest.param(arbitrary_graph(), "leaky_relu", id="irregular", marks=pytest.mark.slow),
        pytest.param(fully_connected_graph(2), "quadratic", id="quadratic"),
    ],
)
def test_gradients_are_at_least_the_bound(graph, activation, x64):
    bound, whole, _ = measured(of(graph, activation=activation))
    assert bound > 0
    assert whole.mean() - 4 * whole.std() / np.sqrt(whole.size) >= bound


def test_the_bound_does_not_fall_with_the_width():
    x = np.ones(3)
    assert gradient_norm_bound(of(dense_graph(3), width=10**6), x) >= 0.5**3
    assert gradient_norm_bound(of(fully_connected_graph(3), width=7), x) == 0.5**3
