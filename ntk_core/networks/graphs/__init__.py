"""Directed acyclic graphs of groups of neurons: structure, JSON, verdict; free of JAX, so that pages can draw them."""

from ntk_core.networks.graphs._graph import MAX_GROUPS, Graph
from ntk_core.networks.graphs._in_degrees import InDegree, in_degrees
from ntk_core.networks.graphs._json import MAX_BYTES, graph_data, parse_graph
from ntk_core.networks.graphs._parts import EDGE_KINDS, INPUT, OUTPUT, Edge, Group, check_drop_probability
from ntk_core.networks.graphs._shapes import (
    EXAMPLE_TITLES,
    arbitrary_graph,
    bottleneck_layer_graph,
    dense_graph,
    example_graphs,
    few_bottleneck_neurons_graph,
    fully_connected_graph,
    repaired_bottleneck_graph,
    residual_graph,
    shared_graph,
    unequal_graph,
)
from ntk_core.networks.graphs._verdict import Reason, Verdict, graph_verdict
