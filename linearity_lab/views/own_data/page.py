"""Uploaded data: a table, arrays or images, and the kernel change of a network that learns them."""

import streamlit as st

from linearity_lab.views.own_data.upload_data import list_uploads, upload_data
from linearity_lab.words.pages import SHOWS, prose

PAGE = "own_data"


def show() -> None:
    """Draw the page."""
    st.title("What about your own data?", anchor=False)
    st.markdown(prose(PAGE, SHOWS))
    upload_data(PAGE)
    list_uploads(PAGE)
