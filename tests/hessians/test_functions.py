"""Balls, paths, blocks, all outputs and layer quantities of plain functions,
against plain derivatives in float64.
"""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core import layer_quantities
from ntk_core.hessians import _ball as ball_module
from ntk_core.hessians import (
    ball_sup,
    hessian_block_norms,
    hessian_norm,
    path_sup,
    smallest_eigenvalue_in_ball,
)
from ntk_core.kernels import kernel_change
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import drawn, largest, normal, plain_hessian, plain_kernel

pytestmark = pytest.mark.usefixtures("x64")


def recurrent(params, x):
    """A matrix shared by three positions, gains, and a bias: (n, 3) → (n, 2)."""
    state = jnp.zeros((len(x), 4))
    for column in x.T:
        state = jnp.tanh(
            state @ params["inner"] + column[:, None] * params["gain"] + params["shift"]
        )
    return state @ params["out"].T


PARAMS = normal(inner=(4, 4), gain=(4,), shift=(4,), out=(2, 4))
X = np.array([[0.4, -1.1, 0.7], [1.3, 0.2, -0.5]])


def test_block_norms_of_a_function_are_those_of_its_parameters():
    full = plain_hessian(recurrent, PARAMS, X[0], 1)
    found = hessian_block_norms(recurrent, PARAMS, X[0], 1, max_matvecs=256)
    assert found.layers == ("gain", "inner", "out", "shift")
    owner = ravel_pytree(
        {name: jnp.full(leaf.shape, at) for at, (name, leaf) in enumerate(sorted(PARAMS.items()))}
    )[0]
    places = [np.flatnonzero(owner == at) for at in range(4)]
    exact = [[np.linalg.norm(full[np.ix_(one, two)], 2) for two in places] for one in places]
    np.testing.assert_allclose(found.values, exact, rtol=1e-7, atol=1e-12)
    assert found.converged.all()


def test_frozen_layers_have_no_block():
    net = FullyConnected(width=5, depth=2, activation="tanh", trained="hidden", use_bias=False)
    params, _ = drawn(net, (3,))
    assert hessian_block_norms(net, params, X[0]).layers == ("hidden1", "hidden2")
    assert (
        np.count_nonzero(layer_quantities(replace(net, trained="first"), params, X[0]).block_bounds)
        == 1
    )


@pytest.mark.slow
def test_ball_of_a_function_ascends_along_the_gradient():
    measure = ball_module.QuantityAtPlace(recurrent, PARAMS, X[0], "hessian", 1, 1e-9, 64)
    place = measure(PARAMS)

    def norm(direction, step=1e-4):
        return largest(
            plain_hessian(
                recurrent, jax.tree.map(lambda w, d: w + step * d, PARAMS, direction), X[0], 1
            )
        )

    other = jax.tree.map(
        jnp.subtract, ball_module.sphere_point(measure.net, PARAMS, jax.random.key(3), 1.0), PARAMS
    )
    uphill = dict(zip(sorted(PARAMS), place.direction, strict=True))
    opposite, downhill = (jax.tree.map(jnp.negative, each) for each in (other, uphill))
    steepest = (norm(uphill) - norm(downhill)) / 2e-4
    cosine = ravel_pytree(other)[0] @ ravel_pytree(uphill)[0]
    assert place.value == pytest.approx(norm(other, 0.0), rel=1e-8)
    assert steepest > 0
    # central differences are exact to step² = 1e-8
    assert (norm(other) - norm(opposite)) / 2e-4 == pytest.approx(
        steepest * float(cosine), abs=1e-6 * steepest
    )


@pytest.mark.slow  # ascends in two balls
def test_ball_of_a_function_contains_larger_norms_and_changes():
    found = ball_sup(recurrent, PARAMS, X, 0.3, "kernel", num_starts=1, num_steps=3)
    assert found.value > found.random.max()
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS)
    hessians = path_sup(recurrent, [PARAMS, moved], X[0])
    assert hessians.values[1] == pytest.approx(hessian_norm(recurrent, moved, X[0]).value, rel=1e-3)
    kernels = path_sup(recurrent, [PARAMS, moved], X, "kernel")
    change = kernel_change(plain_kernel(recurrent, moved, X), plain_kernel(recurrent, PARAMS, X))
    assert kernels.values[1] == pytest.approx(float(change), rel=1e-8)
    length = jnp.linalg.norm(ravel_pytree(PARAMS)[0]) / 10
    np.testing.assert_allclose(kernels.distances, [0, length], rtol=1e-12)


def test_smallest_eigenvalue_of_a_function_falls_in_a_ball():
    found = smallest_eigenvalue_in_ball(recurrent, PARAMS, X, 0.5, num_starts=1, num_steps=6)
    kernel = plain_kernel(recurrent, PARAMS, X).transpose(0, 2, 1, 3).reshape(4, 4)
    assert found.at_center == pytest.approx(np.linalg.eigvalsh(kernel)[0], rel=1e-8)
    assert 0 <= found.value < found.at_center


@pytest.mark.slow
def test_layer_quantities_of_a_function_and_its_network_agree():
    """The function stores its weights by features."""
    net = FullyConnected(width=6, depth=3, num_outputs=2, activation="tanh", use_bias=True)
    params, _ = drawn(net, (3,))
    turned = functools.partial(jax.tree.map, jnp.transpose)
    one = layer_quantities(net, params, X[0])
    other = layer_quantities(lambda w, x: net.apply(turned(w), x), turned(params), X[0])
    assert one.layers == ("hidden1", "hidden2", "hidden3")
    for name in (
        "b_max",
        "weight_jacobian",
        "second_mixed",
        "second_input",
        "block_bounds",
        "q_221",
        "bound",
    ):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10)
