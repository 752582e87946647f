"""Names, notes and favorites: in the store where the lab runs for one person, else in this browser session alone."""

import streamlit as st

from linearity_lab.jobs.profile import profile
from linearity_lab.views.results.stored_runs import shared_store
from linearity_lab.words.pages import prose
from ntk_core.runs.store import Mark

_KEY = "results.marks"


def marks() -> dict[str, Mark]:
    """Digest → what this person has written on that run."""
    if profile().is_shared:
        kept: dict[str, Mark] = st.session_state.setdefault(_KEY, {})
        return kept
    return shared_store().marks()


def write_mark(run: str, name: str, note: str, favorite: bool) -> None:
    """Write this on a run.

    Raises:
        InvalidInput: it is too long.
    """
    found = Mark(_printable(name), _printable(note), favorite)
    if not profile().is_shared:
        shared_store().write_mark(run, found)
        return
    kept = marks()
    kept.pop(run, None)
    if found != Mark():
        kept[run] = found


def where_kept() -> str:
    """Where all of this stays, and for how long."""
    return prose("results", "Kept in this session" if profile().is_shared else "Kept in the store")


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n").strip()
