"""Networks side by side: what they look like, how far their kernels move, and towards what."""

import itertools
from collections.abc import Sequence
from functools import partial

import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.style import compared_styles, output_title, width_label
from dashboard.components.chart import chart, chooser
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group, SpecForm
from dashboard.components.once import once
from dashboard.components.run_panel import Shown
from dashboard.views.architectures import figures as figures
from dashboard.views.architectures.network_drawing import drawn, size_rows
from dashboard.words.pages import CHANGES, SHOWS, says
from ntk_core.experiments.architectures import EXPERIMENT
from ntk_core.experiments.architectures.spec import LETTERS, MAX_KEPT_SAMPLES, ArchitecturesSpec
from ntk_core.settings.vocabulary import ARCHITECTURES

PAGE = "architectures"
TITLE = "Which architectures become linear?"
GROUPS = (
    *(Group(f"Network {letter}", (f"architectures.{index}.",)) for index, letter in enumerate(LETTERS)),
    Group(
        "Widths and seeds",
        ("architectures", "widths", "outputs", "num_seeds", "seed", "infinite_width"),
        expanded=False,
    ),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: Shown) -> None:
    """Sweeps, kernels and spectra of the networks, each with its words and numbers."""
    spec: ArchitecturesSpec = shown.spec
    points = {each: found for each in spec.networks if (found := [p for p in shown.points if p.network == each])}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Against width, with the", anchor=False, width="content")
        output = chooser("Output φ", spec.outputs, output_title, key=f"{PAGE}.output", pixels=160, last=False)
    measures = figures.measures(points, output)
    styles = compared_styles({letter: network.kind for letter, network in spec.networks.items()}, output)

    def sweeps(output: str) -> list[Chart]:
        return [figures.against_width(points, output, spec.widths, styles, each) for each in measures]

    _side_by_side(once(f"{PAGE}.sweeps", shown.identity, sweeps, output))
    for column, heading in zip(st.columns(2, gap="medium"), (SHOWS, CHANGES), strict=True):
        column.markdown(says(PAGE, heading))
    _kernels(shown, figures.kept_at(points, output), styles, output)


def networks(form: SpecForm[ArchitecturesSpec]) -> None:
    """The networks as boxes, and how large they are at each width."""
    spec = form.spec
    if spec is None:
        return
    titles = [f"{letter}: {ARCHITECTURES[network.kind].title}" for letter, network in spec.networks.items()]
    _side_by_side([once(f"{PAGE}.drawing", spec, partial(drawn, spec), letter) for letter in spec.networks], titles)
    rows = size_rows(spec)
    in_thousands = {name: st.column_config.NumberColumn(format="localized") for row in rows[:1] for name in row}
    words = "Parameters and smallest width of the networks, at each width"
    st.dataframe(rows, hide_index=True, column_config=in_thousands, alt=words)


def _kernels(
    shown: Shown, kept: dict[int, dict[str, figures.KernelSnapshot]], styles: figures.Styles, output: str
) -> None:
    """Heatmaps before and after training, and spectra, at a width to choose."""
    if not kept:
        if shown.spec.dataset.num_samples > MAX_KEPT_SAMPLES:
            st.caption(f"Kernels are kept and drawn for up to {MAX_KEPT_SAMPLES} training points.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Kernels K at width", anchor=False, width="content")
        width = chooser("Width m", list(kept), width_label, key=f"{PAGE}.shown_width", pixels=110)

    def at(width: int) -> list[Chart]:
        heatmaps = [figures.heatmaps(snapshot, letter, width) for letter, snapshot in kept[width].items()]
        return [*heatmaps, figures.spectra(kept[width], styles)]

    *heatmaps, spectra = once(f"{PAGE}.kernels", (shown.identity, output), at, width)
    _side_by_side(heatmaps)
    _chart(spectra)


def _side_by_side(charts: Sequence[Chart], titles: Sequence[str] = ()) -> None:
    """Two charts in a row."""
    for start in range(0, len(charts), 2):
        row = itertools.zip_longest(charts[start : start + 2], titles[start : start + 2])
        for column, (each, title) in zip(st.columns(2, gap="medium"), row, strict=False):
            with column:
                if title:
                    st.subheader(title, anchor=False)
                _chart(each)


def _chart(each: Chart) -> None:
    chart(each.figure, f"{PAGE}.{each.name}", each.takeaway, each.rows, each.caption)


def show() -> None:
    """The page."""
    names = [preset.name for preset in EXPERIMENT.presets]
    experiment_page(PAGE, TITLE, names, ArchitecturesSpec, GROUPS, draw, between=networks)
