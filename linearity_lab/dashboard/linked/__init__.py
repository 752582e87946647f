"""One cursor through all figures of a page, and key P for one on the whole screen, in the browser.

Streamlit's own selections would lose the zoom.
"""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from linearity_lab.dashboard.components import component

_mount = component("linked", Path(__file__).with_name("linked.js"), parts=("present", "linked"))


def linked(
    key: str,
    at: dict[str, object],
    clicked: Callable[[dict[str, object]], None],
    land: str,
    answer: dict[str, object] | None,
) -> None:
    """Let all figures with an axis in ``at`` show a line there, and report the clicked mark.

    Args:
        at: ``layout.meta.cursor`` of figures (or ``seed``) → the value that is chosen, None where
            none is.
        clicked: callback with the values of these axes at the mark, before the fragment reruns.
        land: title of the tab that is scrolled to once.
        answer: words and titled pictures of the clicked run, shown below the controls; a
            fragment cannot write there.
    """

    def take() -> None:
        if isinstance(found := st.session_state[key].clicked, dict):
            clicked({axis: value for axis, value in found.items() if axis in at})

    _mount(key=key, data={"at": at, "land": land, "answer": answer}, on_clicked_change=take)
