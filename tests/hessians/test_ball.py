"""The sup over a ball: a lower bound above random directions that increases with the radius."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import _ball as ball_module
from ntk_core.hessians import ball_sup, hessian_norm
from ntk_core.networks.architectures import DenseNet, FullyConnected

NET = FullyConnected(width=12, num_outputs=2, activation="tanh", use_bias=True)
RADII = [0.3, 1.0, 2.0]


def drawn(net=NET):
    return net.init(jax.random.key(0), (4,)), jax.random.normal(jax.random.key(1), (4,))


@pytest.fixture(name="balls", scope="module")
def _balls():
    params, x = drawn()
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
    params, x = drawn()
    assert balls["hessian"][0].at_center == pytest.approx(hessian_norm(NET, params, x).value, rel=1e-3)
    assert balls["kernel"][0].at_center == 0


def test_every_point_of_the_search_is_in_the_ball(monkeypatch):
    params, x = drawn()
    seen = []
    original = ball_module._hessian_ascent

    def watched(net, point, *rest):
        offset = jax.tree.map(jnp.subtract, point, params)
        seen.append(sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(offset)) ** 0.5)
        return original(net, point, *rest)

    monkeypatch.setattr(ball_module, "_hessian_ascent", watched)
    ball_sup(NET, params, x, 0.7, num_starts=1, num_steps=3)
    assert len(seen) == 5  # the center, the start, three steps
    assert max(seen) <= 0.7 * (1 + 1e-5)
    assert seen[0] == 0


def test_frozen_layers_stay_where_they_are():
    net = FullyConnected(width=6, activation="erf", trained="first", use_bias=False)
    params, x = drawn(net)
    ball = ball_sup(net, params, x, 1.0, num_starts=1, num_steps=2)
    assert ball.value > ball.at_center
    _, direction, _ = ball_module._hessian_ascent(net, params, x, 0, 1e-3, 32, True)
    assert direction["output"] == {}


def test_a_ball_moves_no_removed_edge():
    net = DenseNet(6, 2, activation="tanh", drop_probability=0.5, use_bias=False)
    params, x = drawn(net)
    measure = ball_module.Measure(net, params, x, "hessian", 0, 1e-3, 32)
    place = measure(ball_module.sphere_point(net, params, jax.random.key(2), 1.0))
    removed = [(name, layer["mask"] == 0) for name, layer in params.items() if "mask" in layer]
    assert any(mask.any() for _, mask in removed)
    for name, mask in removed:
        assert not place.point[name]["weight"][mask].any()
        assert not place.direction[name]["weight"][mask].any()
