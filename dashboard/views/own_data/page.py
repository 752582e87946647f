"""Data of one's own: a table, arrays or images, and the kernel change of a network that learns them."""

import streamlit as st

from dashboard.views.own_data.bring_data import bring_data, list_brought

PAGE = "own_data"


def show() -> None:
    """The page."""
    st.title("What about your own data?", anchor=False)
    st.markdown(
        "Bring a table, arrays or images; say what is to be learned; see what the network sees, and whether its kernel "
        "stays. The file is read here and never run: pickles, links and archives inside archives are refused."
    )
    bring_data(PAGE)
    list_brought(PAGE)
