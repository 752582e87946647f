"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

import streamlit as st

from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group, SpecForm
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.dag import figures as figures
from dashboard.views.dag.graph_editor import graph_editor
from dashboard.views.dag.graph_view import graph_view
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.experiments.dag.spec import DAGSpec

PAGE = "dag"
TITLE = "Does this graph become linear?"
PRESETS = (
    "zhu-fig2",
    "zhu-bottleneck-neurons",
    "zhu-preactivations",
    "zhu-skip",
    "zhu-shared",
    "zhu-unequal",
    "zhu-nonlinear-output",
    "zhu-pl",
)
GROUPS = (
    Group("Network", ("activation", "outputs", "use_bias", "compared")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed")),
    Group("Measured", ("num_hessians", "pre_activations", "ball_radius"), expanded=False),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: Shown) -> None:
    """Every measure against width or realized in-degree, with its words and numbers."""
    points, widths = shown.points, shown.spec.widths
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Measured, against the", anchor=False, width="content")
        axis = chooser("Axis", figures.axes_of(points), figures.AXIS_TITLES.__getitem__, key=f"{PAGE}.axis",
                       pixels=260, last=False)  # fmt: skip
        pictures = once(PAGE, shown.identity, lambda axis: figures.pictures(points, widths, axis), axis)
    for first in range(0, len(pictures), 2):  # row by row, so that a phone shows them in their order
        for column, each in zip(st.columns(2, gap="medium"), pictures[first : first + 2], strict=False):
            with column:
                chart(each.figure, f"{PAGE}.{each.name}", each.words, figures.rows(points), each.caption)
    for column, heading in zip(st.columns(2, gap="medium"), (SHOWS, CHANGES), strict=True):
        column.markdown(says(PAGE, heading))


def editor(form: SpecForm[DAGSpec]) -> None:
    """The graph as tables beside its drawing and its verdict."""
    tables, picture = st.columns([6, 7], gap="medium")
    with tables:
        graph, _ = graph_editor(PAGE)
    with picture:
        graph_view(PAGE, graph, form.spec or form.preset.spec)


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, PRESETS, DAGSpec, GROUPS, draw, elsewhere=("graph",), between=editor)
