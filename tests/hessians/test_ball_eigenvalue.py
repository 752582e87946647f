"""λ_min(K) over a ball: an upper bound of the infimum that starts at w₀ and stays above Weyl's bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import eigenvalues
from ntk_core.errors import InvalidInput
from ntk_core.hessians import smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DAGNetwork, FullyConnected
from ntk_core.networks.graphs import dense_graph


def network(width=20):
    graph = dense_graph(2, 0.3)
    net = DAGNetwork(width=width, groups=graph.groups, edges=graph.edges, activation="tanh")
    return net, net.init(jax.random.key(0), (3,)), jax.random.normal(jax.random.key(1), (4, 3))


def test_the_smallest_eigenvalue_in_a_ball_starts_at_its_center_and_only_falls(x64):
    net, params, x = network()
    found = smallest_eigenvalue_in_ball(net, params, x, 1.0, num_starts=2, num_steps=4)
    smallest = eigenvalues(empirical_ntk(net, params, x))[-1]
    assert found.at_center == pytest.approx(smallest, rel=1e-8)
    assert found.value <= min(found.at_center, found.random.min())
    assert np.all(np.diff(found.descent, axis=1) <= 0)
    assert found.value < found.at_center


def test_the_kernel_of_a_linear_model_has_its_smallest_eigenvalue_everywhere(x64):
    net = FullyConnected(width=6, activation="tanh", trained="last")
    params, x = net.init(jax.random.key(0), (3,)), jax.random.normal(jax.random.key(1), (4, 3))
    found = smallest_eigenvalue_in_ball(net, params, x, 10.0, num_starts=1, num_steps=2)
    assert found.value == pytest.approx(found.at_center, rel=1e-8)


def test_wide_networks_keep_their_smallest_eigenvalue_and_narrow_ones_do_not(x64):
    """PL* extends from w₀ to the ball as the width grows (Zhu, Liu & Belkin 2022, §4)."""
    lost = []
    for width in (8, 512):
        net, params, x = network(width)
        found = smallest_eigenvalue_in_ball(net, params, x, 1.0, num_starts=1, num_steps=4)
        lost.append(1 - found.value / found.at_center)
    assert lost[1] < 0.5 * lost[0]


@pytest.mark.parametrize("settings", [{"radius": 0.0}, {"radius": float("nan")}, {"num_starts": 0}, {"num_steps": -1}])
def test_impossible_balls_are_refused(settings):
    net, params, x = network()
    with pytest.raises(InvalidInput):
        smallest_eigenvalue_in_ball(net, params, jnp.asarray(x), **{"radius": 1.0, **settings})
