"""What stands below every figure: the formula of what it measures, what to look for, and what finite width does."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.words.explanations import WHAT_TO_SEE, WHY_FINITE_WIDTH_DIFFERS, figure_words
from dashboard.words.glossary import GLOSSARY

SEE = "What should I see?"
FINITE = "Why is finite width different?"


def explain(key: str) -> None:
    """Formula and both answers of the figure with this key; nothing for a figure that has none."""
    words = figure_words(key)
    if words is None:
        return
    if words.formula:
        st.caption(words.formula)
    with st.container(horizontal=True, gap="small"):
        for title, text in ((SEE, words.see), (FINITE, words.finite_width)):
            with st.popover(title, type="tertiary", width="content"):
                st.markdown(text)
                if title == SEE:
                    _look_up(words.terms)


def page_answers(page: str) -> None:
    """What the page shows, beside why finite width differs."""
    for column, answers in zip(st.columns(2, gap="medium"), (WHAT_TO_SEE, WHY_FINITE_WIDTH_DIFFERS), strict=True):
        column.markdown(answers[page])


def _look_up(terms: Sequence[str]) -> None:
    """Links to the glossary."""
    with st.container(horizontal=True, gap="small"):
        for name in terms:
            entry = GLOSSARY[name]
            st.page_link("pages/glossary.py", label=entry.title, query_params={"term": name})
