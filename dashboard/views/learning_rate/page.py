"""Where linearity ends by the learning rate (Lewkowycz et al. 2020; Zhu, Liu, Radhakrishnan & Belkin 2022)."""

import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.components.chart import Choice, Panel, choose, width_choice
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.learning_rate import figures
from ntk_core.experiments.learning_rate.result import RatePoint

PAGE = "learning_rate"
TITLE = "Where does linearity end?"
CONTROLS = ("models", "architecture.activation", "dataset.num_samples", "num_seeds")
GROUPS = (
    Group("Learning rates", ("rates", "models")),
    Group("Network", ("output", "architecture.")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws")),
    Group("Training", ("method", "batch_size", "loss_threshold", "max_steps", "keep_paths")),
    Group("Data", ("dataset.",)),
)


def draw(shown: Shown) -> list[Panel]:
    """The map, the peaks at one rate, one run where runs are kept, and the plane of one sample."""
    points, spec = shown.points, shown.spec
    thrown = min(spec.rates, key=lambda rate: abs(rate - 3))
    rates = [thrown, *(rate for rate in spec.rates if rate != thrown)]

    def rate_choice(name: str) -> Choice:
        return Choice(name, "Rate c", rates, "c = {:g}".format)

    def the_map() -> Chart:
        return drawn_once(f"{PAGE}.map", shown.identity, lambda: figures.outcome_map(points, spec.models))

    def peaks() -> Chart:
        def at(rate: float) -> Chart:
            return figures.peaks(points, spec.widths, spec.models, rate)

        return drawn_once(f"{PAGE}.peaks", shown.identity, at, *choose(PAGE, "Peak at", rate_choice("rate")))

    def one_run() -> Chart | None:
        def at(width: int, rate: float) -> Chart | None:
            point: RatePoint = shown.point(width)
            return figures.along_run(point, rate) if any(run.path for run in point.of_rate(rate)) else None

        width, rate = choose(PAGE, "The run of", width_choice(points), "at", rate_choice("run_rate"))
        if not spec.keep_paths:
            cell = f"widths={width}&rates={rate:g}&num_seeds=1&keep_paths=true"
            st.markdown(f"[Follow width {width:,} at c = {rate:g} step by step](/{PAGE}?preset=catapult-run&{cell})")
        return drawn_once(f"{PAGE}.run", shown.identity, at, width, rate)

    def one_sample() -> Chart:
        return drawn_once(f"{PAGE}.one_sample", shown.identity, lambda: figures.one_sample(spec.rates))

    return [
        Panel("Outcomes", the_map),
        Panel("Peak against width", peaks),
        Panel("One run", one_run),
        Panel("One sample", one_sample),
    ]


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
