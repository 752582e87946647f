"""Kernel change against width and along training (Liu, Zhu & Belkin 2020, Fig. 1)."""

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.style import width_label
from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.kernel_change import figures as figures
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec

PAGE = "kernel_change"
TITLE = "When does the tangent kernel stop moving?"
PRESETS = ("liu-fig1-left", "liu-fig1-right", "liu-fig2", "liu-resnet", "liu-cnn", "liu-mixed")
GROUPS = (
    Group("Network", ("architecture.", "outputs")),
    Group("Widths and seeds", ("swept", "hidden_width", "widths", "num_seeds", "seed")),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: Shown) -> None:
    """Both figures side by side, each with its words and numbers, and where they come from."""
    left, right = st.columns(2, gap="medium")
    with right, st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Training at width", anchor=False, width="content")
        widths = [point.width for point in shown.points]
        width = chooser("Width m", widths, width_label, key=f"{PAGE}.shown_width", pixels=100)
        st.subheader("by", anchor=False, width="content")
        axis = chooser("Horizontal axis", list(figures.AXIS_TITLES), str, key=f"{PAGE}.axis", pixels=90, last=False)
    point, kind = shown.point(width), shown.spec.architecture.kind

    def over_widths() -> go.Figure:
        return figures.change_against_width(shown.points, shown.spec.widths, shown.spec.swept, kind)

    def over_time(width: int, axis: figures.TimeAxis) -> go.Figure:
        return figures.change_against_time(shown.point(width), axis, shown.spec.training.loss_threshold, kind)

    against_width = once(f"{PAGE}.against_width", shown.identity, over_widths)
    against_time = once(f"{PAGE}.against_time", shown.identity, over_time, width, axis)
    words = figures.takeaway(shown.points), figures.time_takeaway(point)
    with left:
        st.subheader("Against width", anchor=False)
        rows = figures.width_rows(shown.points)
        chart(against_width, f"{PAGE}.against_width", words[0], rows, figures.caption(shown.points))
        st.markdown(says(PAGE, SHOWS))
    with right:
        chart(against_time, f"{PAGE}.against_time", words[1], figures.time_rows(point), figures.caption([point]))
        st.markdown(says(PAGE, CHANGES))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, PRESETS, KernelChangeSpec, GROUPS, draw)
