"""Explicit graphs against architectures of the same shape: outputs, kernels, Hessian norms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import ConvNet, DAGNetwork, DenseNet, FullyConnected, ResNet
from ntk_core.networks.graphs import (
    FlattenInputBlock,
    dense_graph,
    fully_connected_graph,
    graph_steps,
    parse_composition,
    residual_graph,
    shared_graph,
)
from tests.cases import Case, inputs, random_params

SETTINGS = {"width": 5, "num_outputs": 2, "activation": "tanh"}


def of(graph, **settings):
    return DAGNetwork(groups=graph.groups, edges=graph.edges, **SETTINGS, **settings)


PAIRS = {
    "fully connected": (FullyConnected(depth=3, use_bias=True, **SETTINGS), fully_connected_graph(3), (4,)),
    "densenet": (DenseNet(depth=3, output="swish", **SETTINGS), dense_graph(3), (4,)),
    "dropped": (DenseNet(depth=3, drop_probability=0.5, **SETTINGS), dense_graph(3, 0.5), (4,)),
    "resnet": (ResNet(depth=4, **SETTINGS), residual_graph(4), (4,)),
    "resnet every two": (ResNet(depth=5, skip_every=2, **SETTINGS), residual_graph(5, 2), (4,)),
}


def test_chain_of_groups_has_the_steps_of_its_layers():
    """Compositions against graphs whose edges form a chain."""
    layers = [{"kind": "dense"}, {"kind": "activation", "function": "tanh"}] * 3
    graph, composition = fully_connected_graph(3), parse_composition({"layers": layers})
    flat, *chain = graph_steps(graph, 5, "tanh", False)
    assert isinstance(flat.block, FlattenInputBlock)
    assert [(step.block.kind, step.drops) for step in chain] == [(s.block.kind, s.drops) for s in composition.steps]
    assert [step.sources for step in chain] == [(number + 1,) for number in range(len(chain))]
    assert [step.sources for step in composition.steps] == [(number,) for number in range(len(chain))]


QUICK = ("densenet",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PAIRS]
)
def test_written_out_graph_equals_its_architecture(name, x64):
    net, graph, shape = PAIRS[name]
    dag = of(graph, output=net.output, use_bias=net.use_bias)
    params, x = random_params(Case("", net, shape)), inputs(Case("", net, shape), 3)
    renamed = dict(zip(dag.depths, params.values(), strict=True))
    np.testing.assert_allclose(dag.apply(renamed, x), net.apply(params, x), rtol=1e-10, atol=1e-12)
    expected = empirical_ntk(net, params, x)
    np.testing.assert_allclose(empirical_ntk(dag, renamed, x), expected, rtol=1e-10, atol=1e-10)
    norm = hessian_norm(net, params, x[0]).value
    assert hessian_norm(dag, renamed, x[0]).value == pytest.approx(norm, rel=1e-10)
    assert dag.min_width(shape) == net.min_width(shape)
    assert dag.in_degree_range(renamed) == net.in_degree_range(params)


def test_shared_weights_are_a_convolution(x64):
    """Equal up to the order of positions in the readout."""
    net, dag = ConvNet(depth=2, **SETTINGS), of(shared_graph(2))
    case = Case("", net, (3, 4, 2))
    params, x = random_params(case), inputs(case, 2)
    by_channel = np.asarray(params["output"]["weight"]).reshape(5, 12, 2)
    by_position = jnp.asarray(np.moveaxis(by_channel, 0, 1).reshape(60, 2))
    renamed = {"a": params["hidden1"], "b": params["hidden2"], "output": {"weight": by_position}}
    np.testing.assert_allclose(dag.apply(renamed, x), net.apply(params, x), rtol=1e-10, atol=1e-12)
    expected = empirical_ntk(net, params, x)
    np.testing.assert_allclose(empirical_ntk(dag, renamed, x), expected, rtol=1e-10, atol=1e-10)
    assert hessian_norm(dag, renamed, x[0]).value == pytest.approx(hessian_norm(net, params, x[0]).value, rel=1e-10)
    assert dag.in_degree_range(renamed) == (45, 60)


def test_random_draws_are_those_of_the_architecture(x64):
    """Equal keys give equal masks and weights, so presets of both kinds have comparable runs."""
    net, graph, shape = PAIRS["dropped"]
    ours, theirs = (each.init(jax.random.key(3), shape) for each in (of(graph), net))
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        np.testing.assert_array_equal(a["mask"], b["mask"])
        np.testing.assert_array_equal(a["weight"], b["weight"])
