"""Attribution of predictions to training points (after Koh & Liang 2017; Park et al. 2023)."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.chart import Figures, show_chart
from linearity_lab.dashboard.experiment_page import Around, ExperimentPage
from linearity_lab.experiments.attribution import figures
from linearity_lab.experiments.attribution.point import AttributionPoint, AttributionSpec
from linearity_lab.experiments.lettered_networks import groups_of_networks
from linearity_lab.words.markdown import plain

PAGE_NAME = "attribution"


def choose_clicked() -> None:
    """Select the training point of the clicked mark; for callbacks."""
    points = st.session_state[f"{PAGE_NAME}.changes"].selection.points
    if not points or "customdata" not in points[0]:  # none if the click cleared the choice
        return
    removed = int(points[0]["customdata"][0]) - 1  # the figure counts from 1
    st.session_state.update({f"{PAGE_NAME}.point": removed, f"{PAGE_NAME}.point.chosen": removed})


def below_changes(
    shown: Shown[AttributionSpec, AttributionPoint], chosen: Sequence[Any], drawn: Figures
) -> None:
    """Show the chosen training point."""
    chart = figures.chosen_point(shown, *chosen)
    if chart is not None:
        show_chart(drawn, chart)
        st.markdown(plain(chart.finding))


PAGE = ExperimentPage[AttributionSpec, AttributionPoint](
    PAGE_NAME,
    note=lambda shown: shown.spec.almost_everywhere,
    around={"changes": Around(below=below_changes, on_select=lambda shown: choose_clicked)},
    controls=(
        "dataset.name",
        "architectures.0.kind",
        "widths",
        "num_seeds",
        "num_removed",
    ),
    groups={
        **groups_of_networks(),
        "Retraining": ("num_removed", "outputs"),
        "Widths and seeds": ("architectures", "widths"),
        "Data": ("dataset.", "num_test"),
    },
)
show = PAGE.show
