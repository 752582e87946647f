"""In-degrees of a graph at one width, expected over the edges that are removed."""

import math
from dataclasses import dataclass

from ntk_core.networks.graphs._graph import Graph
from ntk_core.networks.graphs._parts import INPUT, OUTPUT, Edge


@dataclass(frozen=True)
class InDegree:
    """In-degree of one group, or of the output.

    Attributes:
        name: of the group.
        value: expected number of edges with weights into each of its neurons.
        growth: exponent with which it grows with the width; 0 where it stays the same at every width.
        num_neurons: of the group, positions counted.
        sources: the groups that the edges come from.
        counts: how many of ``value`` come from each of them.
    """

    name: str
    value: float
    growth: float
    num_neurons: int
    sources: tuple[str, ...]
    counts: tuple[float, ...]


def in_degrees(graph: Graph, width: int, input_shape: tuple[int, ...], num_outputs: int = 1) -> dict[str, InDegree]:
    """In-degree of each group and of the output, in the order of evaluation.

    Edges that a mask may remove count with the probability that they stay; shared weights count once a position of
    their kernel; fixed skips do not count. Source: Zhu, Liu & Belkin 2022, §2.1 and App. A, E.
    """
    sizes, positions = graph.sizes(width), math.prod(input_shape[:-1])

    def num_neurons(name: str) -> int:
        if name == INPUT:
            return math.prod(input_shape)
        if name == OUTPUT:
            return num_outputs
        return sizes[name] * (positions if name in graph.positioned else 1)

    def count(edge: Edge) -> float:
        if edge.kind == "shared":
            channels = input_shape[-1] if edge.source == INPUT else sizes[edge.source]
            return channels * edge.kernel_size ** (len(input_shape) - 1)
        return (1 - edge.drop_probability) * num_neurons(edge.source)

    return {
        name: InDegree(
            name,
            sum(count(edge) for edge in graph.parents[name]),
            max(growth(graph, edge.source) for edge in graph.parents[name]),
            num_neurons(name),
            tuple(edge.source for edge in graph.parents[name]),
            tuple(count(edge) for edge in graph.parents[name]),
        )
        for name in graph.depths
    }


def growth(graph: Graph, name: str) -> float:
    """Exponent with which the number of neurons of a group grows with the width."""
    return graph.group[name].growth if name in graph.group else 0.0
