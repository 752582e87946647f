"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

from functools import partial

import streamlit as st

from linearity_lab.components.chart import Choice, Panel, choose, panels
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.dag import figures
from linearity_lab.views.dag.graph_editor import graph_editor

PAGE = "dag"
TITLE = "Does this graph become linear?"
CONTROLS = ("activation", "outputs", "widths")
GROUPS = (
    Group("Network", ("activation", "outputs", "use_bias", "compared")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws")),
    Group("Measured", ("num_hessians", "pre_activations", "ball_radius")),
    Group("Training", ("training.",)),
    Group("Data", ("dataset.",)),
)
TABS = {
    "change": "Kernel change",
    "hessian": "Hessian norm",
    "layer_hessian": "‖H‖ of pre-activations",
    "layer_change": "ΔK of pre-activations",
    "eigenvalue": "Smallest eigenvalue",
    "gradient": "Gradient",
}


def draw(shown: Shown) -> list[Panel]:
    """Every measure against width or realized in-degree."""
    axes = Choice("axis", "Axis", figures.axes_of(shown.points), figures.AXIS_TITLES.__getitem__, 260)
    chosen = choose(PAGE, "Against the", axes)
    if shown.spec.almost_everywhere:
        st.caption(shown.spec.almost_everywhere)
    charts = partial(figures.charts, shown.points, shown.spec.widths, drawn=figures.drawn_title(shown.spec.graph))
    return panels(drawn_once(PAGE, shown.identity, charts, *chosen), TABS)


def show() -> None:
    """Draw the page."""
    experiment_page(
        PAGE, TITLE, GROUPS, draw, controls=CONTROLS, elsewhere=("graph",), editor=partial(graph_editor, PAGE)
    )
