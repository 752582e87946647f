"""The lower half of the page of Hessians: balls around w₀, then one network with its bounds and blocks."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.chart import Chart
from dashboard.components.chart import Choice, choose, show_chart
from dashboard.components.drawn_once import drawn_once
from dashboard.components.run_panel import Shown
from dashboard.views.hessian import figures
from dashboard.views.hessian import part_figures as parts
from dashboard.words.pages import says
from ntk_core.experiments.hessian.network import titles
from ntk_core.experiments.hessian.result import HessianPoint


def balls(page: str, shown: Shown) -> None:
    """Sups over the ball of a radius that is chosen among those measured; nothing where none was."""
    radii = parts.radii_of(shown.points)
    if not radii:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("In the whole ball of radius R around w₀", anchor=False, width="content")
        radius = _radius(page, radii)

    def ball(quantity: str, radius: float) -> Chart:
        return parts.ball(shown.points, radius, quantity, shown.spec.num_starts)

    for column, quantity in zip(st.columns(2, gap="medium"), ("hessian", "kernel_change"), strict=True):
        with column:
            show_chart(page, drawn_once(f"{page}.ball", shown.identity, ball, quantity, radius))


def one_network(page: str, shown: Shown, beside: DeltaGenerator | None = None) -> None:
    """One network: its norm between its bounds (in the column ``beside``, if given), layer quantities and blocks."""
    points = shown.points
    known = titles(figures.networks_of(points))
    detailed = [line for line in known if _has_detail(points, line)]
    if not detailed:
        return
    with beside or st.container():
        (line,) = choose(page, "One network", Choice("one", "Network", detailed, known.__getitem__, 260))
    left, right = st.columns(2, gap="medium")

    def drawn(line: str) -> tuple[Chart | None, ...]:
        return parts.bounded(points, line), parts.quantities(points, line), parts.blocks(points, line)

    bounded, quantities, blocks = drawn_once(f"{page}.one", shown.identity, drawn, line)
    if bounded is not None:
        with beside or left:
            show_chart(page, bounded)
    if quantities is not None:
        with left if beside else right:
            show_chart(page, quantities)
            st.markdown(says(page, "Why do Hessian and gradient scale differently?"))
    if blocks is not None:
        with right if beside or quantities is None else left:
            show_chart(page, blocks)


def _has_detail(points: Sequence[HessianPoint], line: str) -> bool:
    own = figures.of_line(points, line)
    measured = any(run.bound or run.parts or run.vector or run.exact is not None for point in own for run in point.runs)
    return measured or parts.blocks_of(points, line) is not None


def _radius(page: str, radii: tuple[float, ...]) -> float:
    if len(radii) == 1:
        st.caption(f"R = {radii[0]:g}")
        return radii[0]
    key = f"{page}.radius"
    if st.session_state.get(key) not in radii:
        st.session_state[key] = radii[len(radii) // 2]
    return st.select_slider("Radius R", radii, key=key, format_func=lambda value: f"R = {value:g}", width=260)
