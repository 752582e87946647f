"""Learning rates above which linearity ends (Lewkowycz et al. 2020; Zhu, Liu, Radhakrishnan & Belkin 2022)."""

from dataclasses import replace
from functools import partial

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.departures import departure_steps
from linearity_lab.dashboard.chart import Choice, Panel, panels, show_chart, width_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.jobs import Snapshot
from linearity_lab.dashboard.run_panel import followed, live_panel, submit
from linearity_lab.dashboard.shown import Shown, drawn_once
from linearity_lab.experiments.horizon.point import HorizonResult
from linearity_lab.experiments.learning_rate import figures
from linearity_lab.experiments.learning_rate.point import LearningRateSpec, RatePoint
from linearity_lab.runs import PRESETS
from linearity_lab.settings.grammar import with_settings

Runs = Shown[LearningRateSpec, RatePoint]
JOB = "learning_rate.cell"  # the job of a cell is followed under this name
GALLERY_MAP, DEPARTURES = (
    "catapult-map",
    "horizon-rate",
)  # presets: the map, and the departure steps beside it
TABS = {
    "map": "Outcomes",
    "peaks": "Peak against width",
    "one_sample": "One sample",
    "along_run": "One run",
}


def choose_clicked(spec: LearningRateSpec) -> None:
    """Select the clicked cell, and follow its run if it is missing; for callbacks."""
    if points := st.session_state[
        f"{PAGE.name}.map"
    ].selection.points:  # none if the click cleared the choice
        width, rate = int(points[0]["customdata"][0]), float(points[0]["customdata"][1])
        for name, value in (("width", width), ("rate", rate)):
            st.session_state.update(
                {f"{PAGE.name}.{name}": value, f"{PAGE.name}.{name}.chosen": value}
            )
        if not spec.keep_paths:
            follow_cell(spec, width, rate)


def follow_cell(spec: LearningRateSpec, width: int, rate: float) -> None:
    """Start the run of the first seed of a cell, with its path, or show its stored result."""
    submit(
        JOB,
        with_settings(
            spec, {"widths": [width], "rates": [rate], "num_seeds": 1, "keep_paths": True}
        ),
    )


def show_cell() -> None:
    """Show the followed run, step by step while it is computed."""

    def draw(now: Snapshot | None, _: bool) -> None:
        shown = None if now is None else followed(JOB, now)
        if shown is not None:
            (point,), (rate,) = shown.points, shown.spec.rates
            run = partial(figures.along_run, point, rate, ended=shown.result is not None)
            show_chart(PAGE.name, drawn_once(JOB, (shown.identity, shown.result is None), run))

    live_panel(JOB, draw)


def charts(shown: Runs, width: int, rate: float) -> tuple[Chart, ...]:
    """Draw the map, the peaks at one rate, stored runs of one cell, and the plane of one sample."""
    point: RatePoint = shown.point(width)
    followed = shown.spec.keep_paths and point.of_rate(rate)
    return (
        figures.outcome_map(shown.points, shown.spec.models, (width, rate)),
        figures.peaks(shown.points, shown.spec.widths, shown.spec.models, rate),
        figures.one_sample(shown.spec.rates),
        *([figures.along_run(point, rate, ended=not shown.grown)] if followed else []),
    )


def draw(shown: Runs) -> list[Panel]:
    """Draw the map, below it the run of a cell, then the others."""
    spec, rates = shown.spec, list(shown.spec.rates)
    catapulted = min(range(len(rates)), key=lambda at: abs(rates[at] - 3))
    width, rate = shown.choose(
        width_choice(shown.points),
        Choice("rate", "Rate c", rates, "c = {:g}".format, begins=catapulted),
    )

    def follow() -> None:
        st.button(
            "Follow this run",
            key=f"{PAGE.name}.follow",
            on_click=follow_cell,
            args=(spec, width, rate),
        )
        show_cell()

    first, *others = shown.panels(charts, width, rate, titles=TABS)
    is_ours = (
        spec == PRESETS[GALLERY_MAP].spec
    )  # beside other results a different figure would mislead
    if is_ours and isinstance(steps := gallery_result(DEPARTURES), HorizonResult):
        others += panels(
            [drawn_once(DEPARTURES, "", lambda: departure_steps(steps.points, steps.spec.widths))]
        )
    below = None if spec.keep_paths else follow
    return [replace(first, on_select=partial(choose_clicked, spec), below=below), *others]


PAGE = ExperimentPage(
    "learning_rate",
    draw,
    controls=("models", "architecture.activation", "dataset.num_samples"),
    groups={"Learning rates": ("rates", "models"), "Network": ("output",)},
)
show = PAGE.show
