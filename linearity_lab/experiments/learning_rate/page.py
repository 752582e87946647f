"""Learning rates above which linearity ends.

The papers are Lewkowycz et al. (2020) and Zhu, Liu, Radhakrishnan & Belkin (2022).
"""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.chart import Figures, show_chart
from linearity_lab.dashboard.experiment_page import Around, ExperimentPage
from linearity_lab.dashboard.jobs import Snapshot
from linearity_lab.dashboard.run_panel import followed, live_panel, submit
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.dashboard.shown import drawn_once
from linearity_lab.experiments.learning_rate import figures
from linearity_lab.experiments.learning_rate.point import LearningRateSpec, RatePoint
from linearity_lab.settings.grammar import with_settings

Runs = Shown[LearningRateSpec, RatePoint]
PAGE_NAME = "learning_rate"
JOB = "learning_rate.cell"  # the job of a cell is followed under this name


def choose_clicked(figure: str, spec: LearningRateSpec) -> None:
    """Select the clicked cell, and follow its run if it is missing; for callbacks."""
    if points := st.session_state[
        f"{PAGE_NAME}.{figure}"
    ].selection.points:  # none if the click cleared the choice
        width = int(points[0]["customdata"][0])
        rate = float(points[0]["customdata"][1])
        for name, value in (("width", width), ("rate", rate)):
            st.session_state.update(
                {f"{PAGE_NAME}.{name}": value, f"{PAGE_NAME}.{name}.chosen": value}
            )
        if not spec.keep_paths:
            follow_cell(spec, width, rate)


def follow_cell(spec: LearningRateSpec, width: int, rate: float) -> None:
    """Start the run of the first seed of a cell, with its path, or show its stored result."""
    submit(
        JOB,
        with_settings(
            spec,
            {
                "widths": [width],
                "rates": [rate],
                "num_seeds": 1,
                "keep_paths": True,
                "keep_curvature": False,
            },
        ),
    )


def show_cell(drawn: Figures) -> None:
    """Show the followed run, step by step while it is computed."""

    def draw(now: Snapshot | None, _: bool) -> None:
        shown = None if now is None else followed(JOB, now)
        if shown is not None:
            (point,) = shown.points
            (rate,) = shown.spec.rates
            run = partial(figures.along_run, point, rate, ended=shown.result is not None)
            show_chart(drawn, drawn_once(JOB, (shown.identity, shown.result is None), run))

    live_panel(JOB, draw)


def below_cells(figure: str, shown: Runs, chosen: Sequence[object], drawn: Figures) -> None:
    """Show the run of the chosen cell, unless the result has the paths of all runs."""
    if shown.spec.keep_paths:
        return
    st.button(
        "Follow this run",
        key=f"{PAGE_NAME}.{figure}.follow",
        on_click=follow_cell,
        args=(shown.spec, *chosen),
    )
    show_cell(drawn)


def around_cells(figure: str) -> Around[LearningRateSpec, RatePoint]:
    """Return what surrounds a figure whose marks are cells of width and rate."""
    return Around(
        below=partial(below_cells, figure),
        on_select=lambda shown: partial(choose_clicked, figure, shown.spec),
    )


PAGE = ExperimentPage[LearningRateSpec, RatePoint](
    PAGE_NAME,
    around={"map": around_cells("map"), "edge": around_cells("edge")},
    controls=(*COLUMN, "models", "dataset.num_samples"),
    groups={"Learning rates": ("rates", "models", "keep_curvature"), "Network": ("output",)},
)
show = PAGE.show
