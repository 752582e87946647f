"""Networks side by side: drawings, kernel change, and distance to the infinite-width kernel."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.chart import Figures, show_in_pairs
from linearity_lab.dashboard.experiment_page import Around, ExperimentPage
from linearity_lab.dashboard.forms import SpecForm
from linearity_lab.dashboard.shown import drawn_once
from linearity_lab.experiments.architectures.network_drawing import drawn, size_rows
from linearity_lab.experiments.architectures.point import (
    MAX_KEPT_SAMPLES,
    ArchitecturesPoint,
    ArchitecturesSpec,
)
from linearity_lab.experiments.lettered_networks import groups_of_networks

PAGE_NAME = "architectures"


def above_kernels(_: Shown[ArchitecturesSpec, ArchitecturesPoint], charts: Sequence[Chart]) -> None:
    """State why there are no kernels."""
    if not charts:
        st.caption(f"Kernels are stored and drawn for up to {MAX_KEPT_SAMPLES} training points.")


def networks(form: SpecForm[ArchitecturesSpec], figures: Figures) -> None:
    """Show the networks as boxes, with their sizes at each width; opened by a click."""
    spec = form.spec
    if spec is None:
        return
    with st.expander("The networks, drawn", icon=":material/account_tree:"):
        drawings = [
            drawn_once(f"{PAGE_NAME}.drawing", spec, partial(drawn, spec), letter)
            for letter in spec.networks
        ]
        show_in_pairs(figures, drawings)
        rows = size_rows(spec)
        in_thousands = {
            name: st.column_config.NumberColumn(format="localized")
            for row in rows[:1]
            for name in row
        }
        words = "Parameters and smallest width of the networks, at each width"
        st.dataframe(rows, hide_index=True, column_config=in_thousands, alt=words)


PAGE = ExperimentPage[ArchitecturesSpec, ArchitecturesPoint](
    PAGE_NAME,
    around={"kernels": Around(above=above_kernels)},
    controls=(
        "dataset.name",
        "architectures.0.kind",
        "architectures.1.kind",
        "outputs",
        "widths",
        "num_seeds",
    ),
    groups={
        **groups_of_networks(),
        "Widths and seeds": ("architectures", "widths"),
    },
    between=networks,
)
show = PAGE.show
