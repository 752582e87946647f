"""Suprema over a ball above random directions,
and λ_min(K) as low as dense searches from many starts.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from ntk_core.dynamics import eigenvalues
from ntk_core.hessians import _ball as ball_module
from ntk_core.hessians import ball_sup, hessian_norm, smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DAGNetwork, DenseNet, FullyConnected
from ntk_core.networks.graphs import dense_graph
from tests.plain_derivatives import drawn

NET = FullyConnected(width=12, num_outputs=2, activation="tanh", use_bias=True)
RADII = [0.3, 1.0, 2.0]


@pytest.fixture(name="balls", scope="module")
def _balls():
    params, x = drawn(NET)
    batch = jnp.stack([x, -2 * x])
    return {
        quantity: ball_sup(NET, params, inputs, RADII, quantity, num_starts=2, num_steps=4)
        for quantity, inputs in (("hessian", x), ("kernel", batch))
    }


@pytest.mark.parametrize("quantity", ["hessian", "kernel"])
def test_ascent_beats_the_center_and_every_random_direction(quantity, balls):
    found = balls[quantity]
    for ball in found:
        assert ball.value > ball.at_center
        assert ball.value > ball.random.max()
        assert (ball.random.shape, ball.ascent.shape, ball.num_starts) == ((2,), (2, 5), 2)
        assert np.all(np.diff(ball.ascent, axis=1) >= 0)
        assert ball.converged
    assert found[0].value <= found[1].value <= found[2].value > found[0].value  # by radius


def test_center_of_the_ball_has_the_plain_values(balls):
    params, x = drawn(NET)
    assert balls["hessian"][0].at_center == pytest.approx(
        hessian_norm(NET, params, x).value, rel=1e-3
    )
    assert balls["kernel"][0].at_center == 0


def test_every_point_of_the_search_is_in_the_ball(monkeypatch):
    params, x = drawn(NET)
    seen = []
    original = ball_module._hessian_ascent

    def watched(net, point, *rest):
        offset = jax.tree.map(jnp.subtract, point, params)
        seen.append(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(offset)) ** 0.5)
        return original(net, point, *rest)

    monkeypatch.setattr(ball_module, "_hessian_ascent", watched)
    ball_sup(NET, params, x, 0.7, num_starts=1, num_steps=3, max_further_steps=2)
    assert len(seen) == 7  # the center, the start, three steps, two further ones
    assert max(seen) <= 0.7 * (1 + 1e-5)
    assert seen[0] == 0


@pytest.mark.parametrize("quantity", ["hessian", "kernel"])
def test_fifty_further_steps_find_little_more_in_a_large_ball(quantity, monkeypatch):
    net = FullyConnected(width=12, depth=1, activation="tanh")
    params, x = drawn(net, (10,))
    inputs = x if quantity == "hessian" else jnp.stack([x, -2 * x])
    found = ball_sup(net, params, inputs, 2.0, quantity)
    first = ball_sup(net, params, inputs, 2.0, quantity, max_further_steps=0)
    most = len(found.further) + 50
    monkeypatch.setattr(ball_module, "SMALL_GAIN", -1.0)  # so that no search is finished
    longer = ball_sup(net, params, inputs, 2.0, quantity, max_further_steps=most)
    assert len(longer.further) == most
    assert longer.value <= 1.01 * found.value
    assert first.further.size == 0
    assert np.isnan(first.last_gain)
    if quantity == "hessian":
        assert found.value > 1.1 * first.value
    assert found.value == found.further[-1]
    assert np.all(np.diff(found.further) >= 0)
    assert found.last_gain <= 1e-3


def test_unfinished_search_reports_the_gain_of_its_last_steps():
    params, x = drawn(NET)
    found = ball_sup(NET, params, x, 4.0, num_starts=1, num_steps=0, max_further_steps=3)
    assert len(found.further) == 3
    assert found.last_gain == pytest.approx(found.further[-1] / found.ascent.max() - 1)
    assert found.last_gain > ball_module.SMALL_GAIN


@pytest.mark.long  # compiles the Hessian of a dense network
def test_a_ball_moves_no_frozen_layer_and_no_removed_edge():
    net = DenseNet(6, 2, activation="tanh", drop_probability=0.5, trained="hidden", use_bias=False)
    params, x = drawn(net)
    measure = ball_module.QuantityAtPlace(net, params, x, "hessian", 0, 1e-3, 32)
    place = measure(ball_module.sphere_point(net, params, jax.random.key(2), 1.0))
    assert place.direction["output"] == {}
    removed = params["hidden2"]["mask"] == 0
    assert removed.any()
    for moved in (place.point, place.direction):
        assert not moved["hidden2"]["weight"][removed].any()


def network(drop_probability, width, activation, num_rows):
    graph = dense_graph(2, drop_probability)
    net = DAGNetwork(
        width=width, groups=graph.groups, edges=graph.edges, activation=activation, use_bias=False
    )
    return (
        net,
        net.init(jax.random.key(0), (3,)),
        jax.random.normal(jax.random.key(1), (num_rows, 3)),
    )


@pytest.mark.slow
def test_smallest_eigenvalue_in_a_ball_starts_at_the_center(x64):
    net, params, x = network(0.3, 20, "tanh", 4)
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
    # 32 steps, the last of R/32.
    assert found.value == pytest.approx((0.6 * 1.5 * size) ** 2, rel=1e-3)
    assert found.value >= (0.6 * 1.5 * size) ** 2 * (1 - 1e-12)


def dense_search(net, params, x, radius, num_starts):
    """The smallest λ_min(J Jᵀ) in the ball, from Jacobians of ``apply``.

    L-BFGS on a hardening soft minimum.

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
            u = minimize(
                descent,
                u,
                args=(share * at_center,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 100},
            ).x
        found.append(float(smallest(u)))
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "radius"), [("tanh", 0.5), pytest.param("relu", 1.5, marks=pytest.mark.slow)]
)
def test_dense_searches_from_many_starts_find_little_less(x64, activation, radius):
    net, params, x = network(0.0, 12, activation, 6)
    found = smallest_eigenvalue_in_ball(net, params, x, radius)
    dense = dense_search(net, params, x, radius, num_starts=4)
    assert found.value <= 1.01 * dense
