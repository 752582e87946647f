"""Explicit graphs and compositions against architectures of the same shape."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.networks.architectures import (
    Bottleneck,
    Composed,
    ConvNet,
    DAGNetwork,
    DenseNet,
    FullyConnected,
    ResNet,
)
from ntk_core.networks.graphs import (
    dense_graph,
    fully_connected_graph,
    parse_composition,
    residual_graph,
    shared_graph,
)
from tests.cases import Case, inputs, random_params

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

SETTINGS = {"width": 5, "num_outputs": 2, "activation": "tanh"}
PAIRS = {
    "fully connected": (
        FullyConnected(depth=3, use_bias=True, **SETTINGS),
        fully_connected_graph(3),
        (4,),
    ),
    "densenet": (DenseNet(depth=3, output="swish", **SETTINGS), dense_graph(3), (4,)),
    "dropped": (DenseNet(depth=3, drop_probability=0.5, **SETTINGS), dense_graph(3, 0.5), (4,)),
    "resnet every two": (ResNet(depth=5, skip_every=2, **SETTINGS), residual_graph(5, 2), (4,)),
    "convolutions": (ConvNet(depth=2, **SETTINGS), shared_graph(2), (3, 4, 2)),
}
TANH = {"kind": "activation", "function": "tanh"}
DENSE, NARROW = ([{"kind": "dense", "width": width, "bias": True}, TANH] for width in ("m", 2))
RESIDUAL, CONCAT = ({"kind": kind, "layers": DENSE} for kind in ("residual", "concat"))
POOLED = ConvNet(depth=1, pool_size=2, readout="global-average", **SETTINGS)
POOLING = [{"kind": "average-pool", "size": 2}, {"kind": "global-average"}]
COMPOSED = {
    "bottleneck": (
        Bottleneck(depth=3, bottleneck_width=2, **SETTINGS),
        [*DENSE, *NARROW, *DENSE],
        (4,),
    ),
    "resnet": (ResNet(depth=3, **SETTINGS), [*DENSE, RESIDUAL, RESIDUAL], (4,)),
    "lecun densenet": (
        DenseNet(depth=2, parameterization="lecun", **SETTINGS),
        [CONCAT, CONCAT],
        (4,),
    ),
    "pooled": (
        POOLED,
        [{"kind": "convolution", "width": "m", "bias": True}, TANH, *POOLING],
        (4, 4, 2),
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composition_equals_its_architecture(name, x64):
    net, layers, shape = COMPOSED[name]
    own = Composed(parse_composition({"layers": layers}), 5, 2, net.output, net.parameterization)
    assert own.layers == net.layers
    assert own.layer_input_shapes(shape) == net.layer_input_shapes(shape)
    params, x = net.init(jax.random.key(3), shape), inputs(Case("", net, shape), 3)
    jax.tree.map(np.testing.assert_array_equal, own.init(jax.random.key(3), shape), params)
    np.testing.assert_allclose(own.apply(params, x), net.apply(params, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("trained", ["first", "hidden", "last"])
def test_the_first_layers_are_those_that_see_the_input(trained):
    net = Composed(parse_composition({"layers": [CONCAT, *DENSE]}), 5, 2, trained=trained)
    moving = {name for name, layer in net.layers.items() if layer.trainable}
    # The second layer takes the input and the first layer, so it is not a first layer.
    assert (
        moving
        == {"first": {"hidden1"}, "hidden": {"hidden1", "hidden2"}, "last": {"output"}}[trained]
    )


def written_out(net, graph):
    return DAGNetwork(
        groups=graph.groups, edges=graph.edges, output=net.output, use_bias=net.use_bias, **SETTINGS
    )


@pytest.mark.parametrize("name", PAIRS)
def test_written_out_graph_equals_its_architecture(name, x64):
    net, graph, shape = PAIRS[name]
    dag = written_out(net, graph)
    params, x = random_params(Case("", net, shape)), inputs(Case("", net, shape), 3)
    renamed = dict(zip(dag.depths, params.values(), strict=True))
    if name == "convolutions":  # the graph's readout has another order of positions
        by_channel = np.asarray(params["output"]["weight"]).reshape(5, 12, 2)
        renamed["output"] = {"weight": jnp.asarray(np.moveaxis(by_channel, 0, 1).reshape(60, 2))}
        assert dag.in_degree_range(renamed) == (45, 60)
    else:
        assert dag.min_width(shape) == net.min_width(shape)
        assert dag.in_degree_range(renamed) == net.in_degree_range(params)
        # Equal draws, for comparable runs.
        ours, theirs = (each.init(jax.random.key(3), shape) for each in (dag, net))
        jax.tree.map(np.testing.assert_array_equal, list(ours.values()), list(theirs.values()))
    np.testing.assert_allclose(dag.apply(renamed, x), net.apply(params, x), rtol=1e-10, atol=1e-12)
