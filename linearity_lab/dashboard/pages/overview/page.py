"""Home: two networks in training, and ways to continue.

Both share one width slider. Three starting points follow, and the other pages as cards.
"""

import streamlit as st

from linearity_lab.charts.figure import main_chart, shown_result
from linearity_lab.charts.vector import letters, thumbnail_of
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.live.component import live_home
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.overview import TITLE
from linearity_lab.dashboard.shown import drawn_once
from linearity_lab.page_modules import Page, has_page_module, page_module
from linearity_lab.runs import EXPERIMENTS, spec_digest
from linearity_lab.words.pages import SHOWS, prose

PAGE = "overview"
# Where newcomers go next: a page, its purpose, and the query it opens with.
STARTING_POINTS: dict[str, tuple[str, dict[str, str]]] = {
    "lecture": ("See why", {}),
    "explore": ("Measure it", {}),
    "learning_rate": ("Try to break it", {}),
}


def page_thumbnail(page: Page) -> str:
    """Return the thumbnail of a page as SVG: of its first figure, or its title without a result."""
    if not has_page_module(page.name, "figures"):
        return letters(page.title)
    view = page_module(page.name, "figures")
    if hasattr(view, "card"):
        return drawn_once(f"{page.name}.card", "", view.card)
    result = gallery_result(EXPERIMENTS[page.name].presets[0].name)
    if result is None:
        return letters(page.title)
    identity = spec_digest(result.spec), result.provenance.started_at

    def draw() -> str:
        return thumbnail_of(main_chart(shown_result(result)).figure)

    return drawn_once(f"{page.name}.card", identity, draw)


def show() -> None:
    """Show the question, two live networks and ways to continue.

    These are three links, and a card for every other page with a figure.
    """
    st.title(TITLE, anchor=False)
    st.markdown(prose(PAGE, SHOWS))
    live_home(f"{PAGE}.home")
    entries = {entry.name: entry for entry in PAGES}
    for column, (name, (purpose, query)) in zip(
        st.columns(len(STARTING_POINTS)), STARTING_POINTS.items(), strict=True
    ):
        entry = entries[name]
        with column, st.container(border=True, gap="xsmall", height="stretch"):
            st.page_link(entry.path, label=f"**{purpose}**", icon=entry.icon, query_params=query)
            st.caption(prose(PAGE, purpose))
    with st.container(horizontal=True, key=f"{PAGE}-cards", gap="small"):  # look.css: a grid
        for entry in PAGES:
            if not has_page_module(entry.name, "figures") or entry.name in STARTING_POINTS:
                continue
            with st.container(border=True, gap="xsmall", height="stretch"):
                st.image(page_thumbnail(entry), width="stretch", alt="")
                st.page_link(entry.path, label=entry.title, help=entry.question)
