"""The structure of a graph: order of evaluation, layers, and what makes a graph impossible."""

import json
from dataclasses import dataclass
from functools import cached_property

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs._parts import INPUT, OUTPUT, Edge, Group

MAX_GROUPS, MAX_EDGES = 64, 1000


@dataclass(frozen=True)
class Graph:
    """Hidden groups of neurons and the edges u → v between ``"input"``, the groups and ``"output"``, without cycles.

    >>> graph = Graph((Group("a"), Group("b")), (Edge("input", "a"), Edge("a", "b"), Edge("b", "output")))
    >>> graph.depths
    {'a': 1, 'b': 2, 'output': 3}

    Raises:
        InvalidInput: naming the groups on a cycle, the group with an in-degree of zero (which the input does not reach)
            or without a path to the output, the edge that fits neither end, and the field of every wrong setting.

    Source: Zhu, Liu & Belkin 2022, §2.
    """

    groups: tuple[Group, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.groups) <= MAX_GROUPS:
            raise InvalidInput("groups", f"{len(self.groups)} groups", f"from 1 to {MAX_GROUPS} hidden groups")
        if len(self.edges) > MAX_EDGES:
            raise InvalidInput("edges", f"{len(self.edges)} edges", f"at most {MAX_EDGES} edges between groups")
        names = [group.name for group in self.groups]
        for group in self.groups:
            group.check()
            if names.count(group.name) > 1:
                raise InvalidInput("groups", group.name, "a different name for each group")
        self._check_edges()
        self._check_reach()
        self._check_positions()
        self._check_skips()

    def __str__(self) -> str:
        """The graph as compact JSON text, read back by :func:`ntk_core.networks.graphs.parse_graph`."""
        from ntk_core.networks.graphs._json import graph_data

        return json.dumps(graph_data(self), separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def group(self) -> dict[str, Group]:
        """The hidden groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def incoming(self) -> dict[str, tuple[Edge, ...]]:
        """All edges into each group and into the output, fixed skips included."""
        names = [*(group.name for group in self.groups), OUTPUT]
        return {name: tuple(edge for edge in self.edges if edge.target == name) for name in names}

    @cached_property
    def parents(self) -> dict[str, tuple[Edge, ...]]:
        """The edges with weights into each group and into the output."""
        return {name: tuple(edge for edge in edges if edge.trained) for name, edges in self.incoming.items()}

    @cached_property
    def depths(self) -> dict[str, int]:
        """Layer of each group and of the output: the longest path from the input, in the order of evaluation."""
        depth = {INPUT: 0}
        waiting = list(self.incoming)
        while waiting:
            ready = [name for name in waiting if all(edge.source in depth for edge in self.incoming[name])]
            if not ready:
                raise InvalidInput("edges", " → ".join(self._cycle(waiting)), "a graph without cycles")
            for name in ready:
                depth[name] = 1 + max((depth[edge.source] for edge in self.incoming[name]), default=-1)
            waiting = [name for name in waiting if name not in depth]
        del depth[INPUT]
        return dict(sorted(depth.items(), key=lambda item: item[1]))

    @cached_property
    def first_layers(self) -> tuple[str, ...]:
        """The groups that see nothing but the input; outside of them in-degrees count (Zhu et al., Eq. 8)."""
        return tuple(name for name, depth in self.depths.items() if depth == 1)

    @cached_property
    def judged(self) -> tuple[str, ...]:
        """The groups, and the output, whose in-degrees make the width: all outside the first layer."""
        return tuple(name for name in self.depths if name not in self.first_layers) or self.first_layers

    @cached_property
    def positioned(self) -> frozenset[str]:
        """The groups with neurons at every position of the input: those after shared edges."""
        return frozenset(name for name, edges in self.parents.items() if any(edge.kind == "shared" for edge in edges))

    def sizes(self, width: int) -> dict[str, int]:
        """Number of neurons (channels, after shared edges) of each hidden group at this width."""
        return {group.name: group.size_at(width) for group in self.groups}

    def _cycle(self, waiting: list[str]) -> list[str]:
        """The names along one cycle among groups that all wait for each other."""
        path = [waiting[0]]
        while path[-1] not in path[:-1]:
            path.append(next(edge.source for edge in self.incoming[path[-1]] if edge.source in waiting))
        return path[path.index(path[-1]) :][::-1]

    def _check_edges(self) -> None:
        sources = [INPUT, *(group.name for group in self.groups)]
        targets = [*sources[1:], OUTPUT]
        seen = set()
        for edge in self.edges:
            if edge.source not in sources:
                raise InvalidInput("edges", edge.source, "edges that start in one of " + ", ".join(sources))
            if edge.target not in targets:
                raise InvalidInput("edges", edge.target, "edges that end in one of " + ", ".join(targets))
            edge.check()
            if (edge.source, edge.target, edge.trained) in seen:
                raise InvalidInput("edges", f"{edge.source} → {edge.target}", "each edge once")
            seen.add((edge.source, edge.target, edge.trained))

    def _check_reach(self) -> None:
        """Refuse groups that nothing reaches, and groups without a path to the output.

        Without cycles, following incoming edges backwards ends at the input or at a group that has none: refusing
        those makes the input reach every group.
        """
        if not self.incoming[OUTPUT]:
            raise InvalidInput("edges", "none into 'output'", "at least one edge that ends in 'output'")
        if not any(edge.source == INPUT for edge in self.edges):
            raise InvalidInput("edges", "none from 'input'", "at least one edge that starts in 'input'")
        for name, edges in self.parents.items():
            if not edges:
                raise InvalidInput(
                    "edges", f"no edge into group {name!r}", "an in-degree of at least 1 for every group"
                )
        order = list(self.depths)  # refuses cycles
        useful = {OUTPUT}
        for name in reversed(order):
            if name in useful:
                useful.update(edge.source for edge in self.incoming[name])
        for name in order:
            if name not in useful:
                raise InvalidInput("edges", f"group {name!r}", "groups from which a path leads to the output")

    def _check_positions(self) -> None:
        """Refuse shared weights where there are no positions, and kinds that cannot be mixed."""
        for name, edges in self.parents.items():
            kinds = {edge.kind for edge in edges}
            if len(kinds) > 1:
                raise InvalidInput(f"edges.{name}", "dense and shared edges", f"one of both kinds into group {name!r}")
            if kinds == {"shared"}:
                if name == OUTPUT:
                    raise InvalidInput("edges.output", "shared weights", "dense edges into 'output'")
                if len({edge.kernel_size for edge in edges}) > 1:
                    raise InvalidInput(f"edges.{name}.kernel_size", "several", f"one kernel size for group {name!r}")
                for edge in edges:
                    if edge.source != INPUT and edge.source not in self.positioned:
                        allowed = "sources with positions: the input, or a group after shared edges"
                        raise InvalidInput(f"edges.{edge.source}-{name}.kind", "shared", allowed)
            unknown = [edge for edge in edges if edge.source == INPUT or edge.source in self.positioned]
            if len(unknown) > 1 and any(edge.drop_probability for edge in edges):
                allowed = "0 where more than one source is the input or has positions"
                raise InvalidInput(f"edges.{name}.drop_probability", "above 0", allowed)

    def _check_skips(self) -> None:
        """Refuse fixed skips between groups whose neurons cannot correspond one to one at every width."""
        for edge in self.edges:
            if edge.trained or edge.source == INPUT:
                continue
            source, target = self.group[edge.source], self.group[edge.target]
            equal = (source.size, source.factor, source.power) == (target.size, target.factor, target.power)
            if not equal or (edge.source in self.positioned) != (edge.target in self.positioned):
                allowed = f"skips between groups of equal size; {edge.source!r} and {edge.target!r} differ"
                raise InvalidInput(f"edges.{edge.source}-{edge.target}.kind", "skip", allowed)
