"""Block norms against the blocks of the full Hessian."""

import jax
import numpy as np
import pytest

from ntk_core.hessians import hessian_block_norms, hessian_norm
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import drawn, full_hessian

NET = FullyConnected(width=(6, 7), depth=2, num_outputs=2, activation="gelu", use_bias=True)


@pytest.fixture(name="at")
def _at(x64):
    return drawn(NET)


def test_every_block_norm_is_that_of_the_full_hessian(at):
    params, x = at
    full, flatten = full_hessian(NET, params, x)
    trained, _ = NET.partition(params)
    owner = flatten(
        {
            name: jax.tree.map(lambda leaf, n=name: np.full(leaf.shape, float(list(params).index(n))), moved)
            for name, moved in trained.items()
        }
    )
    found = hessian_block_norms(NET, params, x)
    assert found.layers == tuple(params)
    assert np.all(found.converged)
    exact = [[np.linalg.norm(full[np.ix_(owner == i, owner == j)], 2) for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(found.values, exact, rtol=1e-8, atol=1e-12)
    assert found.values[2, 2] == 0  # the output layer is linear


def test_norm_is_between_largest_block_and_sum_of_blocks(at):
    params, x = at
    blocks = hessian_block_norms(NET, params, x).values
    assert blocks.max() <= hessian_norm(NET, params, x).value <= blocks.sum()


def test_frozen_layers_have_no_block(x64):
    net = FullyConnected(width=5, depth=2, activation="tanh", trained="hidden", use_bias=False)
    params = net.init(jax.random.key(0), (3,))
    assert hessian_block_norms(net, params, jax.random.normal(jax.random.key(1), (3,))).layers == ("hidden1", "hidden2")
