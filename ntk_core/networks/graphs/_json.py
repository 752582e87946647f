"""Graphs as plain JSON data, and back with one sentence for whatever is wrong."""

import json
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs._graph import Graph
from ntk_core.networks.graphs._parts import Edge, Group

MAX_BYTES = 200_000
Part = TypeVar("Part", Group, Edge)
_TEXT = ("name", "source", "target", "kind", "activation")


def graph_data(graph: Graph) -> dict[str, Any]:
    """Graph → mapping as JSON gives it; settings at their defaults are left out.

    >>> from ntk_core.networks.graphs import Edge, Group
    >>> graph_data(Graph((Group("a"),), (Edge("input", "a", 0.5), Edge("a", "output"))))["edges"][0]
    {'source': 'input', 'target': 'a', 'drop_probability': 0.5}

    Source: our choice, docs/math/dag.md.
    """
    return {
        "groups": [_part_data(group) for group in graph.groups],
        "edges": [_part_data(edge) for edge in graph.edges],
    }


def parse_graph(data: Any) -> Graph:
    """JSON text, or a mapping as JSON gives it → graph.

    Raises:
        InvalidInput: one sentence with the field (``groups.a.size``), what was given and what is allowed.

    Source: our choice, docs/math/dag.md.
    """
    if isinstance(data, Graph):
        return data
    if isinstance(data, str | bytes):
        if len(data) > MAX_BYTES:
            raise InvalidInput("graph", f"{len(data):,} bytes", f"at most {MAX_BYTES:,} bytes")
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            given = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
            raise InvalidInput("graph", given or "nothing", "JSON text with groups and edges") from None
    if not isinstance(data, dict):
        raise InvalidInput("graph", data, "an object with groups and edges")
    unknown = [name for name in data if name not in ("groups", "edges")]
    if unknown:
        raise InvalidInput("graph", unknown[0], "only groups and edges")
    return Graph(_parts(Group, "groups", data.get("groups")), _parts(Edge, "edges", data.get("edges")))


def _part_data(part: Group | Edge) -> dict[str, Any]:
    values = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    return {name: value for name, (value, default) in values.items() if default is MISSING or value != default}


def _parts(kind: type[Part], field: str, data: Any) -> tuple[Part, ...]:
    if not isinstance(data, list | tuple):
        raise InvalidInput(field, "nothing" if data is None else data, f"a list of {field}")
    return tuple(_part(kind, f"{field}.{index + 1}", each) for index, each in enumerate(data))


def _part(kind: type[Part], field: str, data: Any) -> Part:
    names = [each.name for each in fields(kind)]
    if not isinstance(data, dict):
        raise InvalidInput(field, data, "an object with " + ", ".join(names))
    for name, value in data.items():
        if name not in names:
            raise InvalidInput(field, name, "only the settings " + ", ".join(names))
        if name in _TEXT and not (isinstance(value, str) or (name == "activation" and value is None)):
            raise InvalidInput(f"{field}.{name}", value, "text")
    for each in fields(kind):
        if each.default is MISSING and each.name not in data:
            raise InvalidInput(f"{field}.{each.name}", "nothing", "a name")
    return kind(**{name: _number(value) for name, value in data.items()})


def _number(value: Any) -> Any:
    """JSON and tables do not tell 3.0 from 3; sizes are integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
