"""Graphs and compositions of layers: JSON, examples, verdicts."""

from ntk_core.networks.graphs import (
    Edge,
    Graph,
    Group,
    composition_examples,
    example_graphs,
    graph_data,
    graph_verdict,
    parse_composition,
    parse_graph,
)

__all__ = (
    "Edge",
    "Graph",
    "Group",
    "composition_examples",
    "example_graphs",
    "graph_data",
    "graph_verdict",
    "parse_composition",
    "parse_graph",
)
