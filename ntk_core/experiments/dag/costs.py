"""What a point of ``dag`` computes, counted: training, kernels and Hessian norms of one width; free of JAX."""

import functools
from collections.abc import Sequence

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import Graph, graph_steps
from ntk_core.networks.sizes import LayerSize, step_sizes
from ntk_core.runs import BYTES, Counted, Counts, Work, typical_steps

MAX_MATVECS = 40  # a relative residual of 2% takes 10 to 25 products here
TYPICAL_STEPS, TYPICAL_MATVECS = 300, 20
# λ_min in a ball: four descents of 33 kernels, each with its gradient, which costs some three of them, eigenvalues,
# and calls of its own.
BALL_VALUES, BALL_KERNELS, BALL_CUBES, BALL_CALLS = 4 * 33, 4.5, 20, 375


def counts(spec: DAGSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all graphs, outputs and seeds; ``most`` counts all steps and products that are allowed."""
    return tuple(_of_graph(spec, network, most) for network in _networks(spec, spec.value_of(key)))


@functools.lru_cache(maxsize=512)
def _networks(spec: DAGSpec, width: int) -> tuple[Counted, ...]:
    shapes = _shapes(spec)
    return tuple(
        Counted(layer_sizes_of(spec, graph, width), shapes.num_samples, shapes.num_outputs)
        for graph in spec.graphs().values()
    )


def layer_sizes_of(spec: DAGSpec, graph: Graph, width: int) -> list[LayerSize]:
    """The layers of the network on this graph, in order of evaluation."""
    shapes = _shapes(spec)
    steps = graph_steps(graph, width, spec.activation, spec.use_bias)
    return step_sizes(steps, width, shapes.input_shape, shapes.num_outputs)


def _shapes(spec: DAGSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.dataset.options())


def _of_graph(spec: DAGSpec, network: Counted, most: bool) -> Counts:
    layers, basis = network.layers, _basis_entries(network.layers)
    matvecs = MAX_MATVECS if most else TYPICAL_MATVECS
    norms = bool(spec.num_hessians) + spec.pre_activations * len(layers)
    products = max(1, spec.num_hessians) * norms * matvecs
    values = BALL_VALUES * bool(spec.ball_radius)
    watched = 0.2 * spec.pre_activations * len(layers)
    programs = {"training": 1, "hessian": norms + spec.pre_activations * len(layers), "search": bool(values)}
    return Counts(
        network,
        {kind: len(spec.outputs) * number for kind, number in programs.items()},
        times=len(spec.outputs) * spec.num_seeds,
        steps=typical_steps(spec.training.max_steps, most, TYPICAL_STEPS),
        kernels=spec.training.num_records * (1 + watched) + BALL_KERNELS * values,
        products=products,
        cubes=BALL_CUBES * values,
        more=Work(4 * products * matvecs * basis, 2 * BYTES * products * matvecs * basis, BALL_CALLS * values),
        copies=3,
        views=1,
        matrices=6,
        numbers=(MAX_MATVECS + 8) * basis if products else 0,
    )


def _basis_entries(layers: Sequence[LayerSize]) -> int:
    """Numbers in one direction of the Hessian's space: all edges of masked layers, else fan-in and features."""
    return sum(
        layer.num_params
        if layer.masked
        else min(layer.num_params, min(layer.positions, layer.fan_in) * (layer.fan_in + layer.features))
        for layer in layers
    )
