"""A network and its linear model train in the browser; the URL holds the settings."""

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.explain import open_and_run, page_answers
from linearity_lab.dashboard.live.component import live_page
from linearity_lab.dashboard.live.settings import READERS, LiveSettings, from_browser, made
from linearity_lab.dashboard.pages.live import QUESTION
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import prose
from ntk_core.errors import InvalidInput

PAGE = "live"
STATE, VERSION, NOTES, REPORTED = (
    f"{PAGE}.{name}" for name in ("settings", "version", "notes", "reported")
)


def show() -> None:
    """Draw the page."""
    if (found := session.noted_address(PAGE, READERS)) is not None:
        st.session_state[STATE] = made(found)
        st.session_state[VERSION] = st.session_state.get(VERSION, 0) + 1
    settings: LiveSettings = st.session_state.setdefault(STATE, LiveSettings())
    st.title(QUESTION, anchor=False)
    session.show_notes(PAGE)
    settings = _followed(
        live_page(f"{PAGE}.component", settings, st.session_state.get(VERSION, 0)), settings
    )
    session.show_address(PAGE, settings.query())
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button(
            "Compute this with error bars", key=f"{PAGE}.compute", icon=":material/show_chart:"
        ):
            open_and_run("kernel_change", settings.kernel_query())
        st.caption(prose(PAGE, "With error bars"), width="content")
    page_answers(PAGE)


def _followed(reported: dict[str, object] | None, settings: LiveSettings) -> LiveSettings:
    """Return new reports of the browser; a newly opened URL discards earlier ones."""
    if reported is None or reported == st.session_state.get(REPORTED):
        return settings
    st.session_state[REPORTED] = reported
    try:
        st.session_state[STATE] = from_browser(reported)
    except InvalidInput as error:
        st.warning(plain(str(error)))
    st.session_state[NOTES] = []
    found: LiveSettings = st.session_state[STATE]
    return found
