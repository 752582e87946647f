"""What a point of ``dag`` costs: training, kernels and Hessian norms of one width; free of JAX."""

import math
from collections.abc import Sequence

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import INPUT, OUTPUT, Graph
from ntk_core.networks.sizes import LayerSize
from ntk_core.runs import BYTES, HESSIAN_BYTES, Counted, Work

MAX_MATVECS = 40  # a relative residual of 2 % takes 10 to 25 products here
TYPICAL_STEPS, TYPICAL_MATVECS = 300, 20
COMPILED = 0.65  # a program of a graph, in those of a chain of as many layers
# λ_min in a ball: four descents of 33 kernels, each with its gradient, which costs some three of them, and calls of its
# own
BALL_VALUES, BALL_KERNELS, BALL_CALLS = 4 * 33, 4.5, 375


def work(spec: DAGSpec, key: str, most: bool = False) -> Work:
    """One width, all graphs, outputs and seeds; ``most`` counts all steps and products that are allowed."""
    return sum((_graph_work(spec, graph, spec.value_of(key), most) for graph in spec.graphs().values()), Work())


def peak_bytes(spec: DAGSpec, key: str) -> float:
    """Expected peak memory of one run of one width: weights, their gradient and copy, views, kernels, a Lanczos basis.

    The basis of masked layers has all their edges, that of others fan-in and features of each layer.
    """
    return max(_graph_bytes(spec, _counted(spec, graph, spec.value_of(key))) for graph in spec.graphs().values())


def layer_sizes_of(spec: DAGSpec, graph: Graph, width: int) -> list[LayerSize]:
    """The layers of the network on this graph, in order of evaluation."""
    shapes = _shapes(spec)
    input_shape, sizes = shapes.input_shape, {**graph.sizes(width), OUTPUT: shapes.num_outputs}
    positions = math.prod(input_shape[:-1])

    def seen(source: str, shared: bool) -> int:
        if source == INPUT:
            return input_shape[-1] if shared else math.prod(input_shape)
        return sizes[source] * (1 if shared or source not in graph.positioned else positions)

    found = []
    for name in graph.depths:
        edges, shared = graph.parents[name], name in graph.positioned
        fan_in = sum(seen(edge.source, shared) for edge in edges)
        fan_in *= edges[0].kernel_size ** (len(input_shape) - 1) if shared else 1
        masked = any(edge.drop_probability for edge in edges)
        biases = sizes[name] if spec.use_bias and name != OUTPUT else 0
        found.append(LayerSize(positions if shared else 1, fan_in, sizes[name], biases, masked, convolution=shared))
    return found


def _shapes(spec: DAGSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.dataset.options())


def _counted(spec: DAGSpec, graph: Graph, width: int) -> Counted:
    shapes = _shapes(spec)
    return Counted(layer_sizes_of(spec, graph, width), shapes.num_samples, shapes.num_outputs)


def _graph_work(spec: DAGSpec, graph: Graph, width: int, most: bool) -> Work:
    counted = _counted(spec, graph, width)
    layers, kernel = counted.layers, counted.kernel
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    matvecs = MAX_MATVECS if most else TYPICAL_MATVECS
    basis = _basis_entries(layers)
    matvec = Work(8 * counted.multiplications + 4 * matvecs * basis, 2 * BYTES * matvecs * basis, 1)
    hessians = (
        max(1, spec.num_hessians)
        * (bool(spec.num_hessians) + (len(layers) if spec.pre_activations else 0))
        * matvecs
        * matvec
    )
    records = spec.training.num_records * (1 + (0.2 * len(layers) if spec.pre_activations else 0))
    values = BALL_KERNELS * kernel + Work(20 * counted.kernel_rows**3, calls=BALL_CALLS)
    ball = BALL_VALUES * values if spec.ball_radius else Work()
    compilations = (
        2 + bool(spec.num_hessians) + 2 * bool(spec.ball_radius) + (2 * len(layers) if spec.pre_activations else 0)
    )
    one = steps * counted.step + records * kernel + hessians + ball
    return len(spec.outputs) * (COMPILED * compilations * counted.program + spec.num_seeds * one)


def _graph_bytes(spec: DAGSpec, counted: Counted) -> float:
    takes_hessians = bool(spec.num_hessians or spec.pre_activations)
    hessian = (MAX_MATVECS + 8) * _basis_entries(counted.layers) if takes_hessians else 0
    numbers = 3 * counted.num_weights + counted.num_views + 6 * counted.kernel_rows**2 + hessian
    return HESSIAN_BYTES * bool(takes_hessians or spec.ball_radius) + BYTES * float(numbers)


def _basis_entries(layers: Sequence[LayerSize]) -> int:
    """Numbers in one direction of the Hessian's space."""
    return sum(
        layer.num_params
        if layer.masked
        else min(layer.num_params, min(layer.positions, layer.fan_in) * (layer.fan_in + layer.features))
        for layer in layers
    )
