"""Kernel change and logits of any network on any data set."""

import streamlit as st

from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.experiment_page import ExperimentPage, OtherPanel
from linearity_lab.dashboard.preview import Preview
from linearity_lab.experiments.explore.pairs import following, in_full, preview_of
from linearity_lab.experiments.explore.point import ExplorePoint
from linearity_lab.experiments.explore.spec import ExploreSpec
from linearity_lab.words.pages import prose


def is_without_hessian(shown: Shown[ExploreSpec, ExplorePoint]) -> bool:
    """Whether these runs measure no ‖H‖, so that its figure is missing."""
    return shown.spec.num_inputs == 0


def show_why_without_hessian(_: Shown[ExploreSpec, ExplorePoint]) -> None:
    """Say why ‖H‖ is not measured, and what measures it."""
    st.markdown(prose("explore", "Without ‖H‖"))


PAGE = ExperimentPage[ExploreSpec, ExplorePoint](
    "explore",
    controls=(
        "dataset.name",
        "architecture.kind",
        "architecture.depth",
        "outputs",
        "architecture.activation",
        "widths",
        "num_seeds",
    ),
    groups={"Data": ("dataset.", "num_followed", "num_inputs", "num_drawn")},
    others=[
        OtherPanel("‖H‖ against width", show_why_without_hessian, "kernels", is_without_hessian)
    ],
    preview=Preview(following, preview_of, in_full),
)
show = PAGE.show
