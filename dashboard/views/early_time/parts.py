"""The panels of the page on early time."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.chart import Chart, occurring
from dashboard.components.chart import Choice, choose, show_chart
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.early_time import figures, sweep_figures
from dashboard.views.early_time.sweep_figures import AXES
from dashboard.words.pages import prose
from ntk_core.networks.choices import ACTIVATIONS


def training(page: str, shown: Shown, left: DeltaGenerator, right: DeltaGenerator) -> None:
    """One quantity along training beside the outputs on single inputs, at a point and activation to choose."""
    points = {point.key: point for point in shown.points if point.runs}

    def name(key: str) -> str:
        return f"{AXES[points[key].swept].letter} = {points[key].value:,}"

    with left:
        views = Choice("view", "Quantity", figures.VIEWS, str.capitalize, 160)
        view, key = choose(page, views, "at", Choice("point", "Point", list(points), name))
        activation, *others = occurring([points[key]], "activation")
        if others:
            (activation,) = choose(page, Choice("activation", "Activation", (activation, *others), _title))

    def charts(key: str, activation: str, view: figures.View) -> tuple[Chart, Chart]:
        runs = points[key].of(activation)
        return figures.along_steps(points[key], runs, view), figures.single_outputs(runs[0])

    drawn = once(f"{page}.training", shown.identity, charts, key, activation, view)
    for column, each in zip((left, right), drawn, strict=True):
        with column:
            show_chart(page, each)


def against(page: str, shown: Shown) -> None:
    """Discrepancy or departure time against what is swept; nothing for a single point of a single activation."""
    if len(shown.points) < 2:
        return
    quantities = Choice("quantity", "Quantity", sweep_figures.QUANTITIES, str.capitalize, 180)
    chosen = choose(page, quantities, f"against {AXES[shown.spec.swept].title}")
    draw = partial(sweep_figures.against_swept, shown.points)
    show_chart(page, once(f"{page}.against", shown.identity, draw, *chosen))


def kernels(page: str, shown: Shown) -> None:
    """The distance of the kernels in two norms."""
    show_chart(page, once(f"{page}.kernels", shown.identity, lambda: sweep_figures.kernel_distance(shown.points)))


def constants(page: str, shown: Shown) -> None:
    """The linear model with its formulas and numbers."""
    st.subheader("The linear model", anchor=False)
    st.markdown(prose(page, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(page, "More hidden layers"))
    rows = sweep_figures.constant_rows(shown.points[0])
    st.dataframe(rows, hide_index=True, key=f"{page}.constants", alt="Moments of the activation, by name.")


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
