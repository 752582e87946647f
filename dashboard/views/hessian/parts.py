"""The lower half of the page of Hessians: balls around w₀, then one network with its bounds and blocks."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.style import hessian_style
from dashboard.components.chart import chart, chooser
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.hessian import figures as figures
from dashboard.views.hessian import part_figures as parts
from dashboard.words.pages import says
from ntk_core.experiments.hessian.result import HessianPoint
from ntk_core.experiments.hessian.spec import Series


def balls(page: str, shown: Shown) -> None:
    """Sups over the ball of a radius that is chosen among those measured; nothing where none was."""
    points, spec = shown.points, shown.spec
    radii = parts.radii_of(points)
    if not radii:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("In the whole ball of radius R around w₀", anchor=False, width="content")
        radius = _radius(page, radii)
    words = parts.ball_words(points, radius, spec.num_starts)
    rows = parts.ball_rows(points, spec.output)

    def ball(quantity: str, radius: float) -> go.Figure:
        return parts.ball_figure(points, radius, quantity, spec.output)

    for column, quantity in zip(st.columns(2, gap="medium"), ("hessian", "kernel_change"), strict=True):
        with column:
            figure = once(f"{page}.ball", shown.identity, ball, quantity, radius)
            said = parts.ball_takeaway(points, radius, quantity, spec.output)
            chart(figure, f"{page}.ball_{quantity}", said, rows, [words])


def one_network(page: str, shown: Shown, beside: DeltaGenerator | None = None) -> None:
    """One network: its norm between its bounds (in the column ``beside``, if given), layer quantities and blocks."""
    points, spec = shown.points, shown.spec
    detailed = [series for series in figures.series_of(points) if _has_detail(points, series)]
    if not detailed:
        return
    with beside or st.container(), st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("One network", anchor=False, width="content")
        titles = {each: hessian_style(*each, spec.output).title for each in detailed}
        series = chooser("Network", detailed, titles.__getitem__, key=f"{page}.one", pixels=260, last=False)
    left, right = st.columns(2, gap="medium")

    def drawn(series: Series) -> tuple[go.Figure | None, go.Figure | None]:
        return parts.bounded(points, series), parts.quantities(points, series)

    bounded, quantities = once(f"{page}.one", shown.identity, drawn, series)
    blocks, rows = parts.blocks_of(points, series), parts.parts_rows(points, series)
    if bounded is not None:
        with beside or left:
            words, medians = parts.bound_words(points, series, spec.output), parts.median_words(points, series)
            chart(bounded, f"{page}.shown_bounds", words, rows, [words, *([medians] if medians else [])])
    if quantities is not None:
        with left if beside else right:
            chart(quantities, f"{page}.quantities", parts.quantity_words(points, series), rows)
            st.markdown(says(page, "Why do Hessian and gradient scale differently?"))
    if blocks is not None:
        with right if beside or quantities is None else left:
            width, found = blocks
            words = parts.block_words(found, series, width, spec.output)
            heatmap = once(f"{page}.blocks", (shown.identity, series), lambda: parts.block_heatmap(found))
            chart(heatmap, f"{page}.shown_blocks", words, parts.block_rows(found), [words])


def _has_detail(points: Sequence[HessianPoint], series: Series) -> bool:
    own = figures.of_series(points, series)
    measured = any(run.bound or run.parts or run.exact is not None for point in own for run in point.runs)
    return measured or parts.blocks_of(points, series) is not None


def _radius(page: str, radii: tuple[float, ...]) -> float:
    if len(radii) == 1:
        st.caption(f"R = {radii[0]:g}")
        return radii[0]
    key = f"{page}.radius"
    if st.session_state.get(key) not in radii:
        st.session_state[key] = radii[len(radii) // 2]
    return st.select_slider("Radius R", radii, key=key, format_func=lambda value: f"R = {value:g}", width=260)
