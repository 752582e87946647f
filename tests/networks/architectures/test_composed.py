"""Networks of registered layers against equal architectures with the same parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.networks.architectures import Bottleneck, Composed, ConvNet, DenseNet, FullyConnected, ResNet
from ntk_core.networks.graphs import composition_examples, parse_composition
from tests.cases import FAST_COMPILE, Case, random_params
from tests.plain_derivatives import full_hessian

M, C = 6, 2


X = np.random.default_rng(0).standard_normal((4, 5))
IMAGES = np.random.default_rng(1).standard_normal((3, 4, 4, 2))


def dense(width: Any = "m", bias: bool = True, function: str = "tanh") -> list[dict[str, Any]]:
    return [{"kind": "dense", "width": width, "bias": bias}, {"kind": "activation", "function": function}]


def convolution(bias: bool = False) -> list[dict[str, Any]]:
    return [{"kind": "convolution", "width": "m", "bias": bias}, {"kind": "activation", "function": "tanh"}]


SHARED: dict[str, Any] = {"width": M, "num_outputs": C, "activation": "tanh"}
EQUAL = [
    (FullyConnected(depth=2, use_bias=True, **SHARED), [*dense(), *dense()], X),
    (
        FullyConnected(depth=2, **{**SHARED, "width": (2 * M, M), "output": "swish", "use_bias": False}),
        [*dense("2m", False), *dense(bias=False)],
        X,
    ),
    (Bottleneck(depth=3, bottleneck_width=2, use_bias=True, **SHARED), [*dense(), *dense(2), *dense()], X),
    (
        ResNet(depth=3, use_bias=False, **SHARED),
        [*dense(bias=False), *[{"kind": "residual", "layers": dense(bias=False)}] * 2],
        X,
    ),
    (DenseNet(depth=2, use_bias=False, **SHARED), [{"kind": "concat", "layers": dense(bias=False)}] * 2, X),
    (ConvNet(depth=2, use_bias=False, **SHARED), [*convolution(), *convolution()], IMAGES),
    (
        ConvNet(depth=1, pool_size=2, readout="global-average", use_bias=True, **SHARED),
        [*convolution(True), {"kind": "average-pool", "size": 2}, {"kind": "global-average"}],
        IMAGES,
    ),
]


def equal_pair(index: int, **changes: Any):
    """(network, the same as a composition, inputs, parameters of both)."""
    net, layers, x = EQUAL[index]
    net = replace(net, **changes)
    own = Composed(parse_composition({"layers": layers}), M, C, net.output, net.parameterization)
    return net, own, x, random_params(Case("", net, x.shape[1:]))


@pytest.mark.parametrize(
    ("index", "parameterization"), [*((index, "ntk") for index in range(len(EQUAL))), (2, "lecun")]
)
def test_a_composition_is_the_network_that_it_writes_down(index, parameterization, x64):
    net, own, x, params = equal_pair(index, parameterization=parameterization)
    assert own.layers == net.layers
    assert own.layer_input_shapes(x.shape[1:]) == net.layer_input_shapes(x.shape[1:])
    both = jax.jit(lambda w: (own.apply(w, x), net.apply(w, x)), compiler_options=FAST_COMPILE)
    found, expected = both(params)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_composition_draws_the_parameters_of_its_network():
    net, own, x, _ = equal_pair(0)
    drawn, expected = (jax.jit(each.init, static_argnums=1)(jax.random.key(3), x.shape[1:]) for each in (own, net))
    jax.tree.map(np.testing.assert_array_equal, drawn, expected)


def test_the_hessian_norm_is_that_of_the_dense_hessian(x64):
    layers = [*dense(), {"kind": "concat", "layers": [*dense(2), {"kind": "scale", "factor": 0.5}]}]
    layers += [{"kind": "residual", "layers": dense(6, function="softplus")}]
    net = Composed(parse_composition({"layers": layers}), 4, C, "swish")
    params, x = random_params(Case("", net, (5,))), jnp.asarray(X[0])
    expected = np.abs(np.linalg.eigvalsh(full_hessian(net, params, x, 1)[0])).max()
    found = hessian_norm(net, params, x, 1, tolerance=1e-9)
    assert found.converged
    assert found.value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("trained", ["first", "hidden", "last"])
def test_the_first_layers_are_those_that_see_the_input(trained, x64):
    layers = [{"kind": "concat", "layers": dense()}, *dense()]
    net = Composed(parse_composition({"layers": layers}), M, C, trained=trained)
    moving = {name for name, layer in net.layers.items() if layer.trainable}
    # The second layer takes the input and the first layer, so it is not a first layer.
    assert moving == {"first": {"hidden1"}, "hidden": {"hidden1", "hidden2"}, "last": {"output"}}[trained]


def test_layers_that_do_not_fit_are_named_by_their_place():
    with pytest.raises(InvalidInput, match=r"layers.1.kind: convolution"):
        Composed(composition_examples()["convolution"], 8).init(jax.random.key(0), (5,))


def test_kinked_layers_have_the_fully_connected_hessian():
    composed = Composed(parse_composition({"layers": dense(function="relu")}), 4)
    params = random_params(Case("", composed, (5,)))
    full, _ = full_hessian(composed, params, jnp.ones(5))
    assert hessian_norm(composed, params, jnp.ones(5)).value == pytest.approx(np.linalg.norm(full, 2), rel=1e-4)
