"""What a tangent kernel is, one path through the pages, the phenomenon in motion, and the other pages as cards."""

import streamlit as st

from dashboard.components.live import live_small
from dashboard.views.overview.parts import cards, meaning, path

PAGE = "overview"


def show() -> None:
    """The page."""
    meaning(PAGE)
    path(PAGE)
    living, others = st.columns([7, 5], gap="large")
    with living:
        live_small(f"{PAGE}.live")
    with others:
        cards(PAGE)
