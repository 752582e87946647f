"""Editor of a graph: canvas, tables, gallery, JSON files."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import streamlit as st

from linearity_lab.dashboard.forms import SpecForm
from linearity_lab.data import DatasetShapes, dataset_shapes
from linearity_lab.experiments.dag.canvas import graph_canvas, words
from linearity_lab.experiments.dag.point import DAGSpec
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import prose
from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON
from ntk_core.networks.graphs import (
    GRAPH_TITLES,
    INPUT,
    MAX_BYTES,
    MAX_GROUPS,
    OUTPUT,
    Graph,
    InvalidGraph,
    Verdict,
    example_graphs,
    graph_data,
    graph_verdict,
    in_degrees,
    parse_graph,
)


def judged(text: str, spec: DAGSpec, sentence: str) -> JSON:
    """Return the verdict on the graph in ``text``, or the error ``sentence`` of the form."""
    invalid = {"outcome": "invalid", "title": words()["invalid"]}
    try:
        graph = parse_graph(text)
    except InvalidInput as error:
        return {**invalid, "reasons": [f"{error}."], "at": at_fault(error, text)}
    if sentence:
        return {**invalid, "reasons": [sentence]}
    shapes = _shapes(spec)
    width = spec.widths[-1]
    output = spec.outputs[0] if "linear" not in spec.outputs else "linear"
    found = graph_verdict(
        graph, width, shapes.input_shape, output=output, num_outputs=shapes.num_outputs
    )
    degrees = in_degrees(graph, width, shapes.input_shape, shapes.num_outputs)
    ends = dict.fromkeys(f"{degree:,.4g}" for degree in (found.min_in_degree, found.max_in_degree))
    grows = f"In-degrees {' to '.join(ends)} at m = {width:,}."
    return {
        "outcome": "good" if found.becomes_linear else "bad",
        "title": words()[found.outcome],
        "reasons": [*(reason.words for reason in found.reasons), grows],
        "at": [reason.group for reason in found.reasons if reason.against],
        "degrees": {name: each.value for name, each in degrees.items()},
        "counts": {
            name: dict(zip(each.sources, each.counts, strict=True))
            for name, each in degrees.items()
        },
        "channels": sorted(graph.positioned),
        "summary": _summary(graph, width, found),
    }


def _beside(spec: DAGSpec) -> list[str]:
    """Return sentences on what is drawn beside the graph.

    These are the compared graphs of the gallery, and nonlinear outputs beside a linear one.
    """
    sentences = []
    for name in spec.compared:
        found = graph_verdict(example_graphs()[name], spec.widths[-1], _shapes(spec).input_shape)
        sentences.append(
            f"For comparison, {GRAPH_TITLES[name]}: {found.outcome}. {found.reasons[0].words}"
        )
    nonlinear = [output for output in spec.outputs if output != "linear"]
    if 0 < len(nonlinear) < len(spec.outputs):
        sentences.append(
            "With "
            + ", ".join(nonlinear)
            + " outputs no graph becomes linear: ‖H‖ stays of order 1."
        )
    return sentences


def _shapes(spec: DAGSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.dataset.options())


def at_fault(error: InvalidInput, text: str) -> list[str]:
    """Return the drawn groups, and drawn edges as ``a → b``, at which an error is."""
    if not isinstance(error, InvalidGraph):
        return []
    data = drawable(text)
    drawn_groups = [INPUT, OUTPUT, *(each.get("name", "") for each in data["groups"])]
    drawn_edges = [(each.get("source", ""), each.get("target", "")) for each in data["edges"]]
    found = {name for name in drawn_groups if name in error.groups}
    found |= {f"{one} → {other}" for one, other in drawn_edges if (one, other) in error.edges}
    return sorted(found)


def _summary(graph: Graph, width: int, found: Verdict) -> str:
    layers: dict[int, list[str]] = {}
    for name, depth in graph.depths.items():
        layers.setdefault(depth, []).append(name)
    listed = "; ".join(f"layer {depth}: {', '.join(names)}" for depth, names in layers.items())
    return (
        f"A graph of {len(graph.groups)} groups and {len(graph.edges)} edges between them; "
        f"{listed}. At width {width:,} in-degrees outside the first layer go from "
        f"{found.min_in_degree:,.4g} to {found.max_in_degree:,.4g}. Verdict: {found.outcome}."
    )


Places = Mapping[str, tuple[float, float]]
# Columns and rows; of any number; letters of any text.
MAX_PLACE = 200.0
MAX_NUMBER = 1e12
MAX_TEXT = 80
_FIELDS = {
    "groups": ("name", "size", "activation", "factor", "power"),
    "edges": ("source", "target", "kind", "drop_probability", "kernel_size"),
}


@dataclass
class Edit:
    """The graph on the canvas after an edit; the page's setting ``graph`` has the same text."""

    version: int  # incremented when the graph comes from a preset, the gallery, a file or a URL
    number: int  # links the verdict to this edit
    text: str  # the graph as JSON text, valid or not
    places: Places = field(default_factory=dict)  # name → [column, row] of placed groups
    refusal: str = ""  # why the next report of the browser was rejected


def from_browser(given: object) -> Edit:
    """Parse an edit; the spec validates its graph.

    Raises:
        InvalidInput: for reports that no canvas can send.
    """
    if not isinstance(given, Mapping):
        raise InvalidInput("canvas", given, "an object with groups and edges")
    counts = [given.get(name) for name in ("version", "edit")]
    if not all(isinstance(each, int) and 0 <= each < 2**31 for each in counts):
        raise InvalidInput("canvas", counts, "numbers of a version and of an edit")
    return Edit(
        int(counts[0] or 0), int(counts[1] or 0), graph_text(given), _places(given.get("places"))
    )


def graph_text(given: Mapping[str, object]) -> str:
    """Return groups and edges as JSON text, canonical if they form a graph.

    Raises:
        InvalidInput: for other values than short texts and numbers, or too many.
    """
    data = {part: _rows(part, given.get(part), fields) for part, fields in _FIELDS.items()}
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    if len(text) > MAX_BYTES:
        raise InvalidInput("graph", f"{len(text):,} letters", f"at most {MAX_BYTES:,}")
    try:
        return str(parse_graph(data))
    except InvalidInput:
        return text


def drawable(text: str) -> dict[str, list[JSON]]:
    """Return the groups and edges of such a text for the canvas; none if it is not a graph."""
    try:
        data: dict[str, list[JSON]] = json.loads(graph_text(json.loads(text)))
    except (ValueError, RecursionError, AttributeError):
        return {"groups": [], "edges": []}
    return data


def _rows(part: str, given: object, fields: tuple[str, ...]) -> list[dict[str, object]]:
    if not isinstance(given, list) or len(given) > MAX_BYTES // 10:
        raise InvalidInput(part, given, f"a list of {part}")
    for row in given:
        if not (
            isinstance(row, Mapping)
            and set(row) <= set(fields)
            and all(map(_is_plain, row.values()))
        ):
            raise InvalidInput(part, row, f"short texts and numbers for {', '.join(fields)}")
    return [dict(row) for row in given]


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    return value is None or (isinstance(value, int | float) and abs(value) <= MAX_NUMBER)


def _places(given: object) -> dict[str, tuple[float, float]]:
    """Return the places of groups; invalid ones are dropped."""
    found = list(given.items())[: MAX_GROUPS + 2] if isinstance(given, Mapping) else []
    return {
        name: (float(at[0]), float(at[1]))
        for name, at in found
        if _is_plain(name) and _is_place(at)
    }


def _is_place(given: object) -> bool:
    return (
        isinstance(given, list)
        and len(given) == 2
        and all(
            isinstance(each, int | float) and _is_plain(each) and abs(each) <= MAX_PLACE
            for each in given
        )
    )


def graph_editor(form: SpecForm[DAGSpec]) -> None:
    """Show the canvas of the setting ``graph`` with its verdict."""
    page = form.page
    text: str = st.session_state[f"{page}.graph"]
    drawn: Edit | None = st.session_state.get(f"{page}.drawn")
    if drawn is None or text != drawn.text:
        drawn = st.session_state[f"{page}.drawn"] = Edit(drawn.version + 1 if drawn else 0, 0, text)
    _menus(page, text)
    if drawn.refusal:
        st.error(plain(f"The last change was rejected. {drawn.refusal}."))
    spec = form.spec or form.preset.spec
    data = {
        "width": spec.widths[-1],
        "ends": {INPUT: math.prod(_shapes(spec).input_shape), OUTPUT: _shapes(spec).num_outputs},
        "version": drawn.version,
        "edit": drawn.number,
        "graph": drawable(text),
        "places": drawn.places,
        "judged": judged(text, spec, form.sentences.get("graph", "")),
    }
    graph_canvas(f"{page}.canvas", data, lambda reported: _take_edit(page, reported))
    for sentence in _beside(spec):
        st.caption(plain(sentence))


def _take_edit(page: str, reported: object) -> None:
    drawn: Edit = st.session_state[f"{page}.drawn"]
    try:
        edit = from_browser(reported)
    except InvalidInput as error:
        drawn.refusal = str(error)
        return
    if edit.version == drawn.version:  # not of a graph that another one has replaced meanwhile
        st.session_state[f"{page}.drawn"] = edit
        st.session_state[f"{page}.graph"] = edit.text


def _menus(page: str, text: str) -> None:
    graph = None
    with suppress(InvalidInput):
        graph = parse_graph(text)
    name = next((name for name, example in example_graphs().items() if example == graph), None)
    st.session_state[f"{page}.gallery"] = name  # a custom graph has none
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Gallery of graphs",
            list(GRAPH_TITLES),
            format_func=GRAPH_TITLES.__getitem__,
            index=None if name is None else list(GRAPH_TITLES).index(name),
            placeholder="Another graph",
            key=f"{page}.gallery",
            on_change=_take_example,
            args=(page,),
            help=prose(page, "The canvas"),
            width=340,
        )
        with st.popover("JSON", icon=":material/data_object:"):
            if graph is not None:
                written = json.dumps(graph_data(graph), indent=1, ensure_ascii=False)
                st.download_button(
                    "Export this graph",
                    written,
                    "graph.json",
                    "application/json",
                    on_click="ignore",
                )
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
        st.session_state[f"{page}.graph"] = str(example_graphs()[name])


def _take_file(page: str) -> None:
    upload = st.session_state.get(f"{page}.upload")
    sentence = ""
    if upload is not None:
        try:
            st.session_state[f"{page}.graph"] = str(parse_graph(upload.getvalue()))
        except InvalidInput as error:
            sentence = f"{error}."
    st.session_state[f"{page}.upload_sentence"] = sentence
