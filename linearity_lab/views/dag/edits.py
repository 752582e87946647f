"""Graphs as a browser's canvas reports them, validated and bounded; free of Streamlit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import MAX_BYTES, MAX_GROUPS, parse_graph

Places = Mapping[str, tuple[float, float]]
MAX_PLACE, MAX_NUMBER, MAX_TEXT = 200.0, 1e12, 80  # columns and rows; of any number; letters of any text
_FIELDS = {
    "groups": ("name", "size", "activation", "factor", "power"),
    "edges": ("source", "target", "kind", "drop_probability", "kernel_size"),
}


@dataclass(frozen=True)
class Edit:
    """One step of a person on the canvas.

    Attributes:
        version: of the graph that it changes.
        number: by which the canvas finds the verdict on it again.
        text: the graph as JSON text; one that cannot be, too.
        places: name → [column, row] of the groups that were put somewhere.
    """

    version: int
    number: int
    text: str
    places: Places


def from_browser(given: Any) -> Edit:
    """An edit; what is wrong with its graph is for the spec to say.

    Raises:
        InvalidInput: for anything that no canvas could have reported.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("canvas", given, "an object with groups and edges")
    counts = [given.get(name) for name in ("version", "edit")]
    if not all(isinstance(each, int) and 0 <= each < 2**31 for each in counts):
        raise InvalidInput("canvas", counts, "numbers of a version and of an edit")
    return Edit(int(counts[0] or 0), int(counts[1] or 0), graph_text(given), _places(given.get("places")))


def graph_text(given: Mapping[str, Any]) -> str:
    """The JSON text of groups and edges: that of their graph, or as they are for the form to refuse.

    Raises:
        InvalidInput: where they hold anything but short texts and numbers, or too much.
    """
    data = {part: _rows(part, given.get(part), fields) for part, fields in _FIELDS.items()}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if len(text) > MAX_BYTES:
        raise InvalidInput("graph", f"{len(text):,} letters", f"at most {MAX_BYTES:,}")
    try:
        return str(parse_graph(data))
    except InvalidInput:
        return text


def drawable(text: str) -> dict[str, Any]:
    """Return the groups and edges of such a text for the canvas; none if it is not a graph."""
    try:
        data: dict[str, Any] = json.loads(graph_text(json.loads(text)))
    except (ValueError, RecursionError, AttributeError):
        return {"groups": [], "edges": []}
    return data


def _rows(part: str, given: Any, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    if not isinstance(given, list) or len(given) > MAX_BYTES // 10:
        raise InvalidInput(part, given, f"a list of {part}")
    for row in given:
        if not (isinstance(row, Mapping) and set(row) <= set(fields) and all(map(_is_plain, row.values()))):
            raise InvalidInput(part, row, f"short texts and numbers for {', '.join(fields)}")
    return [dict(row) for row in given]


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    return value is None or (isinstance(value, int | float) and abs(value) <= MAX_NUMBER)


def _places(given: Any) -> dict[str, tuple[float, float]]:
    """Return the places of groups; invalid ones are dropped."""
    found = list(given.items())[: MAX_GROUPS + 2] if isinstance(given, Mapping) else []
    return {name: (float(at[0]), float(at[1])) for name, at in found if _is_plain(name) and _is_place(at)}


def _is_place(given: Any) -> bool:
    return (
        isinstance(given, list)
        and len(given) == 2
        and all(isinstance(each, int | float) and _is_plain(each) and abs(each) <= MAX_PLACE for each in given)
    )
