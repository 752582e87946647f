"""Lower half of the Hessian page: balls around w₀, then one network with its bounds and blocks."""

from collections.abc import Sequence

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Choice, Panel, choose
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.hessian import figures
from linearity_lab.views.hessian import part_figures as parts
from linearity_lab.words.pages import titled_prose
from ntk_core.experiments.hessian.network import titles
from ntk_core.experiments.hessian.result import HessianPoint


def balls(page: str, shown: Shown) -> list[Panel]:
    """Draw suprema over the ball of a chosen measured radius; nothing if none was measured."""
    radii = parts.radii_of(shown.points)

    def ball(quantity: str, radius: float) -> Chart:
        return parts.ball(shown.points, radius, quantity, shown.spec.num_starts)

    def both() -> list[Chart]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.subheader("In the whole ball of radius R around w₀", anchor=False, width="content")
            radius = _radius(page, radii)
        quantities = ("hessian", "kernel_change")
        return [drawn_once(f"{page}.ball", shown.identity, ball, each, radius) for each in quantities]

    return [Panel("In a ball", both)] if radii else []


def one_network(page: str, shown: Shown) -> list[Panel]:
    """Draw one network: its norm between bounds, layer quantities and blocks; nothing if none has any."""
    points = shown.points
    known = titles(figures.networks_of(points))
    detailed = [line for line in known if _has_detail(points, line)]

    def drawn(line: str) -> list[Chart]:
        found = (
            parts.shares(points, line),
            parts.bounded(points, line),
            parts.quantities(points, line),
            parts.blocks(points, line),
        )
        return [chart for chart in found if chart is not None]

    def charts() -> list[Chart]:
        (line,) = choose(page, "One network", Choice("one", "Network", detailed, known.__getitem__, 260))
        found = drawn_once(f"{page}.one", shown.identity, drawn, line)
        if any(chart.name == "quantities" for chart in found):
            st.markdown(titled_prose(page, "Why do Hessian and gradient scale differently?"))
        return found

    return [Panel("One network", charts)] if detailed else []


def _has_detail(points: Sequence[HessianPoint], line: str) -> bool:
    own = figures.of_line(points, line)
    measured = any(run.bound or run.parts or run.vector or run.exact is not None for point in own for run in point.runs)
    shared = any(run.shares for point in own for run in point.runs)
    return measured or shared or parts.blocks_of(points, line) is not None


def _radius(page: str, radii: tuple[float, ...]) -> float:
    if len(radii) == 1:
        st.caption(f"R = {radii[0]:g}")
        return radii[0]
    key = f"{page}.radius"
    if st.session_state.get(key) not in radii:
        st.session_state[key] = radii[len(radii) // 2]
    st.select_slider("Radius R", radii, key=key, format_func=lambda value: f"R = {value:g}", width=260)
    return float(st.session_state[key])  # also without a browser: the site has the initial figure
