"""Refusals of impossible settings, with the name of the field or of a graph's group."""

import jax
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import (
    Bottleneck,
    ConvNet,
    Convolution,
    DAGNetwork,
    DenseNet,
    Edge,
    FullyConnected,
    Group,
    MixedNet,
    ResNet,
)
from ntk_core.networks.spec import ArchitectureSpec

EVERYWHERE = [
    ("width", {"width": 0}),
    ("width", {"width": 2.5}),
    ("width", {"width": True}),
    ("depth", {"depth": 0}),
    ("depth", {"depth": 65}),
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
STACKS = [FullyConnected, Bottleneck, ConvNet, MixedNet, ResNet, DenseNet]


@pytest.mark.parametrize(("field", "settings"), EVERYWHERE, ids=lambda value: str(value))
@pytest.mark.parametrize("network", STACKS, ids=lambda network: network.__name__)
def test_settings_that_all_networks_take(network, field, settings):
    with pytest.raises(InvalidInput) as error:
        network(**settings)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("network", "field", "settings"),
    [
        (FullyConnected, "width", {"width": (3, 4), "depth": 3}),
        (FullyConnected, "symmetric", {"width": 5, "symmetric": True}),
        (FullyConnected, "symmetric", {"depth": 2, "symmetric": True}),
        (Bottleneck, "bottleneck_width", {"bottleneck_width": 0}),
        (Bottleneck, "bottleneck_layer", {"bottleneck_layer": 4}),
        (Bottleneck, "bottleneck_activation", {"bottleneck_activation": "sine"}),
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
        (DenseNet, "drop_probability", {"drop_probability": -0.1}),
        (DenseNet, "drop_probability", {"drop_probability": float("nan")}),
        (DenseNet, "output_signs", {"drop_probability": 0.1, "output_signs": True}),
        (DAGNetwork, "width", {"width": 0}),
        (DAGNetwork, "use_bias", {"use_bias": (True, False)}),
        (DAGNetwork, "trained", {"trained": "middle"}),
        (DAGNetwork, "parameterization", {"parameterization": "mup"}),
    ],
)
def test_settings_of_one_network(network, field, settings):
    with pytest.raises(InvalidInput) as error:
        network(**settings)
    assert error.value.field == field


IN, OUT = "input", "output"


@pytest.mark.parametrize(
    ("names", "edges", "shown"),
    [
        ("ab", [(IN, "a"), ("a", "b"), ("b", "a"), ("b", OUT)], "→"),
        ("a", [(IN, "a"), ("a", "a"), ("a", OUT)], "a → a"),
        ("ab", [(IN, "a"), ("b", "a"), ("a", OUT)], "group 'b'"),
        ("ab", [(IN, "a"), (IN, "b"), ("a", OUT)], "group 'b'"),
        ("a", [(IN, "a")], "'output'"),
        ("a", [("a", OUT)], "'input'"),
        ("a", [(IN, "a"), ("a", OUT), ("a", "z")], "z"),
        ("a", [(IN, "a"), ("z", "a"), ("a", OUT)], "z"),
        ("a", [(IN, "a"), ("a", IN), ("a", OUT)], "input"),
        ("a", [(IN, "a"), (OUT, "a"), ("a", OUT)], "output"),
        ("a", [(IN, "a"), (IN, "a"), ("a", OUT)], "input → a"),
        ("aa", [(IN, "a"), ("a", OUT)], "a"),
        ("a", [(IN, "a", 1.0), ("a", OUT)], "input-a"),
    ],
)
def test_impossible_graphs_are_refused_by_the_name_of_the_group(names, edges, shown):
    with pytest.raises(InvalidInput) as error:
        DAGNetwork(groups=tuple(Group(name) for name in names), edges=tuple(Edge(*edge) for edge in edges))
    assert error.value.field.startswith(("groups", "edges"))
    assert shown in str(error.value)


@pytest.mark.parametrize(
    ("group", "field"),
    [
        (("input",), "groups"),
        (("",), "groups"),
        (("a", 0), "groups.a.size"),
        (("a", 3, "sine"), "groups.a.activation"),
    ],
)
def test_impossible_groups_are_refused(group, field):
    with pytest.raises(InvalidInput) as error:
        DAGNetwork(groups=(Group(*group),), edges=(Edge(IN, group[0]), Edge(group[0], OUT)))
    assert error.value.field == field


@pytest.mark.parametrize(
    ("net", "shape", "field"),
    [
        (FullyConnected(width=4), (), "input_shape"),
        (FullyConnected(width=4), (0,), "input_shape"),
        (ConvNet(width=4), (8,), "input_shape"),
        (ConvNet(width=4), (8, 8), "input_shape"),
        (ConvNet(width=4, dimensions=1), (8, 8, 3), "input_shape"),
        (ConvNet(width=4, kernel_size=5), (4, 8, 3), "kernel_size"),
        (ConvNet(width=4, pool_size=3), (8, 8, 3), "pool_size"),
        (ConvNet(width=4, depth=2, pool_size=2), (4, 4, 3), "kernel_size"),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_are_refused(net, shape, field):
    for asked in (
        lambda: net.init(jax.random.key(0), shape),
        lambda: net.num_params(shape),
        lambda: net.min_width(shape),
    ):
        with pytest.raises(InvalidInput) as error:
            asked()
        assert error.value.field == field


def test_equal_networks_share_compiled_programs():
    assert hash(ConvNet(width=4)) == hash(ConvNet(width=4))
    assert DAGNetwork() == DAGNetwork()
    assert FullyConnected(width=4) != FullyConnected(width=4, trained="last")


def test_a_convolution_refuses_what_its_network_cannot_say():
    with pytest.raises(InvalidInput, match="dimensions"):
        Convolution(3, dimensions=4)


def test_hidden_layers_have_biases_by_default_everywhere():
    assert ArchitectureSpec().use_bias
    for kind in (FullyConnected, ConvNet, ResNet, DenseNet, Bottleneck, MixedNet, DAGNetwork):
        net, shape = kind(width=4), (4, 4, 2)
        biased = [name for name, layer in net.layers.items() if getattr(layer, "use_bias", False)]
        assert biased == [name for name in net.layers if name != "output"]
        assert kind(width=4, use_bias=False).num_params(shape) < net.num_params(shape)
