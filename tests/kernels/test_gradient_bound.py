"""The lower bound of gradients at initialization (Zhu, Liu & Belkin 2022, Proposition 4.4)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from ntk_core.kernels import empirical_ntk, gradient_norm_bound
from ntk_core.kernels._gradient_bound import HOMOGENEOUS
from ntk_core.networks.architectures import DAGNetwork, activation_function
from ntk_core.networks.graphs import arbitrary_graph, dense_graph, few_bottleneck_neurons_graph, fully_connected_graph


def of(graph, **settings):
    groups = tuple(type(group)(group.name, group.size, None, group.factor, group.power) for group in graph.groups)
    return DAGNetwork(**{"width": 12, "use_bias": False, "groups": groups, "edges": graph.edges, **settings})


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


def measured(net, num_seeds=1000):
    x = jnp.asarray([0.5, -2.0, 1.0])
    whole, last = (np.asarray(each) for each in _squares(net, jax.random.split(jax.random.key(0), num_seeds), x))
    return gradient_norm_bound(net, x), whole, last


@pytest.mark.parametrize("use_bias", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bound_of_relu_networks_is_the_output_layers_part(use_bias, x64):
    """With degree 1 Jensen's inequality is an equality, along any graph without removed edges."""
    bound, whole, last = measured(of(few_bottleneck_neurons_graph(), activation="relu", use_bias=use_bias))
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
