"""A network and the linear model that it follows early in training (Hu, Xiao, Adlam & Pennington 2020)."""

from functools import partial

import streamlit as st

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.components.chart import Choice, Panel, choose, panels, seed_choice
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.early_time import figures
from linearity_lab.views.early_time.figures import AXES
from linearity_lab.words.pages import prose
from ntk_core.networks.choices import ACTIVATIONS

PAGE = "early_time"
TITLE = "What does a network learn first?"
CONTROLS = ("network.activations", "values", "dataset.num_samples")
GROUPS = (
    Group("Network", ("network.", "width", "width_exponent")),
    Group("Sweep", ("swept", "values", "num_seeds", "seed", "draws")),
    Group("Inputs and target", ("dataset.",)),
    Group("Training", ("training.",)),
    Group("Kernel", ("kernel_samples", "infinite_width")),
)


def draw(shown: Shown) -> list[Panel]:
    """Return training, single outputs, sweeps over width or dimension, kernels, and the linear model."""
    trained = any(point.runs for point in shown.points)
    found = _training(shown) if trained else []
    if any(point.kernels for point in shown.points):
        found += [Panel("Kernels", partial(_kernels, shown))]
    if trained and len(shown.points) > 1:
        found += [Panel(f"Against {AXES[shown.spec.swept].title}", partial(_against, shown))]
    return [*found, Panel("The linear model", partial(_constants, shown))]


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)


def _training(shown: Shown) -> list[Panel]:
    """Draw one quantity during training and outputs on single inputs, with a choice of point and activation."""
    points = {point.key: point for point in shown.points if point.runs}

    def name(key: str) -> str:
        return f"{AXES[points[key].swept].letter} = {points[key].value:,}"

    # The activations depend on the chosen point.
    at = st.session_state.get(f"{PAGE}.point")
    occur = occurring([points[at] if at in points else next(iter(points.values()))], "activation")
    activations = [Choice("activation", "Activation", occur, _title)] if len(occur) > 1 else []
    views = Choice("view", "Quantity", figures.VIEWS, str.capitalize, 160)
    letter = AXES[shown.spec.swept].letter
    swept = Choice("point", "Point", list(points), name, axis=letter, at=lambda key: points[key].value)
    seeds = seed_choice(run for point in points.values() for run in point.runs)
    key, *rest = choose(PAGE, swept, *activations, more=[views, *seeds])
    activation = rest.pop(0) if activations else occur[0]

    def charts(key: str, activation: str, view: figures.View, seed: int | None = None) -> tuple[Chart, Chart]:
        (point,) = led_by([points[key]], seed)
        runs = point.of(activation)
        return figures.along_steps(point, runs, view), figures.single_outputs(runs[0])

    return panels(drawn_once(f"{PAGE}.training", shown.identity, charts, key, activation, *rest))


def _against(shown: Shown) -> Chart:
    """Draw discrepancy or departure time against the swept setting."""
    quantities = Choice("quantity", "Quantity", list(figures.QUANTITIES), str.capitalize, 180)
    chosen = choose(PAGE, quantities, f"against {AXES[shown.spec.swept].title}")
    draw = partial(figures.against_swept, shown.points)
    return drawn_once(f"{PAGE}.against", shown.identity, draw, *chosen)


def _kernels(shown: Shown) -> Chart:
    """Draw the distance of the kernels in two norms."""
    return drawn_once(f"{PAGE}.kernels", shown.identity, lambda: figures.kernel_distance(shown.points))


def _constants(shown: Shown) -> None:
    """Show the linear model with its formulas and numbers."""
    st.markdown(prose(PAGE, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(PAGE, "More hidden layers"))
    rows = figures.constant_rows(shown.points[0])
    st.dataframe(rows, hide_index=True, key=f"{PAGE}.constants", alt="Moments of the activation, by name.")


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
