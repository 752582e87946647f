"""The speaker's second window: notes on the step in the first window."""

import streamlit as st

from linearity_lab.components.speaker import followed_step
from linearity_lab.view_modules import VIEWS
from linearity_lab.views.lecture.steps import STEPS, step_index
from linearity_lab.views.lecture.visit import PAGE
from linearity_lab.words.markdown import read
from ntk_core.errors import InvalidInput


def show_notes() -> None:
    """The notes of the step, its right answer, and what comes next."""
    words = read(VIEWS / PAGE / "words.md").sections["Speaker notes"]
    name = followed_step(f"{PAGE}.followed")
    try:
        index = step_index(name)
    except InvalidInput:
        st.info(words.field("waiting"))
        return
    step = STEPS[index]
    st.caption(f"Step {index + 1} of {len(STEPS)}")
    st.title(step.title, anchor=False)
    st.markdown(step.notes)
    st.markdown(f"{step.question.text} **{step.question.choices[step.question.answer]}.**")
    is_last = index == len(STEPS) - 1
    st.caption(words.field("last") if is_last else f"{words.field('next')}: {STEPS[index + 1].title}")
