"""One figure of the gallery alone, for slides and other pages.

``/embed?figure=liu-fig1-left``; in no menu.

A figure has the name of its preset, and of its panel where that is not the first one:
``liu-fig1-left.along-training``.
"""

import difflib

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.chart import Figures, link, show_alone
from linearity_lab.dashboard.experiment_page import ALONE
from linearity_lab.dashboard.gallery import gallery_figures, gallery_result
from linearity_lab.page_modules import page_module
from linearity_lab.runs import PRESETS
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

FIGURE = "figure"
FEW = 3  # suggestions for an unknown name


def show() -> None:
    """Show the figure that the URL names, or one error."""
    st.html(ALONE)
    address = {FIGURE: "", **st.query_params.to_dict()}
    found, notes = session.read_address(address, {FIGURE: _preset_in})
    if FIGURE in found:
        try:
            _show(found[FIGURE], address[FIGURE])
        except InvalidInput as error:
            notes[FIGURE] = f"In the URL, {error}."
    for note in notes.values():
        st.warning(plain(note))


def _show(preset: str, name: str) -> None:
    figures = gallery_figures(preset)
    if name not in figures:
        raise _unknown(name, list(figures), len(figures))
    found = figures[name]
    page = page_module(found.page, "page").PAGE
    drawn = Figures(found.page, [found.shown.spec])
    show_alone(drawn, page.panel(found.figure, found.shown, drawn))
    link(drawn)


def _preset_in(text: str) -> str:
    preset = text.partition(".")[0]
    if preset not in PRESETS or gallery_result(preset) is None:
        raise _unknown(text, list(PRESETS), FEW)
    return preset


def _unknown(text: str, names: list[str], most: int) -> InvalidInput:
    near = difflib.get_close_matches(text[:100], names, most, cutoff=0.5) or names[:most]
    return InvalidInput(FIGURE, text, f"the name of a figure, such as {', '.join(near)}")
