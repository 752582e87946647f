"""A network and the linear model that it follows early.

The experiment is that of Hu, Xiao, Adlam & Pennington (2020).
"""

import streamlit as st

from linearity_lab.charts.figure import Shown
from linearity_lab.dashboard.experiment_page import ExperimentPage, OtherPanel
from linearity_lab.experiments.early_time import figures
from linearity_lab.experiments.early_time.point import EarlyPoint
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.words.pages import prose

PAGE_NAME = "early_time"


def show_constants(shown: Shown[EarlyTimeSpec, EarlyPoint]) -> None:
    """Explain the linear model, with the moments of the activations."""
    st.markdown(prose(PAGE_NAME, "The linear model"))
    if shown.spec.network.num_hidden > 1:
        st.markdown(prose(PAGE_NAME, "More hidden layers"))
    rows = figures.constant_rows(shown.points[0])
    st.dataframe(
        rows,
        hide_index=True,
        key=f"{PAGE_NAME}.constants",
        alt="Moments of the activation, by name.",
    )


PAGE = ExperimentPage[EarlyTimeSpec, EarlyPoint](
    PAGE_NAME,
    others=[OtherPanel("The linear model", show_constants)],
    controls=(
        "dataset.name",
        "network.kind",
        "network.activations",
        "values",
        "num_seeds",
        "dataset.num_samples",
    ),
    groups={
        "Network": ("network.", "width", "width_exponent"),
        "Sweep": ("swept", "values", "num_seeds", "seed", "draws"),
        "Kernel": ("kernel_samples", "infinite_width"),
    },
)
show = PAGE.show
