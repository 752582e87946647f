"""Networks on any directed acyclic graph of groups of neurons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.architectures._activations import activation_function, output_function
from ntk_core.architectures._layers import Dense, Layer, Scaling, Shape
from ntk_core.architectures._masked import MaskedDense, check_drop_probability
from ntk_core.architectures._network import Call, Network
from ntk_core.architectures._settings import (
    MAX_OUTPUTS,
    MAX_WIDTH,
    TRAINED,
    check_choice,
    check_count,
    check_switch,
    trains_hidden,
    trains_output,
)
from ntk_core.errors import InvalidInput

INPUT, OUTPUT = "input", "output"


@dataclass(frozen=True)
class Group:
    """Neurons with the same parents and the same activation.

    Attributes:
        name: of the group; ``"input"`` and ``"output"`` are taken.
        size: number of neurons; None for the ``width`` of the network.
        activation: one of ``ntk_core.vocabulary.ACTIVATIONS``; None for that of the network.
    """

    name: str
    size: int | None = None
    activation: str | None = None


@dataclass(frozen=True)
class Edge:
    """All edges from the neurons of one group to those of another, each removed with ``drop_probability``."""

    source: str
    target: str
    drop_probability: float = 0.0


_DEFAULT_GROUPS = (Group("a"), Group("b"))
_DEFAULT_EDGES = (Edge(INPUT, "a"), Edge(INPUT, "b"), Edge("a", "b"), Edge("a", OUTPUT), Edge("b", OUTPUT))


@dataclass(frozen=True)
class DAGNetwork(Network):
    """α_v = σ_v(in(v)^(-1/2) Σ_{u→v} w_uv α_u + b_v) along the edges of a directed acyclic graph.

    Groups are evaluated layer by layer, where the layer of a group is the length of the longest path to it from the
    input. Source: Zhu, Liu & Belkin 2022, Eq. 2 and §2.2.

    >>> net = DAGNetwork(width=10, num_outputs=2)
    >>> net.depths
    {'a': 1, 'b': 2, 'output': 3}
    >>> net.min_width((4,))
    14

    Attributes:
        width: size of the groups that state none.
        groups: hidden groups of neurons.
        edges: between ``"input"``, the groups and ``"output"``.
        num_outputs, activation, output, parameterization, use_bias, gain, trained: as for other networks; ``"first"``
            trains the groups that see the input only.

    Raises:
        InvalidInput: names the group on a cycle, with an in-degree of zero (so that the input does not reach it) or
            without a path to the output, and the field for every other setting.
    """

    width: int = 512
    groups: tuple[Group, ...] = _DEFAULT_GROUPS
    edges: tuple[Edge, ...] = _DEFAULT_EDGES
    num_outputs: int = 1
    activation: str = "relu"
    output: str = "linear"
    parameterization: str = "ntk"
    use_bias: bool = False
    gain: float = 1.0
    trained: str = "all"

    def __post_init__(self) -> None:
        check_count("width", self.width, MAX_WIDTH)
        check_count("num_outputs", self.num_outputs, MAX_OUTPUTS)
        check_switch("use_bias", self.use_bias)
        check_choice("trained", self.trained, TRAINED)
        activation_function(self.activation)
        output_function(self.output)
        Scaling(self.parameterization, self.gain)
        self._check_groups()
        self._check_edges()
        _check_reach(self)

    def _check_groups(self) -> None:
        names = [group.name for group in self.groups]
        for group in self.groups:
            if group.name in (INPUT, OUTPUT) or not group.name:
                raise InvalidInput("groups", group.name or "''", f"any name but {INPUT!r} and {OUTPUT!r}")
            if names.count(group.name) > 1:
                raise InvalidInput("groups", group.name, "a different name for each group")
            if group.size is not None:
                check_count(f"groups.{group.name}.size", group.size, MAX_WIDTH)
            if group.activation is not None:
                activation_function(group.activation, f"groups.{group.name}.activation")

    def _check_edges(self) -> None:
        sources = [INPUT, *(group.name for group in self.groups)]
        targets = [*sources[1:], OUTPUT]
        seen = set()
        for edge in self.edges:
            if edge.source not in sources:
                raise InvalidInput("edges", edge.source, "edges that start in one of " + ", ".join(sources))
            if edge.target not in targets:
                raise InvalidInput("edges", edge.target, "edges that end in one of " + ", ".join(targets))
            if (edge.source, edge.target) in seen:
                raise InvalidInput("edges", f"{edge.source} → {edge.target}", "each edge once")
            seen.add((edge.source, edge.target))
            check_drop_probability(edge.drop_probability, f"edges.{edge.source}-{edge.target}.drop_probability")

    @cached_property
    def depths(self) -> dict[str, int]:
        """Layer of each group and of the output: the longest path from the input, in the order of evaluation."""
        depth = {INPUT: 0}
        waiting = [*(group.name for group in self.groups), OUTPUT]
        while waiting:
            ready = [name for name in waiting if all(edge.source in depth for edge in self.parents[name])]
            if not ready:
                raise InvalidInput("edges", " → ".join(_cycle(self, waiting)), "a graph without cycles")
            for name in ready:
                depth[name] = 1 + max((depth[edge.source] for edge in self.parents[name]), default=-1)
            waiting = [name for name in waiting if name not in depth]
        del depth[INPUT]
        return dict(sorted(depth.items(), key=lambda item: item[1]))

    @cached_property
    def parents(self) -> dict[str, tuple[Edge, ...]]:
        """Edges into each group and into the output."""
        names = [*(group.name for group in self.groups), OUTPUT]
        return {name: tuple(edge for edge in self.edges if edge.target == name) for name in names}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of neurons of each hidden group."""
        return {group.name: self.width if group.size is None else group.size for group in self.groups}

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        first = self.first_layers()
        return {
            name: self._layer(
                name, trains_output(self.trained) if name == OUTPUT else trains_hidden(self.trained, name in first)
            )
            for name in self.depths
        }

    def _layer(self, name: str, trainable: bool) -> Layer:
        is_output = name == OUTPUT
        scaling = Scaling(self.parameterization, 1.0 if is_output else self.gain, self.width)
        size, use_bias = (self.num_outputs, False) if is_output else (self.sizes[name], self.use_bias)
        if not any(edge.drop_probability for edge in self.parents[name]):
            return Dense(size, use_bias, scaling, trainable=trainable)
        parts = tuple((self.sizes.get(edge.source), edge.drop_probability) for edge in self.parents[name])
        return MaskedDense(size, parts, use_bias, scaling, trainable=trainable)

    def body(self, call: Call, x: Array) -> Array:
        activations = {group.name: activation_function(group.activation or self.activation) for group in self.groups}
        values = {INPUT: x.reshape(x.shape[0], -1)}
        for name in self.depths:
            z = call(name, jnp.concatenate([values[edge.source] for edge in self.parents[name]], axis=-1))
            values[name] = z if name == OUTPUT else activations[name](z)
        return values[OUTPUT]

    def first_layers(self) -> tuple[str, ...]:
        return tuple(name for name, depth in self.depths.items() if depth == 1)

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8); ``in_degree_range`` counts it."""
        self.layer_input_shapes(input_shape)
        sizes = {INPUT: math.prod(input_shape), **self.sizes}
        first = self.first_layers()
        degrees = [
            sum((1 - edge.drop_probability) * sizes[edge.source] for edge in edges)
            for name, edges in self.parents.items()
            if name not in first or len(first) == len(self.parents)
        ]
        return max(1, round(min(degrees)))


def _cycle(net: DAGNetwork, waiting: list[str]) -> list[str]:
    """The names along one cycle among groups that all wait for each other."""
    path = [waiting[0]]
    while path[-1] not in path[:-1]:
        path.append(next(edge.source for edge in net.parents[path[-1]] if edge.source in waiting))
    return path[path.index(path[-1]) :][::-1]


def _check_reach(net: DAGNetwork) -> None:
    """Refuse groups that nothing reaches, and groups without a path to the output.

    Without cycles, following incoming edges backwards ends at the input or at a group that has none: refusing those
    makes the input reach every group.
    """
    if not net.parents[OUTPUT]:
        raise InvalidInput("edges", "none into 'output'", "at least one edge that ends in 'output'")
    if not any(edge.source == INPUT for edge in net.edges):
        raise InvalidInput("edges", "none from 'input'", "at least one edge that starts in 'input'")
    for name, edges in net.parents.items():
        if not edges:
            raise InvalidInput("edges", f"no edge into group {name!r}", "an in-degree of at least 1 for every group")
    order = list(net.depths)  # refuses cycles
    useful = {OUTPUT}
    for name in reversed(order):
        if name in useful:
            useful.update(edge.source for edge in net.parents[name])
    for name in order:
        if name not in useful:
            raise InvalidInput("edges", f"group {name!r}", "groups from which a path leads to the output")
