"""A small training problem for tests."""

from __future__ import annotations

import jax
import numpy as np
from jax import Array

from ntk_core.networks.architectures import FullyConnected, NetworkParams

NET = FullyConnected(width=9, depth=1, num_outputs=2, activation="tanh", use_bias=True)


def problem(
    net: FullyConnected = NET, n: int = 8, num_test: int = 3, d: int = 3
) -> tuple[NetworkParams, Array, Array, Array, Array]:
    """(w₀, x, y, x_test, y_test) with one-hot targets."""
    params = net.init(jax.random.key(0), (d,))
    x = jax.random.normal(jax.random.key(1), (n + num_test, d))
    y = jax.nn.one_hot(np.arange(n + num_test) % net.num_outputs, net.num_outputs)
    return params, x[:n], y[:n], x[n:], y[n:]
