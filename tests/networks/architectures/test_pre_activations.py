"""Pre-activations as networks of the weights below them (Zhu, Liu & Belkin 2022, Theorem 3.8)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DAGNetwork, FullyConnected, Mirrored, PreActivations
from tests.cases import ARCHITECTURES, Case, inputs, random_params
from tests.plain_derivatives import full_hessian, plain_kernel

BY_NAME = {case.name: case for case in ARCHITECTURES}
NAMES = ("deep", "dropped", "resnet", "conv-2d", "graph")


def _last_hidden(net):
    return [name for name in net.layers if name != "output"][-1]


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
def test_kernels_of_pre_activations_are_those_of_their_jacobians(name, x64):
    case = BY_NAME[name]
    params, x = random_params(case), inputs(case, 3)
    view = PreActivations(case.net, _last_hidden(case.net), (0, 1))
    below = {layer: params[layer] for layer in view.layers}
    expected = plain_kernel(view.apply, below, x)
    np.testing.assert_allclose(empirical_ntk(view, params, x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["deep", "graph"])
def test_hessian_norms_of_pre_activations_are_full(name, x64):
    case = BY_NAME[name]
    params, x = random_params(case), inputs(case, 1)[0]
    view = PreActivations(case.net, _last_hidden(case.net), (1,))
    full, _ = full_hessian(view, {layer: params[layer] for layer in view.layers}, x)
    norm = np.abs(np.linalg.eigvalsh(full)).max()
    assert hessian_norm(view, params, jnp.asarray(x)).value == pytest.approx(norm, rel=1e-9)


def test_first_pre_activations_are_linear_at_any_width(x64):
    net = FullyConnected(width=3, depth=2, activation="tanh", use_bias=False)
    params, x = net.init(jax.random.key(0), (4,)), jnp.ones(4)
    estimate = hessian_norm(PreActivations(net, "hidden1"), params, x)
    assert estimate.value == 0
    assert estimate.converged


def test_the_pre_activations_of_the_output_are_the_outputs(x64):
    case = BY_NAME["graph"]
    params, x = random_params(case), inputs(case, 3)
    view = PreActivations(case.net, "output", (0, 1))
    np.testing.assert_allclose(empirical_ntk(view, params, x), empirical_ntk(case.net, params, x), rtol=1e-12)


def test_unconnected_layers_do_not_affect_a_group():
    net = BY_NAME["graph"].net
    assert isinstance(net, DAGNetwork)
    assert set(PreActivations(net, "b").layers) == {"b"}
    assert set(PreActivations(net, "c").layers) == {"a", "b", "c"}
    mirrored = Mirrored(FullyConnected(width=4, depth=2, activation="tanh", use_bias=False))
    assert set(PreActivations(mirrored, "hidden2").layers) == {"hidden1", "hidden2"}


@pytest.mark.parametrize(
    ("layer", "units", "field"), [("hidden9", (0,), "layer"), ("hidden1", (), "units"), ("hidden1", (-1,), "units")]
)
def test_layers_and_units_that_do_not_exist_are_refused(layer, units, field):
    with pytest.raises(InvalidInput) as error:
        PreActivations(FullyConnected(width=4, use_bias=False), layer, units)
    assert error.value.field == field


def test_a_unit_beyond_the_layer_is_refused():
    net = PreActivations(FullyConnected(width=4, use_bias=False), "hidden1", (4,))
    with pytest.raises(InvalidInput, match="from 0 to 3"):
        net.apply(random_params(Case("", net.net, (2,))), jnp.ones((1, 2)))
