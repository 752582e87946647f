"""Two networks in training under one width slider, three starting points, and the other pages as cards."""

import functools
from collections.abc import Callable

import streamlit as st

from linearity_lab.charts.vector import letters
from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.live import live_home
from linearity_lab.view_modules import Page, has_view, view_module
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.pages import SHOWS, prose
from ntk_core.runs import ResultValue


def page_thumbnail(page: Page) -> str:
    """Return the thumbnail of a page as SVG; its title without a result."""
    found = view_module(page.name, "figures") if has_view(page.name, "figures") else None
    shown: str | None = getattr(found, "CARD", None)  # empty: the picture needs no result
    result = gallery_result(shown) if shown else None
    if found is None or shown is None or (shown and result is None):
        return letters(page.title)
    return _drawn(found.card, _Once(result))


class _Once:
    """A result hashed by identity, so that each picture is drawn once."""

    def __init__(self, result: ResultValue | None):
        self.result = result

    def __hash__(self) -> int:
        return id(self.result)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.result is self.result


@functools.lru_cache(maxsize=32)
def _drawn(draw: Callable[[ResultValue | None], str], once: _Once) -> str:
    return draw(once.result)


PAGE = "overview"


def show() -> None:
    """Draw the page."""
    question(PAGE)
    live_home(f"{PAGE}.home")
    starting_points(PAGE)
    cards(PAGE)


TITLE = "When does a wide network become linear?"
# Where newcomers go next: a page, its purpose, and the query it opens with.
STARTING_POINTS: dict[str, tuple[str, dict[str, str]]] = {
    "lecture": ("See why", {}),
    "kernel_change": ("Measure it", {"preset": "liu-fig1-left"}),
    "learning_rate": ("Try to break it", {}),
}


def question(page: str) -> None:
    """Show the title and at most 60 words."""
    st.title(TITLE, anchor=False)
    st.markdown(prose(page, SHOWS))


def starting_points(page: str) -> None:
    """Show three links to continue."""
    entries = {entry.name: entry for entry in PAGES}
    for column, (name, (purpose, query)) in zip(st.columns(len(STARTING_POINTS)), STARTING_POINTS.items(), strict=True):
        entry = entries[name]
        with column, st.container(border=True, gap="xsmall", height="stretch"):
            st.page_link(entry.path, label=f"**{purpose}**", icon=entry.icon, query_params=query)
            st.caption(prose(page, purpose))


def cards(page: str) -> None:
    """Show every other page with a figure: thumbnail and question."""
    with st.container(horizontal=True, key=f"{page}-cards", gap="small"):  # look.css: a grid
        for entry in PAGES:
            if not has_view(entry.name, "figures") or entry.name in STARTING_POINTS:
                continue
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.image(page_thumbnail(entry), width="stretch", alt="")
                st.page_link(entry.path, label=entry.title, help=entry.question)
