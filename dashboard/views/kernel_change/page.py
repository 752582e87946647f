"""Kernel change against width and along training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from functools import partial

import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.numbers import width_label
from dashboard.charts.training import AXIS_TITLES, TimeAxis
from dashboard.components.chart import WIDTH, Choice, choose, seed_choice, show_chart
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.explain import page_answers
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.kernel_change import figures

PAGE = "kernel_change"
TITLE = "When does the tangent kernel stop moving?"
PRESETS = (
    "liu-fig1-left", "liu-fig1-wide", "liu-fig1-right", "liu-fig2", "liu-resnet", "liu-cnn", "liu-mixed",
    "kernel-velocity", "why-one-over-m",
)  # fmt: skip
GROUPS = (
    Group("Network", ("architecture.", "outputs")),
    Group("Widths and seeds", ("swept", "hidden_width", "widths", "num_seeds", "seed", "draws")),
    Group("Training", ("measured", "ball_radius", "training."), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: Shown) -> None:
    """What was measured at w₀; against width and along training side by side, the second one at a width to choose."""
    spec, kind = shown.spec, shown.spec.architecture.kind
    if any(point.at_start for point in shown.points):
        settings = spec.widths, spec.swept, kind, spec.ball_radius
        draw = partial(figures.start_against_width, shown.points, *settings)
        show_chart(PAGE, drawn_once(f"{PAGE}.at_start", shown.identity, draw))
    if spec.trains:
        _training(shown)
    page_answers(PAGE)


def _training(shown: Shown) -> None:
    spec, kind = shown.spec, shown.spec.architecture.kind
    left, right = st.columns(2, gap="medium")
    with right:
        found = [p.width for p in shown.points]
        widths = Choice("shown_width", "Width m", found, width_label, 92, last=True, axis=WIDTH)
        axes = Choice("axis", "Horizontal axis", list(AXIS_TITLES), "by {}".format, 102)
        seeds = seed_choice(run for point in shown.points for run in point.runs)
        width, axis, *seed = choose(PAGE, "Training at width", widths, axes, *seeds)

    def over_widths() -> Chart:
        return figures.change_against_width(shown.points, spec.widths, spec.swept, kind)

    def over_time(width: int, axis: TimeAxis, seed: int | None = None) -> Chart:
        return figures.change_against_time(shown.point(width), axis, spec.training.loss_threshold, kind, seed)

    with left:
        show_chart(PAGE, drawn_once(f"{PAGE}.against_width", shown.identity, over_widths))
    with right:
        show_chart(PAGE, drawn_once(f"{PAGE}.against_time", shown.identity, over_time, width, axis, *seed))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, presets=PRESETS)
