"""The sup over a ball: a lower bound above random directions that increases with the radius."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import _ball as ball_module
from ntk_core.hessians import ball_sup, hessian_norm, path_sup
from ntk_core.kernels import empirical_ntk, kernel_change
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
    for ball in balls[quantity]:
        assert ball.value > ball.at_center
        assert ball.value > ball.random.max()
        assert ball.random.shape == (2,)
        assert ball.ascent.shape == (2, 5)
        assert ball.num_starts == 2
        assert ball.converged


@pytest.mark.parametrize("quantity", ["hessian", "kernel"])
def test_a_step_of_the_ascent_never_lowers_the_value(quantity, balls):
    for ball in balls[quantity]:
        assert np.all(np.diff(ball.ascent, axis=1) >= 0)


@pytest.mark.parametrize("quantity", ["hessian", "kernel"])
def test_bounds_rise_with_the_radius(quantity, balls):
    values = [ball.value for ball in balls[quantity]]
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_center_of_the_ball_has_the_plain_values(balls):
    params, x = drawn()
    assert balls["hessian"][0].at_center == pytest.approx(hessian_norm(NET, params, x).value, rel=1e-3)
    assert balls["kernel"][0].at_center == 0


def test_ascent_direction_is_the_gradient_of_the_norm(x64):
    params, x = drawn()

    def ascent(params):
        value, direction, converged = ball_module._hessian_ascent(NET, params, x, 0, 1e-10, 64, True)
        assert converged
        return float(value), direction

    def slope(direction, step=1e-4):
        ahead, behind = (jax.tree.map(lambda w, d, s=s: w + s * d, params, direction) for s in (step, -step))
        return (ascent(ahead)[0] - ascent(behind)[0]) / (2 * step)

    _, steepest = ascent(params)
    other = ball_module.sphere_point(NET, jax.tree.map(jnp.zeros_like, params), jax.random.key(4), 1.0)
    cosine = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(steepest), jax.tree.leaves(other), strict=True))
    assert slope(steepest) > 0
    # a directional derivative is ‖gradient‖ · cosine; central differences are exact to O(step²) = 1e-8
    assert slope(other) == pytest.approx(slope(steepest) * float(cosine), abs=1e-6 * slope(steepest))


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


def test_path_gives_the_value_and_distance_of_each_point():
    params, x = drawn()
    path = [jax.tree.map(lambda w, s=shift: w + s, params) for shift in (0.0, 0.01, 0.03)]
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    hessian = path_sup(NET, iter(path), x)
    assert hessian.values.shape == (3,)
    assert hessian.value == max(hessian.values)
    np.testing.assert_allclose(hessian.distances, np.array([0, 0.01, 0.03]) * size**0.5, rtol=1e-4)
    assert hessian.values[2] == pytest.approx(hessian_norm(NET, path[2], x).value, rel=1e-3)
    kernel = path_sup(NET, path, x[None], "kernel")
    change = kernel_change(empirical_ntk(NET, path[2], x[None]), empirical_ntk(NET, params, x[None]))
    assert kernel.values[0] == 0
    assert kernel.values[2] == pytest.approx(float(change), rel=1e-5)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("radius", {"radius": 0.0}),
        ("radius", {"radius": float("nan")}),
        ("quantity", {"quantity": "loss"}),
        ("num_starts", {"num_starts": 0}),
        ("num_steps", {"num_steps": -1}),
    ],
)
def test_requests_that_cannot_be_answered_name_their_field(field, change):
    params, x = drawn()
    with pytest.raises(InvalidInput) as refused:
        ball_sup(NET, params, x, **{"radius": 1.0, **change})
    assert refused.value.field == field


def test_balls_contain_larger_relu_hessians_and_kernel_changes():
    net = FullyConnected(width=8, depth=2, activation="relu", use_bias=False)
    params, x = drawn(net)
    found = ball_sup(net, params, x, 1.0, num_starts=1, num_steps=4)
    assert found.value > 1.1 * found.at_center > 0
    assert ball_sup(net, params, x[None], 1.0, "kernel", num_starts=1, num_steps=2).value > 0


def test_a_path_needs_a_point():
    with pytest.raises(InvalidInput, match="path"):
        path_sup(NET, [], drawn()[1])


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
