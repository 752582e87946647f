"""A graph as two tables that people edit, and back; free of Streamlit."""

import json
import math
from typing import Any

import pandas as pd

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import Graph, graph_data, parse_graph

GROUP_COLUMNS = {"name": "str", "size": "Int64", "activation": "str", "factor": "float", "power": "float"}
EDGE_COLUMNS = {"source": "str", "target": "str", "kind": "str", "drop_probability": "float", "kernel_size": "Int64"}
_DEFAULTS = {"kind": "dense", "drop_probability": 0.0, "kernel_size": 3, "factor": 1.0, "power": 1.0}


def tables(graph: Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per group, one row per edge; settings at their defaults are filled in."""
    data = graph_data(graph)
    return _table(data["groups"], GROUP_COLUMNS), _table(data["edges"], EDGE_COLUMNS)


def text_of_tables(groups: pd.DataFrame, edges: pd.DataFrame) -> str:
    """The JSON text of edited tables; that of the graph where they make one, else as they are, for the form to refuse.

    Rows that have no name, or no end, are not yet filled in and do not count.
    """
    data = {"groups": _rows(groups, ("name",)), "edges": _rows(edges, ("source", "target"))}
    try:
        return str(parse_graph(data))
    except InvalidInput:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def graph_or_sentence(text: str | bytes) -> tuple[Graph | None, str]:
    """The graph that a text says, or what is wrong with it, in one sentence."""
    try:
        return parse_graph(text), ""
    except InvalidInput as error:
        return None, f"{error}."


def _table(rows: list[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    filled = [{name: row.get(name, _DEFAULTS.get(name)) for name in columns} for row in rows]
    return pd.DataFrame(filled, columns=list(columns)).astype(
        {name: "object" if kind == "str" else kind for name, kind in columns.items()}
    )


def _rows(table: pd.DataFrame, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    found = []
    for row in table.to_dict("records"):
        given = {str(name): _plain(value) for name, value in row.items() if not _missing(value)}
        if all(name in given for name in needed):
            found.append({name: value for name, value in given.items() if value != _DEFAULTS.get(name)})
    return found


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if hasattr(value, "item") else value
