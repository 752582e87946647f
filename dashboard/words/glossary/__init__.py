"""The words of the field: symbol, one sentence, formula, where each is seen, and who says so; free of Streamlit."""

from __future__ import annotations

from dashboard.words.glossary._entry import Entry
from dashboard.words.glossary._linearity import LINEARITY
from dashboard.words.glossary._training import TRAINING
from ntk_core.errors import InvalidInput

_ENTRIES = sorted((*LINEARITY, *TRAINING), key=lambda entry: entry.title.lower())
GLOSSARY: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}

__all__ = ["GLOSSARY", "Entry", "entry_of", "search"]


def search(text: str) -> tuple[Entry, ...]:
    """The entries in which every word of ``text`` occurs, those first whose title has them."""
    found = [entry for entry in _ENTRIES if entry.matches(text)]
    return tuple(sorted(found, key=lambda entry: text.lower().strip() not in entry.title.lower()))


def entry_of(text: str) -> Entry:
    """The entry that an address names.

    Raises:
        InvalidInput: for any other text.
    """
    if text not in GLOSSARY:
        raise InvalidInput("term", text, "a word of this list, such as kernel-change")
    return GLOSSARY[text]
