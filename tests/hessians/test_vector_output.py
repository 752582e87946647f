"""Norm of the Hessian tensor of all outputs against dense searches."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core.hessians import hessian_norm, vector_hessian_norm
from ntk_core.networks.architectures import ConvNet, DenseNet, FullyConnected, merge
from tests.plain_derivatives import drawn

NET = FullyConnected(width=7, depth=2, num_outputs=3, activation="tanh", use_bias=True)


def dense_norm(net, params, x, num_draws=100):
    """max_u ‖Σ u_c H_c‖ over many unit vectors u,
    then over decreasing steps around the best one.
    """
    trained, fixed = net.partition(params)
    flat, unravel = ravel_pytree(trained)
    tensor = jax.jit(jax.hessian(lambda flat: net.apply(merge(unravel(flat), fixed), x[None])[0]))
    matrices = np.asarray(tensor(flat))
    # The joint range of all H_c; other directions only add zeros to every spectrum.
    _, sizes, directions = np.linalg.svd(matrices.reshape(-1, flat.size), full_matrices=False)
    basis = directions[sizes > 1e-12 * sizes[0]]
    small = basis @ matrices @ basis.T
    random, best, at = np.random.default_rng(0), 0.0, np.zeros(net.num_outputs)
    for spread in (np.inf, *0.5 ** np.arange(1, 13)):
        for _ in range(num_draws if spread == np.inf else 30):
            step = random.normal(size=net.num_outputs)
            u = step if spread == np.inf else at + spread * step
            u = u / np.linalg.norm(u)
            value = np.abs(np.linalg.eigvalsh(np.tensordot(u, small, 1))).max()
            best, at = (value, u) if value > best else (best, at)
    return best, matrices


GRAPH = DenseNet(width=5, num_outputs=2, activation="tanh", drop_probability=0.4, use_bias=False)
CONVOLUTION = ConvNet(
    width=3, depth=2, num_outputs=2, activation="gelu", dimensions=1, use_bias=False
)
NETS = [
    pytest.param(replace(NET, output="softmax"), (4,), id="softmax"),
    pytest.param(GRAPH, (4,), id="graph", marks=pytest.mark.slow),
    pytest.param(CONVOLUTION, (5, 2), id="convolution", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("net", "shape"), NETS)
def test_the_norm_is_that_of_the_dense_tensor(net, shape, x64):
    params, x = drawn(net, shape)
    found = vector_hessian_norm(net, params, x)
    expected, matrices = dense_norm(net, params, x)
    assert found.converged
    # the dense search stops at steps of 2^-12, ours at gains of 1e-3
    assert found.value == pytest.approx(expected, rel=2e-3)
    np.testing.assert_allclose(
        found.outputs, [np.linalg.norm(matrix, 2) for matrix in matrices], rtol=1e-7
    )
    assert found.outputs.max() <= found.value * (1 + 1e-12) <= found.upper * (1 + 1e-9)
    assert np.linalg.norm(np.tensordot(found.weights, matrices, 1), 2) == pytest.approx(
        found.value, rel=2e-3
    )


def test_one_output_is_its_own_norm(x64):
    net = replace(NET, num_outputs=1)
    params, x = drawn(net)
    found = vector_hessian_norm(net, params, x)
    assert found.value == pytest.approx(hessian_norm(net, params, x).value, rel=1e-7)
    assert found.upper == pytest.approx(found.value, rel=1e-7)


def test_a_linear_model_has_none():
    net = replace(NET, trained="last")
    found = vector_hessian_norm(net, *drawn(net))
    assert found.value == found.upper == 0
    assert found.converged
