"""One figure of the gallery alone, for slides and other pages: ``/embed?figure=liu-fig1-left``; in no menu.

A figure has the name of its preset, and of its panel where that is not the first one: ``liu-fig1-left.along-training``.
"""

import difflib
import re

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.chart import Panel, linked_charts, show_alone, shown_charts
from linearity_lab.dashboard.experiment_page import ALONE
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.shown import Shown
from linearity_lab.page_modules import page_module
from linearity_lab.runs import EXPERIMENTS, PRESETS, ResultValue
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

FIGURE = "figure"
FEW = 3  # suggestions for an unknown name


def page_of(preset: str) -> str:
    """Return the page whose figures show this preset."""
    return next(
        name
        for name, each in EXPERIMENTS.items()
        if any(own.name == preset for own in each.presets)
    )


def gallery_panels(preset: str) -> tuple[ResultValue, dict[str, Panel]]:
    """Return the gallery's result of a preset, and its panels by name; the first has the preset's name.

    Raises:
        LookupError: the gallery lacks it.
    """
    result = gallery_result(preset)
    if result is None:
        raise LookupError(f"the gallery has no {preset}")
    shown = Shown(result.spec, result.points, result, "precomputed")
    first, *others = page_module(page_of(preset), "page").PAGE.panels(shown)
    named = {
        re.sub(r"\W+", "-", each.title.lower()).strip("-"): each for each in others
    }  # symbols such as ΔK stay
    return result, {preset: first, **{f"{preset}.{name}": each for name, each in named.items()}}


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
    page = page_of(preset)
    place = st.empty()
    with place.container(), linked_charts(page):
        result, panels = gallery_panels(preset)
        if name in panels:
            with shown_charts([result.spec]):
                show_alone(page, panels[name])
    if name not in panels:
        place.empty()  # this container had the choices of all figures
        raise _unknown(name, list(panels), len(panels))


def _preset_in(text: str) -> str:
    preset = text.partition(".")[0]
    if preset not in PRESETS or gallery_result(preset) is None:
        raise _unknown(text, list(PRESETS), FEW)
    return preset


def _unknown(text: str, names: list[str], most: int) -> InvalidInput:
    near = difflib.get_close_matches(text[:100], names, most, cutoff=0.5) or names[:most]
    return InvalidInput(FIGURE, text, f"the name of a figure, such as {', '.join(near)}")
