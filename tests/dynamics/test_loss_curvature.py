"""Products with the loss Hessian and its Gauss–Newton part against dense matrices in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core.dynamics import Loss, gauss_newton_product, loss_hessian_product
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

Y = jnp.asarray(np.eye(3)[[0, 1, 2, 1]])


def asked(output: str, seed: int = 0):
    net = FullyConnected(width=4, depth=2, num_outputs=3, activation="tanh", output=output)
    x = jax.random.normal(jax.random.key(seed), (4, 2))
    params = net.init(jax.random.key(seed + 1), 2)
    return net, params, x, jax.tree.map(jnp.cos, params)


@pytest.mark.parametrize(
    ("output", "kind"),
    [("linear", ""), ("softmax", ""), ("softmax", "square"), ("tanh", ""), ("linear", "logistic")],
)
def test_products_are_those_of_dense_matrices(output, kind, x64):
    net, params, x, vector = asked(output)
    y, rule = (2 * Y - 1 if kind == "logistic" else Y), Loss(output, kind)
    flat, back = ravel_pytree(params)
    direction = ravel_pytree(vector)[0]
    linear = net.with_output("linear")
    hessian = jax.jit(jax.hessian(lambda w: rule(linear.apply(back(w), x), y)))(flat)
    found = ravel_pytree(loss_hessian_product(net, params, x, y, vector, kind))[0]
    np.testing.assert_allclose(found, hessian @ direction, rtol=1e-9, atol=1e-12)

    def model(w):
        return rule.model(linear.apply(back(w), x)).ravel()

    jacobian = jax.jit(jax.jacobian(model))(flat)
    curvature = jax.jit(jax.hessian(lambda f: rule.of_model(f.reshape(4, 3), y)))(model(flat))
    found = ravel_pytree(gauss_newton_product(net, params, x, y, vector, kind))[0]
    np.testing.assert_allclose(
        found, jacobian.T @ curvature @ jacobian @ direction, rtol=1e-9, atol=1e-12
    )


def test_gauss_newton_has_the_eigenvalues_of_the_kernel(x64):
    net, params, x, _ = asked("linear")
    flat, back = ravel_pytree(params)
    columns = [
        ravel_pytree(gauss_newton_product(net, params, x, Y, back(unit)))[0]
        for unit in jnp.eye(flat.size)
    ]
    kernel = np.asarray(empirical_ntk(net, params, x)).transpose(0, 2, 1, 3).reshape(12, 12)
    expected = np.sort(np.linalg.eigvalsh(kernel / 4))
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvalsh(np.stack(columns)))[-12:], expected, rtol=1e-8, atol=1e-12
    )
