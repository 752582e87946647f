"""A network and the linear model that it follows early in training (Hu, Xiao, Adlam & Pennington 2020)."""

import streamlit as st

from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.early_time.parts import against, constants, kernels, training
from dashboard.words.pages import CHANGES, SHOWS, says

PAGE = "early_time"
TITLE = "What does a network learn first?"
GROUPS = (
    Group("Network", ("network.", "width", "width_exponent")),
    Group("Sweep", ("swept", "values", "num_seeds", "seed")),
    Group("Inputs and target", ("dataset.",), expanded=False),
    Group("Training", ("training.",), expanded=False),
    Group("Kernel", ("kernel_samples", "infinite_width"), expanded=False),
)


def draw(shown: Shown) -> None:
    """Training beside its single outputs, then what depends on width or dimension, kernels and constants."""
    left, right = st.columns(2, gap="medium")
    if any(point.runs for point in shown.points):
        training(PAGE, shown, left, right)
    with left:
        if any(point.kernels for point in shown.points):
            kernels(PAGE, shown)
        if any(point.runs for point in shown.points):
            against(PAGE, shown)
        st.markdown(says(PAGE, SHOWS))
    with right:
        constants(PAGE, shown)
        st.markdown(says(PAGE, CHANGES))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw)
