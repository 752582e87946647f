"""Networks of registered layers are the networks that they make up, with the same parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.architectures import Bottleneck, Composed, ConvNet, DenseNet, FullyConnected, ResNet
from ntk_core.compositions import composition_examples, parse_composition
from ntk_core.errors import InvalidInput
from ntk_core.experiments import layer_sizes
from ntk_core.experiments._networks import build_network
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.spec_parts import ArchitectureSpec

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
        FullyConnected(depth=2, **{**SHARED, "width": (2 * M, M), "output": "swish"}),
        [*dense("2m", False), *dense(bias=False)],
        X,
    ),
    (Bottleneck(depth=3, bottleneck_width=2, use_bias=True, **SHARED), [*dense(), *dense(2), *dense()], X),
    (ResNet(depth=3, **SHARED), [*dense(bias=False), *[{"kind": "residual", "layers": dense(bias=False)}] * 2], X),
    (DenseNet(depth=2, **SHARED), [{"kind": "concat", "layers": dense(bias=False)}] * 2, X),
    (ConvNet(depth=2, **SHARED), [*convolution(), *convolution()], IMAGES),
    (
        ConvNet(depth=1, pool_size=2, readout="global-average", use_bias=True, **SHARED),
        [*convolution(True), {"kind": "average-pool", "size": 2}, {"kind": "global-average"}],
        IMAGES,
    ),
]
IDS = [type(net).__name__ for net, _, _ in EQUAL]


@pytest.mark.parametrize("parameterization", ["ntk", "lecun"])
@pytest.mark.parametrize(("net", "layers", "x"), EQUAL, ids=IDS)
def test_a_composition_is_the_network_that_it_writes_down(net, layers, x, parameterization, x64):
    net = type(net)(**{**vars_of(net), "parameterization": parameterization})
    own = Composed(parse_composition({"layers": layers}), M, C, net.output, parameterization)
    params = net.init(jax.random.key(3), x.shape[1:])
    drawn = own.init(jax.random.key(3), x.shape[1:])
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, params)
    np.testing.assert_allclose(own.apply(params, x), net.apply(params, x), rtol=1e-12, atol=1e-12)
    jax.tree.map(np.testing.assert_array_equal, drawn, params)


def vars_of(net) -> dict[str, Any]:
    return {name: getattr(net, name) for name in net.__dataclass_fields__}


MIXED = parse_composition(
    {
        "layers": [
            *convolution(True),
            {"kind": "concat", "layers": [*convolution(), {"kind": "scale", "factor": 0.5}]},
            {"kind": "average-pool"},
            {"kind": "convolution", "width": 3, "kernel_size": 2, "padding": "zero", "stride": 2},
            *dense("0.5m"),
            {"kind": "residual", "layers": [*dense("2m", function="softplus"), *dense("0.5m")]},
        ]
    }
)


@pytest.mark.parametrize("output", ["linear", "softmax"])
def test_the_structured_kernel_is_that_of_explicit_jacobians(output, x64):
    net = Composed(MIXED, M, C, output)
    params = net.init(jax.random.key(0), (4, 4, 2))
    expected = empirical_ntk(lambda w, x: net.apply(w, x), params, IMAGES)
    np.testing.assert_allclose(empirical_ntk(net, params, IMAGES), expected, rtol=1e-10, atol=1e-10)


def test_the_hessian_norm_is_that_of_the_dense_hessian(x64):
    net = Composed(MIXED, 2, C, "swish")
    params = net.init(jax.random.key(0), (4, 4, 2))
    flat, restore = jax.flatten_util.ravel_pytree(params)
    hessian = jax.hessian(lambda w: net.apply(restore(w), IMAGES[:1])[0, 1])(flat)
    expected = np.abs(np.linalg.eigvalsh(hessian)).max()
    found = hessian_norm(net, params, jnp.asarray(IMAGES[0]), 1, tolerance=1e-9)
    assert found.converged
    assert found.value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("trained", ["first", "hidden", "last"])
def test_the_first_layers_are_those_that_see_the_input(trained, x64):
    layers = [{"kind": "concat", "layers": dense()}, *dense()]
    net = Composed(parse_composition({"layers": layers}), M, C, trained=trained)
    moving = {name for name, layer in net.layers.items() if layer.trainable}
    # The second one sees the input beside the first: it is not of the first layers.
    assert moving == {"first": {"hidden1"}, "hidden": {"hidden1", "hidden2"}, "last": {"output"}}[trained]


@pytest.mark.parametrize("name", composition_examples())
def test_sizes_are_counted_as_the_network_has_them(name):
    shape = (4, 4, 3) if name == "convolution" else (5,)
    architecture = ArchitectureSpec(kind="composed", composition=composition_examples()[name])
    net = build_network(architecture, 8, C, "linear")
    sizes = layer_sizes(architecture, 8, shape, C)
    assert sum(size.num_params for size in sizes) == net.num_params(shape)
    assert [size.features for size in sizes[:-1]] == list(architecture.widths(8))


def test_layers_that_do_not_fit_are_named_by_their_place():
    with pytest.raises(InvalidInput, match=r"layers.1.kind: convolution"):
        Composed(composition_examples()["convolution"], 8).init(jax.random.key(0), (5,))
