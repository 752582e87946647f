"""Stored runs: find, open, compare and export them."""

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.chart import Figures
from linearity_lab.dashboard.jobs.profile import error_text
from linearity_lab.dashboard.pages.results.compared_runs import compared_runs, export_chosen
from linearity_lab.dashboard.pages.results.run_list import (
    actions,
    address,
    cards,
    chosen_runs,
    filters,
    open_address,
)
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

PAGE = "results"


def show() -> None:
    """Draw the page."""
    st.title("Your runs", anchor=False)
    try:
        open_address(session.new_address(PAGE))
        found = filters()
        above = actions()
        figures = Figures(PAGE)
        compared_runs(figures, chosen_runs())
        with above:
            export_chosen(chosen_runs(), figures.charts)
        cards(found)
        session.show_address(PAGE, address())
    except InvalidInput as error:  # the database is not available
        st.error(plain(f"The results cannot be read: {error_text(error)}."))
