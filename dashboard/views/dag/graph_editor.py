"""A graph that is edited as two tables, chosen from the gallery, brought along and taken away as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.views.dag.graph_tables import graph_or_sentence, tables, text_of_tables
from dashboard.words.sentences import plain
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.networks.graphs import EDGE_KINDS, EXAMPLE_TITLES, INPUT, OUTPUT, Graph, example_graphs, graph_data


@dataclass
class _Editor:
    """What the editor remembers: tables are laid out anew only when the graph comes from elsewhere.

    Attributes:
        version: of the tables; a new one forgets what was typed into the old one.
        text: the graph's JSON as the editor knows it.
        laid_out: the graph that the tables began with; what was typed is kept apart by Streamlit.
        usable: the last graph that could be used.
    """

    version: int
    text: str
    laid_out: Graph
    usable: Graph

    def __post_init__(self) -> None:
        self.seen = text_of_tables(*tables(self.laid_out))


def graph_editor(page: str) -> tuple[Graph, bool]:
    """Both tables over the setting ``graph`` of the page's form: (the last usable graph, whether it is theirs)."""
    editor, sentence = _editor(page)
    _menus(page, editor.usable, not sentence)
    if sentence:
        st.error(plain(f"Graph: {sentence}"))
    groups, edges = tables(editor.laid_out)
    tabs = st.tabs(["Groups of neurons", "Edges"])
    with tabs[0]:
        edited_groups = _edited(f"{page}.groups.{editor.version}", groups, _group_columns())
    with tabs[1]:
        edited_edges = _edited(f"{page}.edges.{editor.version}", edges, _edge_columns(edited_groups))
    text = text_of_tables(edited_groups, edited_edges)
    if text != editor.text and text != editor.seen:
        editor.text = editor.seen = st.session_state[_key(page)] = text
        st.rerun()
    return editor.usable, not sentence


def _key(page: str) -> str:
    return f"{page}.graph"


def _editor(page: str) -> tuple[_Editor, str]:
    """The editor's memory, brought up to date with the form."""
    text: str = st.session_state[_key(page)]
    editor: _Editor | None = st.session_state.get(f"{page}.editor")
    graph, sentence = graph_or_sentence(text)
    if editor is None or text != editor.text:  # a preset, the gallery, a file or a URL
        last = editor.usable if editor else next(iter(example_graphs().values()))
        editor = _Editor(editor.version + 1 if editor else 0, text, graph or last, graph or last)
        st.session_state[f"{page}.editor"] = editor
    if graph is not None:
        editor.usable = graph
    return editor, sentence


def _menus(page: str, graph: Graph, is_present: bool) -> None:
    names = [*(name for name, example in example_graphs().items() if is_present and example == graph), None]
    st.session_state[f"{page}.gallery"] = names[0]  # an edited one has none
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Gallery of graphs",
            list(EXAMPLE_TITLES),
            format_func=EXAMPLE_TITLES.__getitem__,
            index=None if names[0] is None else list(EXAMPLE_TITLES).index(names[0]),
            placeholder="Your own graph",
            key=f"{page}.gallery",
            on_change=_take_example,
            args=(page,),
            width=260,
        )
        with st.popover("JSON", icon=":material/data_object:"):
            text = json.dumps(graph_data(graph), indent=1, ensure_ascii=False)
            st.download_button("Export this graph", text, "graph.json", "application/json", on_click="ignore")
            st.file_uploader(
                "Import a graph",
                type="json",
                key=f"{page}.upload",
                on_change=_take_file,
                args=(page,),
                max_upload_size=1,
            )
    # Below, since the menu closes when the page runs again.
    if st.session_state.get(f"{page}.upload_sentence"):
        st.error(plain(f"The file was not imported. {st.session_state[f'{page}.upload_sentence']}"))


def _take_example(page: str) -> None:
    name = st.session_state[f"{page}.gallery"]
    st.session_state[f"{page}.upload_sentence"] = ""
    if name is not None:
        st.session_state[_key(page)] = str(example_graphs()[name])


def _take_file(page: str) -> None:
    upload = st.session_state.get(f"{page}.upload")
    sentence = ""
    if upload is not None:
        graph, sentence = graph_or_sentence(upload.getvalue())
        if graph is not None:
            st.session_state[_key(page)] = str(graph)
    st.session_state[f"{page}.upload_sentence"] = sentence


def _edited(key: str, table: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    return st.data_editor(table, key=key, num_rows="dynamic", hide_index=True, column_config=columns, placeholder="–")


def _group_columns() -> dict[str, Any]:
    columns = st.column_config
    return {
        "name": columns.TextColumn("Group", required=True, max_chars=40),
        "size": columns.NumberColumn(
            "Neurons", help="The same number at every width; empty: factor · m^power.", step=1
        ),
        "activation": columns.SelectboxColumn(
            "σ", options=list(ACTIVATIONS), help="Empty: the activation of the whole network."
        ),
        "factor": columns.NumberColumn("Factor", help="Of the width m, where no number is given.", default=1.0),
        "power": columns.NumberColumn("Power", help="Of the width m, where no number is given.", default=1.0),
    }


def _edge_columns(groups: pd.DataFrame) -> dict[str, Any]:
    columns, names = st.column_config, [name for name in groups["name"] if isinstance(name, str)]
    kinds = "; ".join(f"{term.title}: {term.formula}" for term in EDGE_KINDS.values())
    return {
        "source": columns.SelectboxColumn("From", options=[INPUT, *names], required=True),
        "target": columns.SelectboxColumn("To", options=[*names, OUTPUT], required=True),
        "kind": columns.SelectboxColumn("Kind", options=list(EDGE_KINDS), help=kinds, default="dense"),
        "drop_probability": columns.NumberColumn(
            "Dropped", help="Probability that an edge is removed, permanently.", step=0.05, default=0.0
        ),
        "kernel_size": columns.NumberColumn("Filter", help="Of shared weights, per side.", step=1, default=3),
    }
