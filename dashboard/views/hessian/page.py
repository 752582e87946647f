"""Hessian norms against width, beside the kernel change of the same networks (Liu, Zhu & Belkin 2020, Table 1)."""

import streamlit as st

from dashboard.components.chart import Choice, choose, show_chart
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.components.words_table import words_table
from dashboard.views.hessian import figures
from dashboard.views.hessian.networks import SETTINGS, networks_form
from dashboard.views.hessian.parts import balls, one_network
from dashboard.words.pages import CHANGES, SHOWS, says

PAGE = "hessian"
TITLE = "Why does it become linear? The Hessian"
GROUPS = (
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws", "num_inputs", "output_index")),
    Group("Balls and bounds", ("bounds", "vector", "blocks", "radii", "num_starts", "num_ball_seeds"), expanded=False),
    Group("Training", ("num_trained", "training."), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: Shown) -> None:
    """Norms beside kernel changes, Table 1, and one network in detail."""
    points = shown.points
    left, right = st.columns(2, gap="medium")
    with left:
        views = Choice("view", "Vertical axis", list(figures.VIEWS), pixels=150)
        (view,) = choose(PAGE, views, "against width")
        norms = drawn_once(f"{PAGE}.norms", shown.identity, lambda view: figures.against_width(points, view), view)
        show_chart(PAGE, norms)
        st.markdown(says(PAGE, SHOWS))
    trained = figures.trained_lines(points)
    if trained:
        with right:
            show_chart(
                PAGE, drawn_once(f"{PAGE}.changes", shown.identity, lambda: figures.change_against_width(points))
            )
    else:
        one_network(PAGE, shown, right)
    right.markdown(says(PAGE, CHANGES))
    st.subheader("Table 1, measured", anchor=False)
    rows = drawn_once(f"{PAGE}.table", shown.identity, lambda: figures.table_rows(points))
    about = f"95% intervals: {shown.spec.scope}, given the runs that count. The verdict is that of ‖H‖ / ‖∇f‖²."
    words_table(rows, about)
    balls(PAGE, shown)
    if trained:
        one_network(PAGE, shown)


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, elsewhere=tuple(SETTINGS), first=networks_form)
