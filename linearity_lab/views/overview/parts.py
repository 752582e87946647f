"""The parts of the overview: what a tangent kernel is, the path to begin with, and the other pages as small cards."""

import streamlit as st

from linearity_lab.views.navigation import PAGES
from linearity_lab.views.overview.picture import tangent_kernel_picture
from linearity_lab.views.overview.thumbnails import page_thumbnail
from linearity_lab.words.pages import SHOWS, prose

TITLE = "When does a wide network become linear?"
# The path that newcomers take: a page, what it is there for, and with which query it opens.
PATH: dict[str, tuple[str, dict[str, str]]] = {
    "live": ("See it happen", {}),
    "lecture": ("Understand why", {}),
    "kernel_change": ("Measure it", {"preset": "liu-fig1-left"}),
}
# In the letters and the color of the page, as an image could not be; they grow as it shrinks.
_picture = st.components.v2.component(
    "linearity_lab_tangent_kernel",
    html=tangent_kernel_picture(),
    css="svg { width: 100% } text { font: 17px var(--st-font); fill: var(--st-text-color) }"
    "@media (max-width: 640px) { text { font-size: 26px } }",
)
CARD_PIXELS = 165  # two in a row on a phone, seven on a screen


def meaning(page: str) -> None:
    """Three sentences beside one picture."""
    st.title(TITLE, anchor=False)
    words, picture = st.columns([5, 7], gap="large", vertical_alignment="center")
    words.markdown(prose(page, SHOWS))
    with picture:
        _picture(key=f"{page}.picture")


def path(page: str) -> None:
    """Where to go first, second and third."""
    entries = {entry.name: entry for entry in PAGES}
    for number, (column, name) in enumerate(zip(st.columns(len(PATH)), PATH, strict=True), 1):
        entry, (purpose, query) = entries[name], PATH[name]
        with column, st.container(border=True, gap="xsmall", height="stretch"):
            st.page_link(
                entry.path, label=f"**{number}. {entry.title}: {purpose}**", icon=entry.icon, query_params=query
            )
            st.caption(prose(page, purpose))


def cards(page: str) -> None:
    """Every other page with its picture and the question that it answers."""
    # As many in a row as there is room for, all of one size.
    st.html(
        f"<style>.st-key-{page}-cards {{ display: grid !important; grid-auto-rows: 1fr; "
        f"grid-template-columns: repeat(auto-fill, minmax({CARD_PIXELS}px, 1fr)) }} "
        f".st-key-{page}-cards > * {{ width: 100% !important; min-width: 0 }}</style>"
    )
    with st.container(horizontal=True, key=f"{page}-cards", gap="small"):
        for entry in PAGES:
            if not entry.question or entry.name in PATH:
                continue
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.image(page_thumbnail(entry), width="stretch", alt="")
                st.page_link(entry.path, label=entry.title, help=entry.question)
