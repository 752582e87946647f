"""λ_min(K) over a ball: an upper bound of the infimum, as low as dense searches from many starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from ntk_core.dynamics import eigenvalues
from ntk_core.hessians import smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DAGNetwork, FullyConnected
from ntk_core.networks.graphs import dense_graph


def network(width=20):
    graph = dense_graph(2, 0.3)
    net = DAGNetwork(width=width, groups=graph.groups, edges=graph.edges, activation="tanh", use_bias=False)
    return net, net.init(jax.random.key(0), (3,)), jax.random.normal(jax.random.key(1), (4, 3))


def test_smallest_eigenvalue_in_a_ball_starts_at_the_center(x64):
    net, params, x = network()
    found = smallest_eigenvalue_in_ball(net, params, x, 1.0, num_starts=2, num_steps=4)
    smallest = eigenvalues(empirical_ntk(net, params, x))[-1]
    assert found.at_center == pytest.approx(smallest, rel=1e-8)
    assert found.value <= min(found.at_center, found.random.min())
    assert np.all(np.diff(found.descent, axis=1) <= 0)
    assert found.value < found.at_center
    assert found.random.shape == (2,)
    assert found.descent.shape == (3, 5)


def test_product_of_two_weights_has_the_geometric_infimum(x64):
    """f = v w x has K = x² (v² + w²), with its minimum over the ball at the point nearest to 0."""
    net = FullyConnected(width=1, depth=1, activation="identity", use_bias=False)
    params, x = net.init(jax.random.key(3), (1,)), jnp.array([[1.5]])
    size = float(jnp.linalg.norm(ravel_pytree(params)[0]))
    found = smallest_eigenvalue_in_ball(net, params, x, 0.4 * size)
    assert found.at_center == pytest.approx((1.5 * size) ** 2, rel=1e-12)
    assert found.value == pytest.approx((0.6 * 1.5 * size) ** 2, rel=1e-3)  # 32 steps, the last of R/32
    assert found.value >= (0.6 * 1.5 * size) ** 2 * (1 - 1e-12)


def dense_search(net, params, x, radius, num_starts):
    """The smallest λ_min(J Jᵀ) in the ball, from Jacobians of ``apply``: L-BFGS on a hardening soft minimum.

    The ball is the image of u ↦ w₀ + R u / √(1 + ‖u‖²), which avoids projections.
    """
    center, unravel = ravel_pytree(params)

    def matrix(u):
        w = center + radius * u / jnp.sqrt(1 + u @ u)
        jacobian = jax.jacobian(lambda w: net.apply(unravel(w), x).ravel())(w)
        return jacobian @ jacobian.T

    @jax.jit
    def soft(u, temperature):
        values = jnp.linalg.eigvalsh(matrix(u))
        return -temperature * jax.nn.logsumexp(-values / temperature)

    smallest = jax.jit(lambda u: jnp.linalg.eigvalsh(matrix(u))[0])
    descent = jax.jit(jax.value_and_grad(soft))
    at_center, random = float(smallest(jnp.zeros_like(center))), np.random.default_rng(0)
    found = [at_center]
    for index in range(num_starts):
        u = random.normal(size=center.size) * (index > 0) / np.sqrt(center.size)
        for share in (0.3, 0.03, 0.003):
            u = minimize(descent, u, args=(share * at_center,), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
        found.append(float(smallest(u)))
    return min(found)


@pytest.mark.parametrize(
    ("activation", "width", "radius"), [("tanh", 12, 0.5), pytest.param("relu", 12, 1.5, marks=pytest.mark.slow)]
)
def test_dense_searches_from_many_starts_find_little_less(x64, activation, width, radius):
    graph = dense_graph(2, 0.0)
    net = DAGNetwork(width=width, groups=graph.groups, edges=graph.edges, activation=activation, use_bias=False)
    params, x = net.init(jax.random.key(0), (3,)), jax.random.normal(jax.random.key(1), (6, 3))
    found = smallest_eigenvalue_in_ball(net, params, x, radius)
    dense = dense_search(net, params, x, radius, num_starts=8)
    assert found.value <= 1.01 * dense
