"""The run of one cell of the map: its job, and its figure while it grows."""

from functools import partial

import streamlit as st

from linearity_lab.components.chart import show_chart
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.run_panel import followed, live_panel, submit
from linearity_lab.jobs import Snapshot
from linearity_lab.views.learning_rate import figures
from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.settings.grammar import with_settings

PAGE = "learning_rate"
JOB = f"{PAGE}.cell"  # the job of a cell is followed under this name


def cell_spec(spec: LearningRateSpec, width: int, rate: float) -> LearningRateSpec:
    """The first seed of this cell alone, with its path."""
    return with_settings(spec, {"widths": [width], "rates": [rate], "num_seeds": 1, "keep_paths": True})


def clicked() -> tuple[int, float] | None:
    """(m, c) of the cell that was clicked on last; None where the click took the choice back."""
    points = st.session_state[f"{PAGE}.map"].selection.points
    return (int(points[0]["customdata"][0]), float(points[0]["customdata"][1])) if points else None


def choose_clicked(spec: LearningRateSpec) -> None:
    """Select the clicked cell, and follow its run if it is missing; for callbacks."""
    if (cell := clicked()) is not None:
        for name, value in zip(("width", "rate"), cell, strict=True):
            st.session_state.update({f"{PAGE}.{name}": value, f"{PAGE}.{name}.chosen": value})
        if not spec.keep_paths:
            follow_cell(spec, *cell)


def follow_cell(spec: LearningRateSpec, width: int, rate: float) -> None:
    """Start the run of a cell, or show it where it has been computed."""
    submit(JOB, cell_spec(spec, width, rate))


def show_cell() -> None:
    """The run that is followed, step by step while it is computed."""

    def draw(now: Snapshot | None, _: bool) -> None:
        shown = None if now is None else followed(JOB, now)
        if shown is not None:
            (point,), (rate,) = shown.points, shown.spec.rates
            run = partial(figures.along_run, point, rate, ended=shown.result is not None)
            show_chart(PAGE, drawn_once(JOB, (shown.identity, shown.result is None), run))

    live_panel(JOB, draw)
