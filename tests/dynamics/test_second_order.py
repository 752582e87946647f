"""Gauss–Newton steps, against the matrix (G + λI)⁻¹ of all weights and the closed
form of linear models.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core import InvalidInput, Optimizer, empirical_ntk, train
from ntk_core.curvature import fisher
from ntk_core.dynamics import Loss
from ntk_core.dynamics._second_order import DAMPING
from ntk_core.networks.architectures import FullyConnected
from tests.dynamics.problems import problem

RATE = 0.5


def damped_step(apply, params, x, y, loss):
    """w − η (G + λI)⁻¹ ∇L with G = JᵀHJ as a matrix of all weights."""
    flat, restore = ravel_pytree(params)
    n, num_outputs = y.shape

    def outputs(w):
        return apply(restore(w), x).reshape(-1)

    def loss_of(values):
        return loss.of_model(values.reshape(n, num_outputs), y)

    jacobian = jax.jacfwd(outputs)(flat)
    curvature = jax.hessian(loss_of)(outputs(flat))
    matrix = jacobian.T @ curvature @ jacobian
    damping = DAMPING * jnp.trace(matrix) / (n * num_outputs)
    gradient = jax.grad(lambda w: loss_of(outputs(w)))(flat)
    damped = matrix + damping * jnp.eye(len(flat))
    return restore(flat - RATE * jnp.linalg.solve(damped, gradient)), matrix


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("output", "kind"),
    [("swish", "square"), ("softmax", "cross-entropy"), ("linear", "logistic")],
)
def test_step_is_that_of_the_matrix_of_all_weights(output, kind):
    net = FullyConnected(
        width=9, depth=1, num_outputs=2, activation="tanh", use_bias=True, output=output
    )
    params, x, y, _, _ = problem(net)
    loss = Loss(output, kind)
    y = 2 * y - 1 if kind == "logistic" else y

    def model(w, rows):
        return loss.model(net.with_output("linear").apply(w, rows))

    stepped, matrix = damped_step(model, params, x, y, loss)
    history = train(
        net, params, x, y, loss=loss, optimizer="gauss-newton", max_steps=1, kernels=False
    )
    # The linear model is the network to first order, so its first step is the same.
    assert history.learning_rate == RATE
    found = np.asarray(ravel_pytree(history.params)[0])
    assert found == pytest.approx(np.asarray(ravel_pytree(stepped)[0]), rel=1e-9, abs=1e-12)
    # The natural gradient: G is the Fisher information.
    information = fisher(net, params, x, loss=kind)
    vector = np.linspace(-1, 1, len(found))
    assert information.flat_product(vector) == pytest.approx(
        np.asarray(matrix @ vector), rel=1e-8, abs=1e-12
    )


def contraction(kernel, steps):
    """(nC, nC) map of the residuals in these steps on a constant kernel, in float64."""
    n, _, num_outputs, _ = kernel.shape
    flat = np.asarray(kernel, float).transpose(0, 2, 1, 3).reshape(n * num_outputs, -1)
    values, vectors = np.linalg.eigh(flat)
    damping = DAMPING * values.mean()
    factors = (1 - RATE * values / (values + damping)) ** steps
    return vectors @ np.diag(factors) @ vectors.T


@pytest.mark.parametrize("steps", [1, 4])
def test_linear_model_has_a_closed_form(steps):
    # A linear function of its weights: r_t = Π (1 − η κ/(κ + λ)) r₀ in the eigenbasis of K.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 11))
    y = rng.standard_normal((6, 2))
    history = train(
        lambda w, rows: rows @ w,
        np.zeros((11, 2)),
        x,
        y,
        optimizer="gauss-newton",
        max_steps=steps,
        num_records=2,
        kernels=False,
        linearized=False,
    )
    kernel = np.einsum("ik,jk,ab->ijab", x, x, np.eye(2))
    expected = y.reshape(-1) - contraction(kernel, steps) @ y.reshape(-1)
    assert history.network.outputs[-1].reshape(-1) == pytest.approx(expected, abs=2e-5)


@pytest.mark.slow  # compiles a network and its linear model
def test_linearized_network_has_the_closed_form_of_its_kernel():
    net = FullyConnected(width=40, depth=1, num_outputs=2, activation="tanh")
    params, x, y, _, _ = problem(net)
    history = train(
        net, params, x, y, optimizer="gauss-newton", max_steps=3, num_records=2, kernels=False
    )
    start = np.asarray(net.apply(params, x), float).reshape(-1)
    residual = contraction(empirical_ntk(net, params, x), 3) @ (start - np.asarray(y).reshape(-1))
    found = history.linearized.outputs[-1].reshape(-1)
    assert found == pytest.approx(np.asarray(y).reshape(-1) + residual, abs=5e-5)


@pytest.mark.slow  # compiles another network
def test_only_trainable_weights_move():
    net = FullyConnected(width=9, depth=1, num_outputs=2, activation="tanh")
    params, x, y, _, _ = problem(net)
    names = list(params)
    history = train(
        net,
        params,
        x,
        y,
        optimizer="gauss-newton",
        max_steps=2,
        kernels=False,
        trainable=[names[-1]],
    )
    first = jax.tree.leaves(params[names[0]])[0]
    assert np.array_equal(jax.tree.leaves(history.params[names[0]])[0], first)
    assert history.network.loss[-1] < history.network.loss[0]


def test_large_systems_and_batches_are_refused():
    x = np.ones((451, 1))
    with pytest.raises(InvalidInput, match=r"n·C = 902.*at most 900"):
        train(
            lambda w, row: row @ w, np.ones((1, 2)), x, np.ones((451, 2)), optimizer="gauss-newton"
        )
    with pytest.raises(InvalidInput, match="batch_size"):
        Optimizer("gauss-newton", batch_size=2)
