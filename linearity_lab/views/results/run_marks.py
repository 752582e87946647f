"""Names, notes and favorites: in the store where the lab runs for one person, else in this browser session alone."""

import streamlit as st

from linearity_lab.jobs.profile import profile
from linearity_lab.views.results.stored_runs import shared_store
from linearity_lab.words.pages import prose
from ntk_core.errors import InvalidInput
from ntk_core.runs.store import MAX_MARKS, Mark

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
        InvalidInput: it is too long, or on too many runs.
    """
    found = Mark(_printable(name), _printable(note), favorite)
    if not profile().is_shared:
        shared_store().write_mark(run, found)
        return
    kept = marks()
    kept.pop(run, None)
    if len(kept) >= MAX_MARKS:
        raise InvalidInput("name", f"{MAX_MARKS:,} runs have one", "fewer names, notes and favorites")
    if found != Mark():
        kept[run] = found


def where_kept() -> str:
    """Where all of this stays, and for how long."""
    return prose("results", "Kept in this session" if profile().is_shared else "Kept in the store")


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n").strip()
