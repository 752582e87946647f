"""Scaling a model by α is scaling its labels by 1/α (Liu, Zhu & Belkin 2020, §1.1, after Eq. 4)."""

import jax
import jax.numpy as jnp
import numpy as np

from ntk_core.networks.architectures import FullyConnected

ALPHA, RATE, STEPS = 8.0, 0.002, 20


def test_scaled_model_takes_the_path_of_scaled_labels(x64):
    net = FullyConnected(width=16, depth=1, activation="tanh", num_outputs=1)
    x = jax.random.normal(jax.random.key(1), (5, 3))
    y = jax.random.normal(jax.random.key(2), (5, 1))
    start = net.init(jax.random.key(0), (3,))

    def scaled_model(w):
        return jnp.mean((ALPHA * net.apply(w, x) - y) ** 2)

    def scaled_labels(w):
        return jnp.mean((net.apply(w, x) - y / ALPHA) ** 2)

    def trained(loss, rate):
        def step(_, w):
            return jax.tree.map(lambda leaf, slope: leaf - rate * slope, w, jax.grad(loss)(w))

        return jax.lax.fori_loop(0, STEPS, step, start)

    # The loss of the scaled model is α² times the other, so its rate is α² times smaller.
    first = trained(scaled_model, RATE)
    second = trained(scaled_labels, RATE * ALPHA**2)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
