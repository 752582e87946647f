"""What stands below every figure: the formula of what it measures, what to look for, and what finite width does."""

from collections.abc import Sequence

import streamlit as st

from dashboard.words.glossary import glossary
from dashboard.words.pages import CHANGES, FINITE, SEE, SHOWS, figure_words, says


def explain(key: str) -> None:
    """Formula and both answers of the figure with this key."""
    words = figure_words(key)
    if words.formula:
        st.caption(words.formula)
    with st.container(horizontal=True, gap="small"):
        for title, text in ((SEE, words.see), (FINITE, words.finite_width)):
            with st.popover(title, type="tertiary", width="content"):
                st.markdown(text)
                if title == SEE:
                    _look_up(words.terms)


def page_answers(page: str) -> None:
    """What the page shows, beside what finite width changes."""
    for column, heading in zip(st.columns(2, gap="medium"), (SHOWS, CHANGES), strict=True):
        column.markdown(says(page, heading))


def _look_up(terms: Sequence[str]) -> None:
    """Links to the glossary."""
    with st.container(horizontal=True, gap="small"):
        for name in terms:
            st.page_link("pages/glossary.py", label=glossary()[name].title, query_params={"term": name})
