"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.style import output_title, width_label
from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.optimization import figures as figures
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.experiments.optimization.spec import OptimizationSpec

PAGE = "optimization"
TITLE = "Does training need a constant kernel?"
GROUPS = (
    Group("Network", ("outputs", "architecture.")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed")),
    Group("Training", ("rates", "training.")),
    Group("Data", ("dataset.",), expanded=False),
)
HEADINGS = ("The loss and its bound", "The kernel keeps moving", "Its spectrum along the path", "PL* along the path")


def drawn(shown: Shown, width: int, output: str, axis: figures.StepAxis) -> tuple[go.Figure, ...]:
    """All figures."""
    point = shown.point(width)
    return (
        figures.loss_against_step(point, output, axis),
        figures.change_against_width(shown.points, shown.spec.widths, shown.spec.architecture.kind),
        figures.spectrum_against_step(point, output),
        figures.pl_against_step(point, output),
    )


def draw(shown: Shown) -> None:
    """Four figures of one width and output; the second one of all."""
    with st.container(horizontal=True, vertical_alignment="center"):
        outputs = figures.outputs_of(shown.points)
        output = chooser("Output φ", outputs, output_title, key=f"{PAGE}.output", pixels=230, last=False)
        widths = [point.width for point in shown.points]
        width = chooser("Width m", widths, lambda m: f"m = {width_label(m)}", key=f"{PAGE}.width", pixels=130)
        axis = chooser("Steps", figures.STEP_AXES, "{} axis".format, key=f"{PAGE}.axis", pixels=130, last=False)
        pictures = once(PAGE, shown.identity, partial(drawn, shown), width, output, axis)
        point = shown.point(width)
        words = figures.takeaways(shown.points, point, output)
    by_run, by_step = figures.run_rows(shown.points), figures.step_rows(point, output)
    below: tuple[list[str], ...] = (figures.caption(point, output), figures.change_caption(shown.points), [], [])
    columns = (*st.columns(2, gap="medium"), *st.columns(2, gap="medium"))
    for index, column in enumerate(columns):
        with column:
            st.subheader(HEADINGS[index], anchor=False)
            rows = by_run if index == 1 else by_step
            chart(pictures[index], f"{PAGE}.figure{index + 1}", words[index], rows, below[index])
            if index < 2:
                st.markdown(says(PAGE, (SHOWS, CHANGES)[index]))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, ("liu-section5",), OptimizationSpec, GROUPS, draw)
