"""Balls, paths, blocks, all outputs and layer quantities of plain functions, against plain derivatives in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core import InvalidInput, layer_quantities
from ntk_core.hessians import _ball as ball_module
from ntk_core.hessians import (
    ball_sup,
    hessian_block_norms,
    hessian_norm,
    path_sup,
    smallest_eigenvalue_in_ball,
    vector_hessian_norm,
)
from ntk_core.kernels import kernel_change
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import largest, plain_hessian, plain_kernel, quickly

pytestmark = pytest.mark.usefixtures("x64")


def recurrent(params, x):
    """A matrix shared by three positions, gains, and a bias: (n, 3) → (n, 2)."""
    state = jnp.zeros((len(x), 4))
    for column in x.T:
        state = jnp.tanh(state @ params["inner"] + column[:, None] * params["gain"] + params["shift"])
    return state @ params["out"].T


def chain(params, x):
    """Two hidden layers in plain JAX; weights are stored by features."""
    first, second, out = params["w"]
    a = jax.nn.gelu(x @ first.T / 3**0.5 + 0.5 * params["b"])
    return jnp.sin(0.4 * (second @ a.T).T) @ out / 5**0.5


def drawn(shapes, seed=0):
    leaves, structure = jax.tree.flatten(
        shapes, is_leaf=lambda each: isinstance(each, tuple) and isinstance(each[0], int)
    )
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    return jax.tree.unflatten(structure, [jax.random.normal(k, shape) for k, shape in zip(keys, leaves, strict=True)])


RECURRENT = {"inner": (4, 4), "gain": (4,), "shift": (4,), "out": (2, 4)}
CHAIN = {"w": [(6, 3), (5, 6), (5, 2)], "b": (6,)}
X = np.array([[0.4, -1.1, 0.7], [1.3, 0.2, -0.5]])


def test_block_norms_of_a_function_are_those_of_its_parameters():
    params = drawn(RECURRENT)
    full = plain_hessian(recurrent, params, X[0], 1)
    found = hessian_block_norms(recurrent, params, X[0], 1, max_matvecs=256)
    assert found.layers == ("['gain']", "['inner']", "['out']", "['shift']")
    owner = ravel_pytree({name: jnp.full(leaf.shape, at) for at, (name, leaf) in enumerate(sorted(params.items()))})[0]
    places = [np.flatnonzero(owner == at) for at in range(4)]
    exact = [[np.linalg.norm(full[np.ix_(one, two)], 2) for two in places] for one in places]
    np.testing.assert_allclose(found.values, exact, rtol=1e-7, atol=1e-12)
    assert found.converged.all()


def test_all_outputs_of_a_function_bend_as_much_as_found():
    params = drawn(RECURRENT)
    matrices = [plain_hessian(recurrent, params, X[0], index) for index in (0, 1)]
    found = vector_hessian_norm(recurrent, params, X[0])
    np.testing.assert_allclose(found.outputs, [largest(each) for each in matrices], rtol=1e-7)
    angles = np.linspace(0, np.pi, 721)
    dense = max(largest(np.cos(angle) * matrices[0] + np.sin(angle) * matrices[1]) for angle in angles)
    assert dense * (1 - 1e-5) <= found.value <= found.upper  # steps of a quarter degree lose 1e-5 at most
    bent = largest(found.weights[0] * matrices[0] + found.weights[1] * matrices[1])
    assert found.value == pytest.approx(bent, rel=1e-2)  # the last round may add a thousandth


def test_ball_of_a_function_ascends_along_the_gradient():
    params = drawn(RECURRENT)
    measure = ball_module.Measure(recurrent, params, X[0], "hessian", 1, 1e-9, 64)
    place = measure(params)

    def norm(direction, step=1e-4):
        return largest(plain_hessian(recurrent, jax.tree.map(lambda w, d: w + step * d, params, direction), X[0], 1))

    other = jax.tree.map(jnp.subtract, ball_module.sphere_point(measure.net, params, jax.random.key(3), 1.0), params)
    uphill = dict(zip(sorted(params), place.direction, strict=True))
    opposite, downhill = (jax.tree.map(jnp.negative, each) for each in (other, uphill))
    steepest = (norm(uphill) - norm(downhill)) / 2e-4
    cosine = ravel_pytree(other)[0] @ ravel_pytree(uphill)[0]
    assert place.value == pytest.approx(norm(other, 0.0), rel=1e-8)
    assert steepest > 0
    # central differences are exact to step² = 1e-8
    assert (norm(other) - norm(opposite)) / 2e-4 == pytest.approx(steepest * float(cosine), abs=1e-6 * steepest)


def test_ball_of_a_function_contains_larger_norms_and_changes():
    params = drawn(RECURRENT)
    for quantity, x in (("hessian", X[0]), ("kernel", X)):
        found = ball_sup(recurrent, params, x, 0.3, quantity, num_starts=1, num_steps=3)
        assert found.value > found.random.max()
        assert found.converged
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, params)
    hessians = path_sup(recurrent, [params, moved], X[0])
    assert hessians.values[1] == pytest.approx(hessian_norm(recurrent, moved, X[0]).value, rel=1e-3)
    kernels = path_sup(recurrent, [params, moved], X, "kernel")
    change = kernel_change(plain_kernel(recurrent, moved, X), plain_kernel(recurrent, params, X))
    assert kernels.values[1] == pytest.approx(float(change), rel=1e-8)
    length = jnp.linalg.norm(ravel_pytree(params)[0]) / 10
    np.testing.assert_allclose(kernels.distances, [0, length], rtol=1e-12)


def test_smallest_eigenvalue_of_a_function_falls_in_a_ball():
    params = drawn(RECURRENT)
    found = smallest_eigenvalue_in_ball(recurrent, params, X, 0.5, num_starts=1, num_steps=6)
    kernel = plain_kernel(recurrent, params, X).transpose(0, 2, 1, 3).reshape(4, 4)
    assert found.at_center == pytest.approx(np.linalg.eigvalsh(kernel)[0], rel=1e-8)
    assert 0 <= found.value < found.at_center


def test_layer_quantities_of_a_function_match_its_derivatives():
    params = drawn(CHAIN)
    (first, second, out), x = params["w"], X[0]
    found = layer_quantities(chain, params, x, 1)
    a1 = jax.nn.gelu(first @ x / 3**0.5 + 0.5 * params["b"])

    def upper(w, a):
        return jnp.sin(0.4 * (w @ a))

    def lower(w, b):
        return jax.nn.gelu(w @ x / 3**0.5 + 0.5 * b)

    by_weight, by_input = quickly(jax.jacobian(upper, (0, 1)))(second, a1)
    of_first = quickly(jax.jacobian(lower, (0, 1)))(first, params["b"])
    of_first = jnp.concatenate([of_first[0].reshape(6, -1), of_first[1]], 1)
    b2 = out[:, 1] / 5**0.5
    assert found.layers == ("['w'][0]", "['w'][1]")
    np.testing.assert_allclose(found.b_norm, [jnp.linalg.norm(by_input.T @ b2), jnp.linalg.norm(b2)], rtol=1e-10)
    jacobians = [np.linalg.norm(of_first, 2), np.linalg.norm(by_weight.reshape(5, -1), 2)]
    np.testing.assert_allclose(found.weight_jacobian, jacobians, rtol=1e-10)
    assert found.input_jacobian[1] == pytest.approx(np.linalg.norm(by_input, 2), rel=1e-3)
    assert found.bound >= hessian_norm(chain, params, x, 1).value


def test_layer_quantities_of_a_function_and_its_network_agree():
    net = FullyConnected(width=6, depth=3, num_outputs=2, activation="tanh", use_bias=True)
    params = net.init(jax.random.key(0), (3,))
    one, other = (layer_quantities(model, params, X[0]) for model in (net, lambda w, x: net.apply(w, x)))
    assert one.layers == ("hidden1", "hidden2", "hidden3")
    for name in ("b_max", "weight_jacobian", "second_mixed", "second_input", "block_bounds", "q_221", "bound"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10)


@pytest.mark.parametrize(
    ("params", "apply"),
    [
        (RECURRENT, recurrent),
        (CHAIN, lambda p, x: chain(p, x) ** 2),
        (CHAIN, lambda p, x: jax.nn.softmax(jnp.tanh(x @ p["w"][0].T)) @ p["w"][1].T @ p["w"][2]),
        (
            {"v": (3, 3), "w": (3, 3), "u": (3, 1)},
            lambda p, x: (jnp.tanh((h := jnp.tanh(x @ p["v"])) @ p["w"]) + h) @ p["u"],
        ),
        ({"w": (3, 1)}, lambda p, x: x @ p["w"]),
    ],
    ids=["recurrent", "nonlinear output", "neurons that meet", "residual", "no hidden layer"],
)
def test_layer_quantities_refuse_what_is_no_chain(params, apply):
    with pytest.raises(InvalidInput, match="chain of dense layers"):
        layer_quantities(apply, drawn(params), X[0])
