"""Canvas on which users draw a graph: a custom component without verdicts."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from linearity_lab.dashboard.components import component
from linearity_lab.words.markdown import read
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.networks.graphs import EDGE_KINDS

NAME = "graph"
FOLDER = Path(__file__).parent
_PARTS = ("model", "picture", "hand", "fields", "canvas")  # in the order of their imports
_mount = component(NAME, FOLDER / "canvas.js", parts=_PARTS)


def graph_canvas(key: str, data: dict[str, object], take: Callable[[object], None]) -> None:
    """Show the canvas and its tables.

    Args:
        data: ``version`` (another one lets it take over ``graph`` and ``places``), ``edit`` (the
            number of the edit that ``judged`` is about), the sizes that boxes need; see
            :mod:`linearity_lab.experiments.dag.graph_editor`.
        take: callback with the unchecked report of the browser, before the page reruns.
    """
    _mount(
        key=key,
        data={**data, "words": words()},
        on_edit_change=lambda: take(st.session_state[key].edit),
    )


@cache
def words() -> dict[str, object]:
    """Return all texts of the component.

    Raises:
        WordsError: some are missing.
    """
    canvas = read(FOLDER.parent / "words.md").sections["The canvas"]
    return {
        **canvas.fields,
        "fields": {
            name.replace(" ", "_"): text for name, text in canvas.sections["Fields"].fields.items()
        },
        "signs": dict(canvas.sections["Signs"].fields),
        "kinds": {name: term.title for name, term in EDGE_KINDS.items()},
        "activations": {name: term.title for name, term in ACTIVATIONS.items()},
    }
