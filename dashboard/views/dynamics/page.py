"""A network and its linear model, trained side by side: where they move as one, and where they drift apart."""

from functools import partial

import streamlit as st

from dashboard.charts.style import output_title, width_label
from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.dynamics import figures as figures
from dashboard.views.dynamics.panels import Panel, panels
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.spec import DynamicsSpec

PAGE = "dynamics"
TITLE = "Does the network move like its linear model?"
PRESETS = ("liu-true-and-linearized", "curves-in-one-dimension", "beyond-gradient-descent")
GROUPS = (
    Group("Network", ("architecture.", "outputs")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed")),
    Group("Training", ("methods", "loss", "batch_size", "momentum", "training."), expanded=False),
    Group("Data", ("dataset.", "num_test", "num_followed"), expanded=False),
)


def drawn(
    shown: Shown, width: int, output: str, method: str, axis: figures.TimeAxis, of: figures.Points
) -> tuple[Panel, ...]:
    """All panels."""
    return panels(shown.points, shown.point(width), output, method, axis, of, shown.spec.architecture.kind)


def draw(shown: Shown) -> None:
    """Four figures of one width, output and method; the second one of all widths."""
    with st.container(horizontal=True, vertical_alignment="center"):
        widths, outputs = [point.width for point in shown.points], list(figures.outputs_of(shown.points))
        methods, axes = list(figures.methods_of(shown.points)), list(figures.AXIS_TITLES)
        width = chooser("Width m", widths, lambda m: f"m = {width_label(m)}", key=f"{PAGE}.width", pixels=130)
        output = chooser("Output φ", outputs, output_title, key=f"{PAGE}.output", pixels=190, last=False)
        method = chooser("Method", methods, lambda m: METHODS[m].title, key=f"{PAGE}.method", pixels=210, last=False)
        axis = chooser("Axis", axes, lambda a: f"by {a}", key=f"{PAGE}.axis", pixels=110, last=False)
        of = chooser("Points", figures.POINT_SETS, str, key=f"{PAGE}.points", pixels=160, last=False)
        found = once(PAGE, shown.identity, partial(drawn, shown), width, output, method, axis, of)
    columns = (*st.columns(2, gap="medium"), *st.columns(2, gap="medium"))
    for column, panel in zip(columns, found, strict=True):
        with column:
            st.subheader(panel.title, anchor=False)
            chart(panel.figure, f"{PAGE}.figure.{panel.name}", panel.alt, panel.rows, panel.caption)
    for column, heading in zip(columns[2:], (SHOWS, CHANGES), strict=True):
        column.markdown(says(PAGE, heading))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, PRESETS, DynamicsSpec, GROUPS, draw)
