"""Data of one's own: a table, arrays or images, and the kernel change of a network that learns them."""

import streamlit as st

from linearity_lab.views.own_data.bring_data import bring_data, list_brought
from linearity_lab.words.pages import SHOWS, prose

PAGE = "own_data"


def show() -> None:
    """Draw the page."""
    st.title("What about your own data?", anchor=False)
    st.markdown(prose(PAGE, SHOWS))
    bring_data(PAGE)
    list_brought(PAGE)
