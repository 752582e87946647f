"""Graphs of groups of neurons: validation, order of evaluation, layers."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from ntk_core.allowed import allowed_values
from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.networks.graphs._written import Written, inner_problem, read_object
from ntk_core.terms import Term, table

if TYPE_CHECKING:
    ActivationName = str
    EdgeKind = str
else:
    ActivationName = Literal[tuple(ACTIVATIONS)]
    EdgeKind = Literal["dense", "shared", "skip"]

INPUT, OUTPUT = "input", "output"
MAX_BYTES, MAX_GROUPS, MAX_EDGES = 200_000, 64, 1000
MAX_NAME, MAX_SIZE = 40, 10_000_000
EDGE_KINDS = table(
    Term(
        "dense", "dense", "a weight of its own for each pair of neurons; some edges may be removed"
    ),
    Term(
        "shared",
        "shared weights",
        "the same weights at every position: a convolution with circular padding",
    ),
    Term("skip", "fixed skip", "weight 1, never trained: the source is added after the activation"),
)


def _whole(given: object) -> object:
    """Convert 3.0 to 3, which JSON and tables do not distinguish."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Whole = Annotated[int, BeforeValidator(_whole)]
Factor = Annotated[float, PlainSerializer(_whole)]


class _Part(Written):
    """Abstract: a group or an edge; errors name its settings like ``groups.a.size``, by its ``ends``."""

    ends: ClassVar[tuple[str, ...]]

    @classmethod
    def problem(cls, error: ValidationError, given: JSON) -> InvalidInput:
        detail = error.errors(include_url=False)[0]
        name = str(detail["loc"][0])
        ends = [given[end] for end in cls.ends if isinstance(given.get(end), str)]
        place = f"{cls.__name__.lower()}s.{'-'.join(ends)}." if len(ends) == len(cls.ends) else ""
        match detail["type"]:
            case "extra_forbidden":
                return InvalidInput("", name, "only the settings " + ", ".join(cls.model_fields))
            case "missing":
                return InvalidInput(name, "nothing", "a name")
        return InvalidInput(place + name, detail["input"], allowed_values(cls.model_fields[name]))


class Group(_Part):
    """Group of neurons with the same parents.

    Neurons with the same parents and activation; width m → factor · m^power neurons.

    Attributes:
        name: of the group; ``"input"`` and ``"output"`` are reserved.
        size: constant number of neurons; None for ``factor · width^power``, rounded. After shared edges: number of
            channels at each position.
        activation: one of ``ntk_core.networks.choices.ACTIVATIONS``; by default that of the network.
        factor: of the width m.
        power: of the width m; in-degrees can grow at different rates.

    Source: Zhu, Liu & Belkin 2022, Assumption 3.5; groups are our choice, docs/math/dag.md.

    >>> wide, narrow = Group("a"), Group("b", size=3)
    >>> wide.size_at(100), narrow.size_at(100)
    (100, 3)
    """

    ends: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    size: Whole | None = Field(default=None, ge=1, le=MAX_SIZE)
    activation: ActivationName | None = None
    factor: Factor = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    power: Factor = Field(default=1.0, gt=0, le=3, allow_inf_nan=False)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            size: int | None = None,
            activation: str | None = None,
            factor: float = 1.0,
            power: float = 1.0,
        ): ...

    def size_at(self, width: int) -> int:
        """Number of neurons (channels, after shared edges) at this width."""
        return (
            self.size if self.size is not None else max(1, round(self.factor * width**self.power))
        )

    @property
    def growth(self) -> float:
        """Exponent of the number of neurons in the width; 0 for a fixed size."""
        return 0.0 if self.size is not None else self.power


class Edge(_Part):
    """All edges between two groups of neurons.

    All edges u → v from the neurons of one group to those of another: in(v)^(-1/2) Σ_{u→v} w_uv α_u.

    Attributes:
        source: a group or ``"input"``.
        target: a group or ``"output"``.
        drop_probability: probability that a dense edge is removed permanently.
        kind: ``"dense"``; ``"shared"``, weights shared by all positions of the input (a convolution, App. E); or
            ``"skip"``, fixed weights of 1 that add the source after the activation (App. D).
        kernel_size: size of shared weights along each axis of positions.

    Source: Zhu, Liu & Belkin 2022, Eq. 2, App. A, D and E.

    >>> groups = (Group("a"), Group("b"))
    >>> edges = (Edge("input", "a"), Edge("a", "b", drop_probability=0.5), Edge("b", "output"))
    >>> len(Graph(groups, edges).edges)
    3
    """

    ends: ClassVar[tuple[str, ...]] = ("source", "target")

    source: str
    target: str
    drop_probability: Factor = Field(default=0.0, ge=0, lt=1)
    kind: EdgeKind = "dense"
    kernel_size: Whole = Field(default=3, ge=1, le=1024)

    if TYPE_CHECKING:

        def __init__(
            self,
            source: str,
            target: str,
            drop_probability: float = 0.0,
            kind: str = "dense",
            kernel_size: int = 3,
        ): ...

    @property
    def trained(self) -> bool:
        """Whether the edge carries weights."""
        return self.kind != "skip"


class Graph(Written):
    """Directed acyclic graph of neuron groups.

    Hidden groups of neurons and the edges u → v between ``"input"``, the groups and ``"output"``, without cycles.

    >>> graph = Graph((Group("a"), Group("b")), (Edge("input", "a"), Edge("a", "b"), Edge("b", "output")))
    >>> graph.depths
    {'a': 1, 'b': 2, 'output': 3}

    Raises:
        InvalidInput: for cycles, groups without incoming edges or without a path to the output, incompatible edges and
            invalid settings, each named.

    Source: Zhu, Liu & Belkin 2022, §2.
    """

    groups: tuple[Group, ...] = Field(strict=False)
    edges: tuple[Edge, ...] = Field(strict=False)

    if TYPE_CHECKING:

        def __init__(self, groups: Sequence[Group], edges: Sequence[Edge]): ...

    @classmethod
    def problem(cls, error: ValidationError, given: JSON) -> InvalidInput:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(part + 1) if isinstance(part, int) else part for part in detail["loc"])
        if raised := inner_problem(error):
            inside = (
                raised.field
                if "." in raised.field
                else ".".join(filter(None, (place, raised.field)))
            )
            return InvalidInput(inside if place else raised.field, raised.given, raised.allowed)
        match detail["type"], len(detail["loc"]):
            case "extra_forbidden", _:
                return InvalidInput("graph", place, "only groups and edges")
            case "missing", _:
                return InvalidInput(place, "nothing", f"a list of {place}")
            case _, 1:
                return InvalidInput(place, detail["input"], f"a list of {place}")
        part: type[_Part] = Group if detail["loc"][0] == "groups" else Edge
        return InvalidInput(
            place, detail["input"], "an object with " + ", ".join(part.model_fields)
        )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not 1 <= len(self.groups) <= MAX_GROUPS:
            raise InvalidInput(
                "groups", f"{len(self.groups)} groups", f"from 1 to {MAX_GROUPS} hidden groups"
            )
        if len(self.edges) > MAX_EDGES:
            raise InvalidInput(
                "edges", f"{len(self.edges)} edges", f"at most {MAX_EDGES} edges between groups"
            )
        self._check_names()
        self._check_edges()
        self._check_reach()
        self._check_positions()
        self._check_skips()
        return self

    @cached_property
    def group(self) -> dict[str, Group]:
        """Hidden groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def incoming(self) -> dict[str, tuple[Edge, ...]]:
        """All edges into each group and the output, including fixed skips."""
        names = [*(group.name for group in self.groups), OUTPUT]
        return {name: tuple(edge for edge in self.edges if edge.target == name) for name in names}

    @cached_property
    def parents(self) -> dict[str, tuple[Edge, ...]]:
        """Edges with weights into each group and the output."""
        return {
            name: tuple(edge for edge in edges if edge.trained)
            for name, edges in self.incoming.items()
        }

    @cached_property
    def depths(self) -> dict[str, int]:
        """Layer of each group and of the output: the longest path from the input, in the order of evaluation."""
        depth = {INPUT: 0}
        waiting = list(self.incoming)
        while waiting:
            ready = [
                name
                for name in waiting
                if all(edge.source in depth for edge in self.incoming[name])
            ]
            if not ready:
                raise InvalidInput(
                    "edges", " → ".join(self._cycle(waiting)), "a graph without cycles"
                )
            for name in ready:
                depth[name] = 1 + max(
                    (depth[edge.source] for edge in self.incoming[name]), default=-1
                )
            waiting = [name for name in waiting if name not in depth]
        del depth[INPUT]
        return dict(sorted(depth.items(), key=lambda item: item[1]))

    @cached_property
    def first_layers(self) -> tuple[str, ...]:
        """Groups that read only the input; other in-degrees count (Zhu et al., Eq. 8)."""
        return tuple(name for name, depth in self.depths.items() if depth == 1)

    @cached_property
    def beyond_first_layer(self) -> tuple[str, ...]:
        """Groups outside the first layer, and the output: their in-degrees measure the width."""
        return (
            tuple(name for name in self.depths if name not in self.first_layers)
            or self.first_layers
        )

    @cached_property
    def positioned(self) -> frozenset[str]:
        """Groups with neurons at every position of the input: those after shared edges."""
        return frozenset(
            name
            for name, edges in self.parents.items()
            if any(edge.kind == "shared" for edge in edges)
        )

    def sizes(self, width: int) -> dict[str, int]:
        """Number of neurons (channels, after shared edges) of each hidden group at this width."""
        return {group.name: group.size_at(width) for group in self.groups}

    def _cycle(self, waiting: list[str]) -> list[str]:
        """Names along one cycle among mutually dependent groups."""
        path = [waiting[0]]
        while path[-1] not in path[:-1]:
            path.append(
                next(edge.source for edge in self.incoming[path[-1]] if edge.source in waiting)
            )
        return path[path.index(path[-1]) :][::-1]

    def _check_names(self) -> None:
        names = [group.name for group in self.groups]
        for name in names:
            if name in ("", INPUT, OUTPUT):
                raise InvalidInput("groups", name or "''", f"any name but {INPUT!r} and {OUTPUT!r}")
            if len(name) > MAX_NAME or any(not char.isprintable() or char in "<>" for char in name):
                raise InvalidInput(
                    "groups",
                    name,
                    f"names of up to {MAX_NAME} printable characters, without < and >",
                )
            if name[0] in "=+-@":  # spreadsheets would read it as a formula in exported tables
                raise InvalidInput("groups", name, "names that do not begin with =, +, - or @")
            if names.count(name) > 1:
                raise InvalidInput("groups", name, "a different name for each group")

    def _check_edges(self) -> None:
        sources = [INPUT, *(group.name for group in self.groups)]
        targets = [*sources[1:], OUTPUT]
        seen = set()
        for edge in self.edges:
            if edge.source not in sources:
                raise InvalidInput(
                    "edges", edge.source, "edges that start in one of " + ", ".join(sources)
                )
            if edge.target not in targets:
                raise InvalidInput(
                    "edges", edge.target, "edges that end in one of " + ", ".join(targets)
                )
            field = f"edges.{edge.source}-{edge.target}"
            if edge.drop_probability and edge.kind != "dense":
                raise InvalidInput(
                    f"{field}.drop_probability", edge.drop_probability, f"0 for {edge.kind} edges"
                )
            if edge.kind == "skip" and edge.target == OUTPUT:
                allowed = "dense edges into 'output': its neurons have no activation"
                raise InvalidInput(f"{field}.kind", edge.kind, allowed)
            if (edge.source, edge.target, edge.trained) in seen:
                raise InvalidInput("edges", f"{edge.source} → {edge.target}", "each edge once")
            seen.add((edge.source, edge.target, edge.trained))

    def _check_reach(self) -> None:
        """Refuse groups without incoming edges or without a path to the output.

        Without cycles, every group with incoming edges everywhere upstream is reached by the input.
        """
        if not self.incoming[OUTPUT]:
            raise InvalidInput(
                "edges", "none into 'output'", "at least one edge that ends in 'output'"
            )
        if not any(edge.source == INPUT for edge in self.edges):
            raise InvalidInput(
                "edges", "none from 'input'", "at least one edge that starts in 'input'"
            )
        for name, edges in self.parents.items():
            if not edges:
                raise InvalidInput(
                    "edges",
                    f"no edge into group {name!r}",
                    "an in-degree of at least 1 for every group",
                )
        order = list(self.depths)  # refuses cycles
        useful = {OUTPUT}
        for name in reversed(order):
            if name in useful:
                useful.update(edge.source for edge in self.incoming[name])
        for name in order:
            if name not in useful:
                raise InvalidInput(
                    "edges", f"group {name!r}", "groups from which a path leads to the output"
                )

    def _check_positions(self) -> None:
        """Refuse shared weights without positions, and incompatible kinds of edges."""
        for name, edges in self.parents.items():
            kinds = {edge.kind for edge in edges}
            if len(kinds) > 1:
                raise InvalidInput(
                    f"edges.{name}",
                    "dense and shared edges",
                    f"one of both kinds into group {name!r}",
                )
            if kinds == {"shared"}:
                if name == OUTPUT:
                    raise InvalidInput(
                        "edges.output", "shared weights", "dense edges into 'output'"
                    )
                if len({edge.kernel_size for edge in edges}) > 1:
                    raise InvalidInput(
                        f"edges.{name}.kernel_size",
                        "several",
                        f"one kernel size for group {name!r}",
                    )
                for edge in edges:
                    if edge.source != INPUT and edge.source not in self.positioned:
                        allowed = "sources with positions: the input, or a group after shared edges"
                        raise InvalidInput(f"edges.{edge.source}-{name}.kind", "shared", allowed)
            unknown = [
                edge for edge in edges if edge.source == INPUT or edge.source in self.positioned
            ]
            if len(unknown) > 1 and any(edge.drop_probability for edge in edges):
                allowed = "0 where more than one source is the input or has positions"
                raise InvalidInput(f"edges.{name}.drop_probability", "above 0", allowed)

    def _check_skips(self) -> None:
        """Refuse fixed skips between groups of different sizes."""
        for edge in self.edges:
            if edge.trained or edge.source == INPUT:
                continue
            source, target = self.group[edge.source], self.group[edge.target]
            equal = (source.size, source.factor, source.power) == (
                target.size,
                target.factor,
                target.power,
            )
            if not equal or (edge.source in self.positioned) != (edge.target in self.positioned):
                allowed = f"skips between groups of equal size; {edge.source!r} and {edge.target!r} differ"
                raise InvalidInput(f"edges.{edge.source}-{edge.target}.kind", "skip", allowed)


def graph_data(graph: Graph) -> JSON:
    """Convert a graph to JSON data.

    Graph → JSON data without settings at their defaults.

    >>> graph_data(Graph((Group("a"),), (Edge("input", "a", 0.5), Edge("a", "output"))))["edges"][0]
    {'source': 'input', 'target': 'a', 'drop_probability': 0.5}

    Args:
        graph: any graph.

    Returns:
        A mapping with ``groups`` and ``edges``.

    Source: our choice, docs/math/dag.md.
    """
    return graph.data()


def parse_graph(data: object) -> Graph:
    """Parse a graph.

    JSON text or parsed mapping → graph.

    >>> edges = [{"source": "input", "target": "a"}, {"source": "a", "target": "output"}]
    >>> len(parse_graph({"groups": [{"name": "a"}], "edges": edges}).edges)
    2

    Args:
        data: JSON text or a mapping with ``groups`` and ``edges``.

    Returns:
        A graph.

    Raises:
        InvalidInput: one sentence with the field (``groups.a.size``), the given and the allowed values.

    Source: our choice, docs/math/dag.md.
    """
    if isinstance(data, Graph):
        return data
    return Graph(**read_object(data, "graph", MAX_BYTES, "an object in JSON with groups and edges"))
