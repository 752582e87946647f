"""Lazy by scale, linear by width (Liu, Zhu & Belkin 2020, §1.1; Chizat, Oyallon & Bach 2019)."""

from functools import partial

import streamlit as st

from dashboard.charts.chart import Chart, occurring
from dashboard.components.chart import Choice, choose, output_choice, show_in_pairs
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.lazy import figures

PAGE = "lazy"
TITLE = "Lazy by scale or linear by width?"
GROUPS = (
    Group("Scale vs. width", ("scales", "widths", "num_seeds", "seed", "draws")),
    Group("Network", ("outputs", "starts", "architecture.")),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def charts(shown: Shown, measure: str, output: str, start: str) -> tuple[Chart, ...]:
    """One measure along the scale and along the width, then what the weights do along the width."""
    points, wanted = shown.points, figures.MEASURES[measure]
    return (
        figures.against(points, "scale", output, wanted),
        figures.against(points, "width", output, wanted),
        figures.distances(points, output, start),
        figures.same_parameters(points, figures.nonlinear(points), start, shown.spec.architecture.kind),
    )


def draw(shown: Shown) -> None:
    """Four charts."""
    chosen = choose(
        PAGE,
        Choice("measure", "Measure", list(figures.MEASURES), pixels=260),
        output_choice(occurring(shown.points, "output")),
        Choice("start", "Start", occurring(shown.points, "start"), figures.START_TITLES.__getitem__, 200),
    )
    if shown.spec.almost_everywhere:
        st.caption(shown.spec.almost_everywhere)
    show_in_pairs(PAGE, drawn_once(PAGE, shown.identity, partial(charts, shown), *chosen))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, elsewhere=("architecture.initial_output",))
