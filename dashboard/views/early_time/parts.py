"""The panels of the page on early time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components.chart import chart, chooser
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.early_time import figures as early_time
from dashboard.views.early_time import sweep_figures as early_sweep
from dashboard.words.pages import prose
from ntk_core.experiments.early_time.result import EarlyPoint
from ntk_core.networks.choices import ACTIVATIONS

_WORDS = {"width": "m", "input_dim": "d"}


def training(page: str, shown: Shown, left: DeltaGenerator, right: DeltaGenerator) -> None:
    """One quantity along training beside the outputs on single inputs, at a point and activation to choose."""
    points = {point.key: point for point in shown.points if point.runs}
    with left, st.container(horizontal=True, vertical_alignment="center"):
        view = chooser("Quantity", list(early_time.VIEWS), str.capitalize, key=f"{page}.view", pixels=160, last=False)
        st.subheader("at", anchor=False, width="content")
        key = chooser(
            "Point", list(points), lambda key: _name(points[key]), key=f"{page}.point", pixels=130, last=False
        )
        names = list(early_time.activations_of(points[key]))
        activation = names[0]
        if len(names) > 1:
            activation = chooser("Activation", names, _title, key=f"{page}.activation", pixels=130, last=False)
    point = points[key]
    runs = point.of(activation)
    along, single = once(f"{page}.training", shown.identity, partial(_training, points), key, activation, view)
    over_time = early_time.takeaway(runs)
    with left:
        rows, words = early_time.training_rows(runs), early_time.caption(point, runs)
        chart(along, f"{page}.training", over_time, rows, [over_time, *words])
    with right:
        st.subheader("Outputs on single test inputs", anchor=False)
        words = [early_time.output_takeaway(runs[0])]
        chart(single, f"{page}.outputs", words[0], early_time.output_rows(runs[0]), words)


def _training(
    points: Mapping[str, EarlyPoint], key: str, activation: str, view: early_time.View
) -> tuple[go.Figure, go.Figure]:
    """Both figures of one point and activation."""
    runs = points[key].of(activation)
    return early_time.along_training(runs, view), early_time.single_outputs(runs[0])


def against(page: str, shown: Shown) -> None:
    """Discrepancy or departure time against what is swept; nothing for a single point of a single activation."""
    if len(shown.points) < 2:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        quantity = chooser(
            "Quantity", list(early_sweep.QUANTITIES), str.capitalize, key=f"{page}.quantity", pixels=180, last=False
        )
        st.subheader(f"against {early_sweep.SWEPT_TITLES[shown.spec.swept]}", anchor=False, width="content")
    words = early_sweep.sweep_takeaway(shown.points, quantity)
    figure = once(f"{page}.against", shown.identity, partial(early_sweep.against_swept, shown.points), quantity)
    chart(figure, f"{page}.against", words, early_sweep.sweep_rows(shown.points), [words])


def kernels(page: str, shown: Shown) -> None:
    """The distance of the kernels in two norms."""
    st.subheader("Kernel at initialization and linear kernel", anchor=False)
    words = early_sweep.kernel_takeaway(shown.points)
    figure = once(f"{page}.kernels", shown.identity, partial(early_sweep.kernel_distance, shown.points))
    chart(figure, f"{page}.kernels", words, early_sweep.comparison_rows(shown.points), [words])


def constants(page: str, shown: Shown) -> None:
    """The linear model with its formulas and numbers."""
    st.subheader("The linear model", anchor=False)
    st.markdown(prose(page, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(page, "More hidden layers"))
    rows = early_sweep.constant_rows(shown.points[0])
    st.dataframe(rows, hide_index=True, key=f"{page}.constants", alt="Moments of the activation, by name.")


def _name(point: EarlyPoint) -> str:
    return f"{_WORDS[point.swept]} = {point.value:,}"


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
