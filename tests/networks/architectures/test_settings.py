"""Refusals of impossible settings, with the name of the field."""

from functools import partial
from typing import Any

import jax
import pytest
from pydantic import ValidationError

from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import (
    Adapted,
    Assembly,
    Attention,
    Bottleneck,
    ConvNet,
    Convolution,
    DAGNetwork,
    DenseNet,
    FullyConnected,
    MixedNet,
    PreActivations,
    ResNet,
    Transformer,
)

EVERYWHERE = [
    ("width", {"width": 0}),
    ("width", {"width": 2.5}),
    ("depth", {"depth": 0}),
    ("num_outputs", {"num_outputs": 0}),
    ("activation", {"activation": "sine"}),
    ("output", {"output": "argmax"}),
    ("parameterization", {"parameterization": "mup"}),
    ("trained", {"trained": "middle"}),
    ("gain", {"gain": float("inf")}),
    ("use_bias", {"use_bias": "yes"}),
    ("use_bias", {"use_bias": (True,) * 9}),
    ("output_signs", {"output_signs": 1}),
]
OF_ONE = [
    (FullyConnected, "width", {"width": (3, 4), "depth": 3}),
    (FullyConnected, "symmetric", {"width": 5, "symmetric": True}),
    (FullyConnected, "symmetric", {"depth": 2, "symmetric": True}),
    (Bottleneck, "bottleneck_width", {"bottleneck_width": 0}),
    (Bottleneck, "bottleneck_activation", {"bottleneck_activation": "sine"}),
    (Bottleneck, "bottleneck_layer", {"bottleneck_layer": 4}),
    (ConvNet, "kernel_size", {"kernel_size": 0}),
    (ConvNet, "padding", {"padding": "reflect"}),
    (ConvNet, "dimensions", {"dimensions": 3}),
    (ConvNet, "readout", {"readout": "max"}),
    (ConvNet, "pool_size", {"pool_size": 0}),
    (MixedNet, "num_conv", {"num_conv": 2}),
    (MixedNet, "depth", {"depth": 1}),
    (ResNet, "width", {"width": (3, 3, 3)}),
    (ResNet, "skip_every", {"skip_every": 3}),
    (DenseNet, "drop_probability", {"drop_probability": 1.0}),
    (DenseNet, "drop_probability", {"drop_probability": float("nan")}),
    (DenseNet, "output_signs", {"drop_probability": 0.1, "output_signs": True}),
    (DAGNetwork, "width", {"width": 0}),
    (DAGNetwork, "use_bias", {"use_bias": (True, False)}),
    (Convolution, "dimensions", {"num_features": 3, "dimensions": 4}),
]


ADAPTED: list[tuple[str, dict[str, Any]]] = [
    ("base", {"base": "convnet"}),
    ("adapter_rank", {"adapter_rank": 0}),
    ("rank_exponent", {"rank_exponent": 1.5}),
    ("adapted_layers", {"adapted_layers": (4,)}),
    ("trained", {"trained": "first"}),
    ("depth", {"base": "bottleneck", "depth": 1, "adapted_layers": (1,)}),
]
OF_ONE += [
    (kind, "output", {"output": "argmax"})
    for kind in (Bottleneck, ConvNet, MixedNet, ResNet, DenseNet)
]
OF_ONE += [(Adapted, field, {"depth": 3, **settings}) for field, settings in ADAPTED]
OF_ONE += [
    (ArchitectureSpec, field, {"kind": "adapted", "depth": 3, **settings})
    for field, settings in ADAPTED[3:]
]
OF_ONE += [
    (Assembly, "sub_model", {"width": 4, "sub_model": model})
    for model in ("forest", 3, (len,), (len, 2))
]
OF_ONE += [
    (PreActivations, field, {"net": FullyConnected(width=4), "layer": layer, "units": units})
    for field, layer, units in (
        ("layer", "hidden9", (0,)),
        ("units", "hidden1", ()),
        ("units", "hidden1", (-1,)),
    )
]
OF_ONE += [
    (Attention, "num_heads", {"num_heads": 0}),
    (Attention, "score_exponent", {"score_exponent": 1.5}),
    (Transformer, "positions", {"positions": "sines"}),
    (Transformer, "mlp_factor", {"mlp_factor": 0}),
    (ArchitectureSpec, "width_is", {"kind": "attention", "width_is": "mlp_width"}),
]


def refused(make, *given, **settings):
    """Return the field named by a refusal, and its words."""
    with pytest.raises((InvalidInput, ValidationError)) as error:
        make(*given, **settings)
    return getattr(error.value, "field", ""), str(error.value)


@pytest.mark.parametrize(
    ("network", "field", "settings"),
    [*OF_ONE, *((FullyConnected, *bad) for bad in EVERYWHERE)],
    ids=str,
)
def test_impossible_settings_are_refused_by_name(network, field, settings):
    found, words = refused(network, **settings)
    assert found == field or (network is ArchitectureSpec and field in words)


@pytest.mark.parametrize(
    ("net", "shape", "field"),
    [
        (Attention(), (5,), "input_shape"),
        (FullyConnected(width=4), (), "input_shape"),
        (ConvNet(width=4), (8,), "input_shape"),
        (ConvNet(width=4, dimensions=1), (8, 8, 3), "input_shape"),
        (ConvNet(width=4, kernel_size=5), (4, 8, 3), "kernel_size"),
        (ConvNet(width=4, pool_size=3), (8, 8, 3), "pool_size"),
        (ConvNet(width=4, depth=2, pool_size=2), (4, 4, 3), "kernel_size"),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_are_refused(net, shape, field):
    for asked in (partial(net.init, jax.random.key(0)), net.num_params, net.min_width):
        assert refused(asked, shape)[0] == field


def test_equal_networks_share_compiled_programs():
    assert hash(ConvNet(width=4)) == hash(ConvNet(width=4))
    assert DAGNetwork() == DAGNetwork()
    assert FullyConnected(width=4) != FullyConnected(width=4, trained="last")
