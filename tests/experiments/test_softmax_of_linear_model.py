"""ΔK of softmax(f_lin) against a linearized network that takes the same steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import linearize, softmax_changes
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected

RATE, STEPS = 0.5, (0, 1, 4)


# Slow: takes Jacobians of a linearized network in float64.
@pytest.mark.slow
def test_softmax_of_linear_model_equals_plain_training():
    with jax.enable_x64(True):
        net = FullyConnected(width=7, depth=1, activation="tanh", num_outputs=3)
        x = jax.random.normal(jax.random.key(1), (4, 5), jnp.float64)
        y = jnp.eye(3)[jnp.array([0, 1, 2, 0])]
        params = net.init(jax.random.key(0), (5,))
        params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params)
        f_lin = linearize(net, params)

        def loss(w):
            return -jnp.sum(jax.nn.log_softmax(f_lin(w, x)) * y) / len(x)

        def kernel(w):
            jacobian = jax.jacobian(lambda at: jax.nn.softmax(f_lin(at, x)))(w)
            rows = jnp.concatenate([leaf.reshape(12, -1) for leaf in jax.tree.leaves(jacobian)], 1)
            return rows @ rows.T

        w, expected = params, []
        for step in range(STEPS[-1] + 1):
            if step in STEPS:
                change = jnp.linalg.norm(kernel(w) - kernel(params))
                expected.append(float(change / jnp.linalg.norm(kernel(params))))
            w = jax.tree.map(lambda leaf, slope: leaf - RATE * slope, w, jax.grad(loss)(w))
        given = empirical_ntk(net, params, x), net.apply(params, x), y
        assert softmax_changes(*given, RATE, STEPS) == pytest.approx(expected, rel=1e-9)


def test_trained_linear_model_loses_its_softmax_kernel():
    kernel = np.eye(4)[:, :, None, None] * np.eye(2)
    y = np.eye(2)[[0, 1, 0, 1]]
    found = softmax_changes(kernel, np.zeros((4, 2)), y, 4.0, (0, 10, 1000))
    assert found[0] == 0
    assert found[1] < found[2]
    assert found[2] == pytest.approx(1, abs=0.05)
