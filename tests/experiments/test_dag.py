"""Networks on graphs: refusals of the spec, and measurements of the experiment."""

import json
import math

import jax.numpy as jnp
import pytest

from linearity_lab.data import load_dataset
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.dag.point import DAGResult, DAGSpec, layer_sizes_of
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import counts_of, peak_bytes, run_summary
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.training import TrainingSpec
from ntk_core.dynamics import eigenvalues
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DAGNetwork
from ntk_core.networks.graphs import (
    Edge,
    Graph,
    Group,
    dense_graph,
    example_graphs,
    fully_connected_graph,
)
from ntk_core.networks.keys import initial_key
from tests.running import result_of

DATA = DatasetSpec(num_samples=6, num_classes=2, input_dim=4)
SHORT = TrainingSpec(max_steps=20, num_records=3)
SMALL = DAGSpec(
    dataset=DATA, graph=dense_graph(2, 0.3), widths=(8, 16), num_seeds=1, training=SHORT
)


@pytest.fixture(scope="module")
def measured() -> DAGResult:
    """One result with all measurements."""
    return result_of(
        with_settings(SMALL, {"pre_activations": True, "ball_radius": 0.5, "widths": [8]})
    )


def drawn(spec, width):
    """Network, parameters and data of a spec's first seed."""
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    graph = {"groups": spec.graph.groups, "edges": spec.graph.edges}
    net = DAGNetwork(
        width=width, **graph, num_outputs=2, activation=spec.activation, use_bias=False
    )
    return net, net.init(initial_key(spec.seed, width), data.input_shape), jnp.asarray(data.x)


def test_run_measures_kernel_hessian_and_in_degrees(measured):
    point = measured.points[0]
    (found,) = point.of("drawn", "linear")
    net, params, x = drawn(measured.spec, point.width)
    assert (found.min_in_degree, found.max_in_degree) == net.in_degree_range(params)
    norms = [hessian_norm(net, params, row).value for row in x[:2]]
    assert found.hessian_norm == pytest.approx(sum(norms) / 2, rel=1e-3)
    kernel = empirical_ntk(net, params, x)
    assert found.smallest_eigenvalue[0] == pytest.approx(eigenvalues(kernel)[-1], rel=1e-3)
    assert found.gradient_norm == pytest.approx(
        float(jnp.einsum("iiaa->ia", kernel)[:, 0].mean()), rel=1e-4
    )
    assert point.num_params == net.num_params((4,))


def test_first_layers_are_linear_and_last_is_the_output(measured):
    (point,) = measured.points
    (found,) = point.of("drawn", "linear")
    by_group = {layer.group: layer for layer in found.layers}
    assert (by_group["a"].depth, by_group["a"].hessian_norm, by_group["a"].change) == (1, 0, 0)
    assert min(by_group["b"].hessian_norm, by_group["b"].change) > 0
    assert by_group["output"].change == pytest.approx(found.sup_change, rel=1e-3)
    assert found.ball_eigenvalue < found.smallest_eigenvalue[0]
    assert math.isnan(found.gradient_bound)  # tanh is not homogeneous
    text = run_summary(measured.spec, measured.points)
    assert "drawn graph: wide. The smallest is" in text
    assert "ΔK" in text


@pytest.mark.slow
def test_fully_connected_graph_trains_like_the_network():
    """Two experiments, one network: same seed, data, rate and loss."""
    settings = {
        "dataset": DATA,
        "widths": (12,),
        "num_seeds": 1,
        "training": SHORT,
        "outputs": ("swish",),
    }
    graph = DAGSpec(graph=fully_connected_graph(2), num_hessians=0, **settings)
    plain = KernelChangeSpec(
        architecture=ArchitectureSpec(depth=2, activation="tanh", use_bias=False), **settings
    )
    (ours,) = result_of(graph).points[0].of("drawn", "swish")
    (theirs,) = result_of(plain).points[0].of("swish")
    assert ours.steps == theirs.steps
    assert ours.learning_rate == pytest.approx(theirs.learning_rate, rel=1e-5)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
    assert ours.change == pytest.approx(theirs.change, rel=1e-3, abs=1e-6)


@pytest.mark.slow  # runs the experiment again
def test_relu_graphs_have_their_hessian_almost_everywhere():
    spec = with_settings(SMALL, {"activation": "relu", "widths": [16]})
    points = result_of(spec).points
    (run,) = points[0].runs
    assert run.hessian_norm > 0
    assert run.gradient_norm > run.gradient_bound > 0
    assert "With ReLU, ‖H‖ is that of the almost-everywhere Hessian" in run_summary(spec, points)
    assert with_settings(spec, {"num_hessians": 0}).almost_everywhere == ""


@pytest.mark.parametrize("name", ["densenet-dropped", "shared-weights", "unequal"])
def test_sizes_are_those_of_the_network(name):
    graph = example_graphs()[name]
    shape = (8, 8, 3)
    spec = DAGSpec(dataset=DatasetSpec(name="cifar2", num_samples=10), graph=graph, use_bias=True)
    net = DAGNetwork(width=9, groups=graph.groups, edges=graph.edges, num_outputs=2, use_bias=True)
    sizes = layer_sizes_of(spec, graph, 9)
    assert sum(size.num_params for size in sizes) == net.num_params(shape)
    assert [size.features * size.positions for size in sizes] == [
        math.prod(net.layers[name].output_shape(found))
        for name, found in net.layer_input_shapes(shape).items()
    ]


def test_estimates_count_masked_hessians():
    large = with_settings(SMALL, {"widths": [1024]})
    dense = with_settings(large, {"graph": str(dense_graph(2))})
    held, masked = (peak_bytes(counts_of(each, "width=1024")) for each in (dense, large))
    assert held < masked / 3


def test_graphs_with_a_group_of_fixed_size_run_at_every_width():
    graph = Graph(
        (Group("a", 3), Group("b")), (Edge("input", "a"), Edge("a", "b"), Edge("b", "output"))
    )
    spec = with_settings(SMALL, {"graph": json.loads(str(graph)), "num_hessians": 0, "widths": [4]})
    (found,) = result_of(spec).points[0].runs
    assert found.min_in_degree == 3
