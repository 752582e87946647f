"""Pre-activations as networks of the weights below them (Zhu, Liu & Belkin 2022, Theorem 3.8)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected, PreActivations
from tests.cases import ARCHITECTURES, Case, inputs, random_params
from tests.plain_derivatives import full_hessian, plain_kernel

BY_NAME = {case.name: case for case in ARCHITECTURES}
NAMES = ("deep", "conv-2d", "graph")


@pytest.mark.parametrize("name", NAMES)
def test_pre_activations_are_what_the_layer_computes_on_the_way(name, x64):
    case = BY_NAME[name]
    params, x = random_params(case), inputs(case, 3)
    seen = {}

    def call(layer, a):
        seen[layer] = case.net.layers[layer].apply(params[layer], a)
        return seen[layer]

    case.net.body(call, x)
    for layer in case.net.layers:
        flat = np.asarray(seen[layer]).reshape(3, -1)
        view = PreActivations(case.net, layer, (0, flat.shape[1] - 1))
        np.testing.assert_allclose(view.apply(params, x), flat[:, [0, -1]], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_norms_of_pre_activations_are_full(name, x64):
    case = BY_NAME[name]
    params, x = random_params(case), inputs(case, 3)
    view = PreActivations(case.net, [name for name in case.net.layers if name != "output"][-1], (0, 1))
    below = {layer: params[layer] for layer in view.layers}
    expected = plain_kernel(view.apply, below, x)
    np.testing.assert_allclose(empirical_ntk(view, params, x), expected, rtol=1e-10, atol=1e-12)
    norm = np.abs(np.linalg.eigvalsh(full_hessian(view, below, x[0], 1)[0])).max()
    assert hessian_norm(view, params, x[0], 1).value == pytest.approx(norm, rel=1e-9)


def test_first_pre_activations_are_linear_at_any_width(x64):
    net = FullyConnected(width=3, depth=2, activation="tanh", use_bias=False)
    params, x = net.init(jax.random.key(0), (4,)), jnp.ones(4)
    estimate = hessian_norm(PreActivations(net, "hidden1"), params, x)
    assert estimate.value == 0
    assert estimate.converged


def test_a_unit_beyond_the_layer_is_refused():
    net = PreActivations(FullyConnected(width=4, use_bias=False), "hidden1", (4,))
    with pytest.raises(InvalidInput, match="from 0 to 3"):
        net.apply(random_params(Case("", net.net, (2,))), jnp.ones((1, 2)))
