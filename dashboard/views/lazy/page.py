"""Lazy by scale, linear by width (Liu, Zhu & Belkin 2020, §1.1; Chizat, Oyallon & Bach 2019)."""

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.style import output_title
from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.lazy import figures as figures
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.experiments.lazy.spec import LazySpec

PAGE = "lazy"
TITLE = "Lazy by scale or linear by width?"
GROUPS = (
    Group("Scale vs. width", ("scales", "widths", "num_seeds", "seed")),
    Group("Network", ("outputs", "starts", "architecture.")),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)
HEADINGS = ("Along the scale", "Along the width", "How far the weights move", "Same weights, two outputs")


def drawn(shown: Shown, measure: str, output: str, start: str) -> tuple[go.Figure, ...]:
    """All figures."""
    points, wanted = shown.points, figures.MEASURES[measure]
    return (
        figures.against(points, "scale", output, wanted),
        figures.against(points, "width", output, wanted),
        figures.distances(points, output, start),
        figures.same_parameters(points, figures.nonlinear(points), start, shown.spec.architecture.kind),
    )


def draw(shown: Shown) -> None:
    """One measure along both routes, then what the weights do along the width."""
    points = shown.points
    with st.container(horizontal=True, vertical_alignment="center"):
        measure = chooser("Measure", list(figures.MEASURES), str, key=f"{PAGE}.measure", pixels=260, last=False)
        outputs, starts = figures.outputs_of(points), figures.starts_of(points)
        output = chooser("Output φ", outputs, output_title, key=f"{PAGE}.output", pixels=190, last=False)
        start = chooser("Start", starts, figures.start_title, key=f"{PAGE}.start", pixels=200, last=False)
        words = figures.takeaways(points, output, start, measure)
        pictures = once(PAGE, shown.identity, partial(drawn, shown), measure, output, start)
    below = figures.captions(points, output, measure)
    for index, column in enumerate((*st.columns(2, gap="medium"), *st.columns(2, gap="medium"))):
        with column:
            st.subheader(HEADINGS[index], anchor=False)
            chart(pictures[index], f"{PAGE}.figure{index + 1}", words[index], figures.rows(points), below[index])
            if index < 2:
                st.markdown(says(PAGE, (SHOWS, CHANGES)[index]))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, ("liu-lazy",), LazySpec, GROUPS, draw, elsewhere=("architecture.initial_output",))
