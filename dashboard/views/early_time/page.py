"""A network and the linear model that it follows early in training (Hu, Xiao, Adlam & Pennington 2020)."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.chart import Chart, led_by, occurring
from dashboard.components.chart import Choice, choose, seed_choice, show_chart
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.early_time import figures, sweep_figures
from dashboard.views.early_time.sweep_figures import AXES
from dashboard.words.pages import CHANGES, SHOWS, prose, says
from ntk_core.networks.choices import ACTIVATIONS

PAGE = "early_time"
TITLE = "What does a network learn first?"
GROUPS = (
    Group("Network", ("network.", "width", "width_exponent")),
    Group("Sweep", ("swept", "values", "num_seeds", "seed", "draws")),
    Group("Inputs and target", ("dataset.",), expanded=False),
    Group("Training", ("training.",), expanded=False),
    Group("Kernel", ("kernel_samples", "infinite_width"), expanded=False),
)


def draw(shown: Shown) -> None:
    """Training beside its single outputs, then what depends on width or dimension, kernels and constants."""
    left, right = st.columns(2, gap="medium")
    if any(point.runs for point in shown.points):
        _training(shown, left, right)
    with left:
        if any(point.kernels for point in shown.points):
            _kernels(shown)
        if any(point.runs for point in shown.points):
            _against(shown)
        st.markdown(says(PAGE, SHOWS))
    with right:
        _constants(shown)
        st.markdown(says(PAGE, CHANGES))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw)


def _training(shown: Shown, left: DeltaGenerator, right: DeltaGenerator) -> None:
    """One quantity along training beside the outputs on single inputs, at a point and activation to choose."""
    points = {point.key: point for point in shown.points if point.runs}

    def name(key: str) -> str:
        return f"{AXES[points[key].swept].letter} = {points[key].value:,}"

    with left:
        views = Choice("view", "Quantity", figures.VIEWS, str.capitalize, 160)
        letter = AXES[shown.spec.swept].letter
        swept = Choice("point", "Point", list(points), name, axis=letter, at=lambda key: points[key].value)
        view, key, *seed = choose(
            PAGE, views, "at", swept, *seed_choice(run for point in points.values() for run in point.runs)
        )
        activation, *others = occurring([points[key]], "activation")
        if others:
            (activation,) = choose(PAGE, Choice("activation", "Activation", (activation, *others), _title))

    def charts(key: str, activation: str, view: figures.View, seed: int | None = None) -> tuple[Chart, Chart]:
        (point,) = led_by([points[key]], seed)
        runs = point.of(activation)
        return figures.along_steps(point, runs, view), figures.single_outputs(runs[0])

    drawn = drawn_once(f"{PAGE}.training", shown.identity, charts, key, activation, view, *seed)
    for column, each in zip((left, right), drawn, strict=True):
        with column:
            show_chart(PAGE, each)


def _against(shown: Shown) -> None:
    """Discrepancy or departure time against what is swept; nothing for a single point of a single activation."""
    if len(shown.points) < 2:
        return
    quantities = Choice("quantity", "Quantity", list(sweep_figures.QUANTITIES), str.capitalize, 180)
    chosen = choose(PAGE, quantities, f"against {AXES[shown.spec.swept].title}")
    draw = partial(sweep_figures.against_swept, shown.points)
    show_chart(PAGE, drawn_once(f"{PAGE}.against", shown.identity, draw, *chosen))


def _kernels(shown: Shown) -> None:
    """The distance of the kernels in two norms."""
    show_chart(PAGE, drawn_once(f"{PAGE}.kernels", shown.identity, lambda: sweep_figures.kernel_distance(shown.points)))


def _constants(shown: Shown) -> None:
    """The linear model with its formulas and numbers."""
    st.subheader("The linear model", anchor=False)
    st.markdown(prose(PAGE, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(PAGE, "More hidden layers"))
    rows = sweep_figures.constant_rows(shown.points[0])
    st.dataframe(rows, hide_index=True, key=f"{PAGE}.constants", alt="Moments of the activation, by name.")


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
