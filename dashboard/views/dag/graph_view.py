"""A graph drawn, with its verdict and its numbers."""

from typing import Literal

import streamlit as st

from dashboard.components.chart import show_chart
from dashboard.components.drawn_once import drawn_once
from dashboard.views.dag.graph_drawing import graph_drawing
from dashboard.words.sentences import plain
from ntk_core.data import dataset_shapes
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import EXAMPLE_TITLES, Graph, Verdict, example_graphs, verdict

_LOOKS: dict[str, tuple[str, Literal["green", "orange", "red"], str]] = {
    "wide": ("Wide: becomes linear", "green", ":material/check_circle:"),
    "wide but for a few": ("Wide but for a few neurons: becomes linear", "green", ":material/check_circle:"),
    "not wide": ("Not wide: linearity is not guaranteed", "red", ":material/cancel:"),
    "nonlinear output": ("Nonlinear output: does not become linear", "red", ":material/cancel:"),
}


def graph_view(page: str, graph: Graph, spec: DAGSpec, is_present: bool = True) -> None:
    """The drawing at the largest width of the sweep, what its lines mean, and what the theorems say.

    Args:
        is_present: whether the tables say this graph; otherwise it is the last usable one, and no verdict is given.
    """
    shapes, width = dataset_shapes(spec.dataset.name, **spec.dataset.options()), spec.widths[-1]
    sizes = (graph, width, shapes.input_shape, shapes.num_outputs)
    nonlinear = [output for output in spec.outputs if output != "linear"]
    judged = spec.outputs[0] if len(nonlinear) == len(spec.outputs) else "linear"
    found = verdict(graph, width, shapes.input_shape, output=judged, num_outputs=shapes.num_outputs)
    if not is_present:
        st.warning("This is the last usable graph, not the one in the tables. Correct the tables to see yours judged.")
    show_chart(page, drawn_once(f"{page}.drawing", (sizes, judged), lambda: graph_drawing(*sizes, found)))
    if not is_present:
        return
    _verdict_panel(found, width)
    for name in spec.compared:
        other = verdict(example_graphs()[name], width, shapes.input_shape)
        st.caption(f"Beside it, {EXAMPLE_TITLES[name]}: {other.outcome}. {plain(other.reasons[0].words)}")
    if nonlinear and judged == "linear":
        st.caption("With " + ", ".join(nonlinear) + " outputs no graph becomes linear: ‖H‖ stays of order 1.")


def _verdict_panel(found: Verdict, width: int) -> None:
    """The verdict, its reasons and the in-degrees at one width."""
    words, color, icon = _LOOKS[found.outcome]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(words, icon=icon, color=color)
        st.caption(
            f"in-degrees {found.min_in_degree:,.4g} to {found.max_in_degree:,.4g} at m = {width:,}", width="content"
        )
    st.markdown("\n".join(f"- {plain(reason.words)}" for reason in found.reasons))
