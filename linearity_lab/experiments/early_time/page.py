"""A network and the linear model that it follows early in training (Hu, Xiao, Adlam & Pennington 2020)."""

from functools import partial

import streamlit as st

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.dashboard.chart import Choice, Panel, seed_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.early_time import figures
from linearity_lab.experiments.early_time.figures import AXES
from linearity_lab.experiments.early_time.point import EarlyPoint
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.words.pages import prose
from ntk_core.networks.choices import ACTIVATIONS

Runs = Shown[EarlyTimeSpec, EarlyPoint]


def draw(shown: Runs) -> list[Panel]:
    """Return training, single outputs, sweeps over width or dimension, kernels, and the linear model."""
    trained = any(point.runs for point in shown.points)
    found = _training(shown) if trained else []
    if any(point.kernels for point in shown.points):
        found += [
            Panel(
                "Kernels",
                lambda: shown.drawn("kernels", lambda: figures.kernel_distance(shown.points)),
            )
        ]
    if trained and len(shown.points) > 1:
        found += [Panel(f"Against {AXES[shown.spec.swept].title}", partial(_against, shown))]
    return [*found, Panel("The linear model", partial(_constants, shown))]


def _training(shown: Runs) -> list[Panel]:
    points = {point.key: point for point in shown.points if point.runs}

    def name(key: str) -> str:
        return f"{AXES[points[key].swept].letter} = {points[key].value:,}"

    # The activations depend on the chosen point.
    at = st.session_state.get(f"{PAGE.name}.point")
    occur = occurring([points[at] if at in points else next(iter(points.values()))], "activation")
    activations = (
        [Choice("activation", "Activation", occur, lambda name: ACTIVATIONS[name].title)]
        if len(occur) > 1
        else []
    )
    views = Choice("view", "Quantity", figures.VIEWS, str.capitalize, 160)
    letter = AXES[shown.spec.swept].letter
    swept = Choice(
        "point", "Point", list(points), name, axis=letter, at=lambda key: points[key].value
    )
    seeds = seed_choice(points.values())
    key, *rest = shown.choose(swept, *activations, more=[views, *seeds])
    activation = rest.pop(0) if activations else occur[0]

    def charts(
        _: Runs, key: str, activation: str, view: figures.View, seed: int | None = None
    ) -> tuple[Chart, Chart]:
        (point,) = led_by([points[key]], seed)
        runs = point.of(activation)
        return figures.along_steps(point, runs, view), figures.single_outputs(runs[0])

    return shown.panels(charts, key, activation, *rest)


def _against(shown: Runs) -> Chart:
    quantities = Choice("quantity", "Quantity", list(figures.QUANTITIES), str.capitalize, 180)
    chosen = shown.choose(quantities, f"against {AXES[shown.spec.swept].title}")
    return shown.drawn("against", partial(figures.against_swept, shown.points), *chosen)


def _constants(shown: Runs) -> None:
    st.markdown(prose(PAGE.name, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(PAGE.name, "More hidden layers"))
    rows = figures.constant_rows(shown.points[0])
    st.dataframe(
        rows,
        hide_index=True,
        key=f"{PAGE.name}.constants",
        alt="Moments of the activation, by name.",
    )


PAGE = ExperimentPage(
    "early_time",
    draw,
    controls=("network.activations", "values", "dataset.num_samples"),
    groups={
        "Network": ("network.", "width", "width_exponent"),
        "Sweep": ("swept", "values", "num_seeds", "seed", "draws"),
        "Kernel": ("kernel_samples", "infinite_width"),
    },
)
show = PAGE.show
