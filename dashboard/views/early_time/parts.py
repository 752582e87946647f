"""The panels of the page on early time."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.chart import Chart
from dashboard.components.chart import Choice, choose, show_chart
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.early_time import figures, sweep_figures
from dashboard.views.early_time.sweep_figures import AXES
from ntk_core.settings.vocabulary import ACTIVATIONS

_FORMULAS = r"""
At rates $\eta_1$ and $\eta_2$ of the layers, with $s = \|x\|/\sqrt d - 1$, the network follows a linear function of

1. the input, $\ \sqrt{\eta_1+\eta_2}\;\zeta\,x/\sqrt d$,
2. a constant, $\ \sqrt{\eta_1+\eta_2/2}\;\nu/\sqrt d$,
3. its norm, $\ \sqrt{\eta_2}\,(\vartheta_0+\vartheta_1 s+\vartheta_2 s^2)$.

$\zeta = E[\varphi'(g)]$, $\nu = \vartheta_1\sqrt{\mathrm{Tr}[\Sigma^2]/d}$,
$\vartheta_0 = E[\varphi(g)]$, $\vartheta_1 = E[g\varphi'(g)]$, $\vartheta_2 = E[(g^3/2-g)\varphi'(g)]$,
$g \sim N(0,1)$.
"""
_DEEP = "With more hidden layers the weights come from derivatives of the kernel of infinite width instead."


def training(page: str, shown: Shown, left: DeltaGenerator, right: DeltaGenerator) -> None:
    """One quantity along training beside the outputs on single inputs, at a point and activation to choose."""
    points = {point.key: point for point in shown.points if point.runs}

    def name(key: str) -> str:
        return f"{AXES[points[key].swept].letter} = {points[key].value:,}"

    with left:
        views = Choice("view", "Quantity", figures.VIEWS, str.capitalize, 160)
        view, key = choose(page, views, "at", Choice("point", "Point", list(points), name))
        activation, *others = figures.activations_of(points[key])
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
    st.markdown(_FORMULAS + (_DEEP if shown.spec.network.num_hidden > 1 else ""))
    rows = sweep_figures.constant_rows(shown.points[0])
    st.dataframe(rows, hide_index=True, key=f"{page}.constants", alt="Moments of the activation, by name.")


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
