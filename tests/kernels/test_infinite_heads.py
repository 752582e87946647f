"""The kernel of infinitely many heads as the limit of kernels with many heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk, infinite_heads_ntk
from ntk_core.networks.architectures import Attention


@pytest.mark.slow
def test_kernels_of_many_heads_converge(x64):
    net = Attention(num_heads=1, head_dim=3, causal=True)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((5, 4, 3)))
    limit = infinite_heads_ntk(net, x, num_batches=32)
    scale = np.linalg.norm(limit.value)
    error = np.linalg.norm(limit.standard_error) / scale
    assert error < 0.03
    distances = []
    for num_heads in (16, 256, 4096):
        wide = Attention(num_heads=num_heads, head_dim=3, causal=True)
        drawn = [empirical_ntk(wide, wide.init(jax.random.key(s), (4, 3)), x)[..., 0, 0] for s in range(4)]
        distances.append(np.mean([np.linalg.norm(kernel - limit.value) for kernel in drawn]) / scale)
    # Means over independent heads: 16 times as many are 4 times as close, up to the error of the limit.
    assert distances[1] == pytest.approx(distances[0] / 4, rel=0.5)
    assert distances[2] < distances[1] / 4 + 3 * error
