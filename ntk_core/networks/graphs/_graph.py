"""Graphs of groups of neurons: validation, order of evaluation, layers."""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
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

INPUT = "input"
OUTPUT = "output"
MAX_BYTES = 200_000
MAX_GROUPS = 64
MAX_EDGES = 1000
MAX_NAME = 40
MAX_SIZE = 10_000_000
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


class InvalidGraph(InvalidInput):
    """Error for a graph, with the parts at fault, which drawings mark.

    Attributes:
        groups: names of groups, and of the input and the output.
        edges: (source, target) of edges.

    >>> InvalidGraph("edges", "none into 'output'", "at least one", groups=["output"]).groups
    ('output',)
    """

    def __init__(
        self,
        field: str,
        given: object,
        allowed: str,
        *,
        groups: Iterable[str] = (),
        edges: Iterable[tuple[str, str]] = (),
    ):
        self.groups = tuple(groups)
        self.edges = tuple(edges)
        super().__init__(field, given, allowed)

    def __reduce__(self) -> tuple[object, ...]:
        parts: JSON = {"groups": self.groups, "edges": self.edges}
        return (partial(type(self), **parts), (self.field, self.given, self.allowed))


def _whole(given: object) -> object:
    """Convert 3.0 to 3, which JSON and tables do not distinguish."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Whole = Annotated[int, BeforeValidator(_whole)]
Factor = Annotated[float, PlainSerializer(_whole)]


class _Part(Written):
    """Abstract: a group or an edge.

    Errors name its settings like ``groups.a.size``, by its ``ends``.
    """

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
        return InvalidGraph(
            place + name,
            detail["input"],
            allowed_values(cls.model_fields[name]),
            groups=ends if len(cls.ends) == 1 else (),
            edges=[(ends[0], ends[1])] if len(ends) == 2 else (),
        )


class Group(_Part):
    """Group of neurons with the same parents.

    Neurons with the same parents and activation; width m → factor · m^power neurons.

    Attributes:
        name: of the group; ``"input"`` and ``"output"`` are reserved.
        size: constant number of neurons; None for ``factor · width^power``, rounded. After shared
            edges: number of channels at each position.
        activation: one of ``ntk_core.networks.choices.ACTIVATIONS``; by default that of the
            network.
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

    All edges u → v from the neurons of one group to those of another: in(v)^(-1/2) Σ_{u→v} w_uv
    α_u.

    Attributes:
        source: a group or ``"input"``.
        target: a group or ``"output"``.
        drop_probability: probability that a dense edge is removed permanently.
        kind: ``"dense"``; ``"shared"``, weights shared by all positions of the input (a
            convolution, App. E); or ``"skip"``, fixed weights of 1 that add the source after the
            activation (App. D).
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

    Hidden groups of neurons and the edges u → v between ``"input"``, the groups and
    ``"output"``, without cycles.

    >>> edges = (Edge("input", "a"), Edge("a", "b"), Edge("b", "output"))
    >>> graph = Graph((Group("a"), Group("b")), edges)
    >>> graph.depths
    {'a': 1, 'b': 2, 'output': 3}

    Raises:
        InvalidInput: for cycles, groups without incoming edges or without a path to the output,
            incompatible edges and invalid settings, each named.

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
            field = inside if place else raised.field
            if isinstance(raised, InvalidGraph):
                return InvalidGraph(
                    field, raised.given, raised.allowed, groups=raised.groups, edges=raised.edges
                )
            return InvalidInput(field, raised.given, raised.allowed)
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
        """Layer of each group and of the output.

        The longest path from the input, in the order of evaluation.
        """
        depth = {INPUT: 0}
        waiting = list(self.incoming)
        while waiting:
            ready = [
                name
                for name in waiting
                if all(edge.source in depth for edge in self.incoming[name])
            ]
            if not ready:
                cycle = self._cycle(waiting)
                raise InvalidGraph(
                    "edges",
                    " → ".join(cycle),
                    "a graph without cycles",
                    groups=cycle,
                    edges=pairwise(cycle),
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
                allowed = f"any name but {INPUT!r} and {OUTPUT!r}"
                raise InvalidGraph("groups", name or "''", allowed, groups=[name])
            if len(name) > MAX_NAME or any(not char.isprintable() or char in "<>" for char in name):
                allowed = f"names of up to {MAX_NAME} printable characters, without < and >"
                raise InvalidGraph("groups", name, allowed, groups=[name])
            if name[0] in "=+-@":  # spreadsheets would read it as a formula in exported tables
                allowed = "names that do not begin with =, +, - or @"
                raise InvalidGraph("groups", name, allowed, groups=[name])
            if names.count(name) > 1:
                allowed = "a different name for each group"
                raise InvalidGraph("groups", name, allowed, groups=[name])

    def _check_edges(self) -> None:
        sources = [INPUT, *(group.name for group in self.groups)]
        targets = [*sources[1:], OUTPUT]
        seen = set()
        for edge in self.edges:
            ends = (edge.source, edge.target)
            if edge.source not in sources:
                allowed = "edges that start in one of " + ", ".join(sources)
                raise InvalidGraph(
                    "edges", edge.source, allowed, groups=[edge.source], edges=[ends]
                )
            if edge.target not in targets:
                allowed = "edges that end in one of " + ", ".join(targets)
                raise InvalidGraph(
                    "edges", edge.target, allowed, groups=[edge.target], edges=[ends]
                )
            field = f"edges.{edge.source}-{edge.target}"
            if edge.drop_probability and edge.kind != "dense":
                raise InvalidGraph(
                    f"{field}.drop_probability",
                    edge.drop_probability,
                    f"0 for {edge.kind} edges",
                    edges=[ends],
                )
            if edge.kind == "skip" and edge.target == OUTPUT:
                allowed = "dense edges into 'output': its neurons have no activation"
                raise InvalidGraph(f"{field}.kind", edge.kind, allowed, edges=[ends])
            if (edge.source, edge.target, edge.trained) in seen:
                given = f"{edge.source} → {edge.target}"
                raise InvalidGraph("edges", given, "each edge once", groups=ends, edges=[ends])
            seen.add((edge.source, edge.target, edge.trained))

    def _check_reach(self) -> None:
        """Refuse groups without incoming edges or without a path to the output.

        Without cycles, every group with incoming edges everywhere upstream is reached by the input.
        """
        if not self.incoming[OUTPUT]:
            allowed = "at least one edge that ends in 'output'"
            raise InvalidGraph("edges", "none into 'output'", allowed, groups=[OUTPUT])
        if not any(edge.source == INPUT for edge in self.edges):
            allowed = "at least one edge that starts in 'input'"
            raise InvalidGraph("edges", "none from 'input'", allowed, groups=[INPUT])
        for name, edges in self.parents.items():
            if not edges:
                allowed = "an in-degree of at least 1 for every group"
                raise InvalidGraph("edges", f"no edge into group {name!r}", allowed, groups=[name])
        order = list(self.depths)  # refuses cycles
        useful = {OUTPUT}
        for name in reversed(order):
            if name in useful:
                useful.update(edge.source for edge in self.incoming[name])
        for name in order:
            if name not in useful:
                allowed = "groups from which a path leads to the output"
                raise InvalidGraph("edges", f"group {name!r}", allowed, groups=[name])

    def _check_positions(self) -> None:
        """Refuse shared weights without positions, and incompatible kinds of edges."""
        for name, edges in self.parents.items():
            kinds = {edge.kind for edge in edges}
            if len(kinds) > 1:
                allowed = f"one of both kinds into group {name!r}"
                raise InvalidGraph(
                    f"edges.{name}", "dense and shared edges", allowed, groups=[name]
                )
            if kinds == {"shared"}:
                if name == OUTPUT:
                    allowed = "dense edges into 'output'"
                    raise InvalidGraph("edges.output", "shared weights", allowed, groups=[OUTPUT])
                if len({edge.kernel_size for edge in edges}) > 1:
                    allowed = f"one kernel size for group {name!r}"
                    raise InvalidGraph(
                        f"edges.{name}.kernel_size", "several", allowed, groups=[name]
                    )
                for edge in edges:
                    if edge.source != INPUT and edge.source not in self.positioned:
                        allowed = "sources with positions: the input, or a group after shared edges"
                        field = f"edges.{edge.source}-{name}.kind"
                        raise InvalidGraph(field, "shared", allowed, edges=[(edge.source, name)])
            unknown = [
                edge for edge in edges if edge.source == INPUT or edge.source in self.positioned
            ]
            if len(unknown) > 1 and any(edge.drop_probability for edge in edges):
                allowed = "0 where more than one source is the input or has positions"
                field = f"edges.{name}.drop_probability"
                raise InvalidGraph(field, "above 0", allowed, groups=[name])

    def _check_skips(self) -> None:
        """Refuse fixed skips between groups of different sizes."""
        for edge in self.edges:
            if edge.trained or edge.source == INPUT:
                continue
            source = self.group[edge.source]
            target = self.group[edge.target]
            equal = (source.size, source.factor, source.power) == (
                target.size,
                target.factor,
                target.power,
            )
            if not equal or (edge.source in self.positioned) != (edge.target in self.positioned):
                allowed = (
                    f"skips between groups of equal size; {edge.source!r} and "
                    f"{edge.target!r} differ"
                )
                field = f"edges.{edge.source}-{edge.target}.kind"
                ends = (edge.source, edge.target)
                raise InvalidGraph(field, "skip", allowed, edges=[ends])


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
        InvalidInput: one sentence with the field (``groups.a.size``), the given and the allowed
            values.

    Source: our choice, docs/math/dag.md.
    """
    if isinstance(data, Graph):
        return data
    return Graph(**read_object(data, "graph", MAX_BYTES, "an object in JSON with groups and edges"))
