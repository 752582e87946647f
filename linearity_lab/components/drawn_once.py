"""Charts, words and numbers are drawn once for all sessions with the same points."""

from collections.abc import Callable
from typing import TypeVar, cast

import streamlit as st

T = TypeVar("T")
KEPT = 256  # the charts of a page, some 200 kilobytes: 50 MB


def drawn_once(name: str, identity: object, draw: Callable[..., T], *chosen: object) -> T:
    """Return ``draw(*chosen)``, cached across sessions.

    Args:
        name: unique name of the drawing.
        identity: identity of the points (:attr:`~linearity_lab.components.run_panel.Shown.identity`), or of
            other inputs of ``draw``; the ``repr`` of it and ``chosen`` is the key.

    The result is shared and must not be modified.
    """
    return cast(T, _kept(name, repr((identity, chosen)), lambda: draw(*chosen)))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _kept(name: str, key: str, _draw: Callable[[], object]) -> object:
    return _draw()
