"""A graph that is drawn on a canvas or written into its tables, or comes from the gallery or a JSON file."""

import json
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from linearity_lab.components.forms import SpecForm
from linearity_lab.views.dag.canvas import graph_canvas
from linearity_lab.views.dag.edits import Places, drawable, from_browser
from linearity_lab.views.dag.graph_verdict import beside, judged, sizes
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import prose
from ntk_core.errors import InvalidInput
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import GRAPH_TITLES, Graph, example_graphs, graph_data, parse_graph


@dataclass
class _Drawn:
    """What the session remembers of the canvas; the graph itself is the setting ``graph`` of the page's form.

    Attributes:
        version: a graph that comes from elsewhere (a preset, the gallery, a file, a URL) is a new one.
        text: the graph's JSON as the canvas last sent or received it.
        edit: the number of the last edit.
        places: where groups were put: layout only, which no spec knows.
        refusal: why what the browser reported last was not taken.
    """

    version: int
    text: str
    edit: int = 0
    places: Places = field(default_factory=dict)
    refusal: str = ""


def graph_editor(page: str, form: SpecForm[DAGSpec]) -> None:
    """The canvas over the setting ``graph`` of the page's form, with the verdict on it."""
    text: str = st.session_state[_key(page)]
    drawn: _Drawn | None = st.session_state.get(_memory(page))
    if drawn is None or text != drawn.text:
        drawn = st.session_state[_memory(page)] = _Drawn(drawn.version + 1 if drawn else 0, text)
    graph = _graph(text)
    _menus(page, graph)
    if drawn.refusal:
        st.error(plain(f"The last change was rejected. {drawn.refusal}."))
    spec = form.spec or form.preset.spec
    data = {
        **sizes(spec),
        "version": drawn.version,
        "edit": drawn.edit,
        "graph": drawable(text),
        "places": drawn.places,
        "judged": judged(text, spec, form.sentences.get("graph", "")),
    }
    graph_canvas(f"{page}.canvas", data, lambda reported: _take_edit(page, reported))
    for sentence in beside(spec):
        st.caption(plain(sentence))


def _key(page: str) -> str:
    return f"{page}.graph"


def _memory(page: str) -> str:
    return f"{page}.drawn"


def _graph(text: str) -> Graph | None:
    try:
        return parse_graph(text)
    except InvalidInput:
        return None


def _take_edit(page: str, reported: Any) -> None:
    drawn: _Drawn = st.session_state[_memory(page)]
    try:
        edit = from_browser(reported)
    except InvalidInput as error:
        drawn.refusal = str(error)
        return
    if edit.version == drawn.version:  # not of a graph that another one has replaced meanwhile
        st.session_state[_memory(page)] = _Drawn(edit.version, edit.text, edit.number, edit.places)
        st.session_state[_key(page)] = edit.text


def _menus(page: str, graph: Graph | None) -> None:
    name = next((name for name, example in example_graphs().items() if example == graph), None)
    st.session_state[f"{page}.gallery"] = name  # a custom graph has none
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Gallery of graphs",
            list(GRAPH_TITLES),
            format_func=GRAPH_TITLES.__getitem__,
            index=None if name is None else list(GRAPH_TITLES).index(name),
            placeholder="Your own graph",
            key=f"{page}.gallery",
            on_change=_take_example,
            args=(page,),
            help=prose(page, "The canvas"),
            width=340,
        )
        with st.popover("JSON", icon=":material/data_object:"):
            if graph is not None:
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
        try:
            st.session_state[_key(page)] = str(parse_graph(upload.getvalue()))
        except InvalidInput as error:
            sentence = f"{error}."
    st.session_state[f"{page}.upload_sentence"] = sentence
