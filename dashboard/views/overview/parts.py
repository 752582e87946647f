"""The parts of the overview: the phenomenon in motion, three questions, and the pages as cards."""

import streamlit as st

from dashboard.components.live import live_small
from dashboard.views.navigation import PAGES
from dashboard.views.overview.thumbnails import page_thumbnail
from dashboard.words.pages import SHOWS, prose

TITLE = "When does a wide network become linear?"
SHOWN = "liu-fig1-left"
# Question, what it opens, and with which query.
QUESTIONS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("When does the kernel stop moving?", "Run Figure 1 of the paper", "kernel_change", {"preset": SHOWN}),
    ("What becomes small in a wide network?", "Lecture, step 2", "lecture", {"step": "hessian-and-ball"}),
    ("What breaks it?", "Lecture, step 6", "lecture", {"step": "nonlinear-output"}),
)
CARD_PIXELS = 160


def living(page: str) -> None:
    """A network and its linear model in training; beside them one sentence and three questions."""
    st.title(TITLE, anchor=False)
    picture, words = st.columns([7, 5], gap="large", vertical_alignment="center")
    with words:
        st.markdown(prose(page, SHOWS))
        _questions()
    with picture:
        live_small(f"{page}.live")


def _questions() -> None:
    """Three questions to choose from."""
    for question, opens, page, query in QUESTIONS:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.page_link(f"pages/{page}.py", label=f"**{question}**", query_params=query, icon=":material/help:")
            st.caption(opens, width="content")


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
            if not entry.question:
                continue
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.image(page_thumbnail(entry), width="stretch", alt="")
                st.page_link(entry.path, label=f"**{entry.title}**", icon=entry.icon)
                st.caption(entry.question)
