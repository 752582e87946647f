"""The glossary: symbol, sentence, formula, pages and source of each term, from glossary.md."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from linearity_lab.words.markdown import Section, WordsError, read
from ntk_core.errors import InvalidInput

GLOSSARY_FILE = Path(__file__).with_name("glossary.md")


@dataclass(frozen=True)
class Entry:
    """One word.

    Attributes:
        name: in the URL.
        symbol: LaTeX, empty for none.
        formula: LaTeX of its definition, empty where the sentence is one.
        page: where it is seen.
        source: paper and section.
        other_names: what else people call it, for the search.
    """

    name: str
    title: str
    sentence: str
    page: str
    source: str
    symbol: str
    formula: str
    other_names: str

    def matches(self, text: str) -> bool:
        """Whether every word of ``text`` occurs in this entry."""
        searched = f"{self.name} {self.title} {self.symbol} {self.sentence} {self.source} {self.other_names}".lower()
        return all(word in searched for word in text.lower().split())


@functools.cache
def glossary(path: Path = GLOSSARY_FILE) -> Mapping[str, Entry]:
    """Name → entry of every word, by title; the file is read at the first call.

    Raises:
        WordsError: an entry lacks something, or has an unknown field.
    """
    entries = [_entry(name, section) for name, section in read(path).sections.items()]
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: _letters(entry.title))}


def _letters(title: str) -> str:
    """Sort "(2,2,1)-norm" and "2-norm" under n, as an index does, and Greek letters after z."""
    return re.sub(r"^[^a-z]+", "", title.lower()) or title


def _entry(name: str, section: Section) -> Entry:
    section.holds_only(("title", "symbol", "formula", "page", "source", "other names"))
    if not section.text:
        raise WordsError(f"{section.place} has no sentence.")
    title, page, source = (section.field(field) for field in ("title", "page", "source"))
    symbol, formula, other = (section.fields.get(field, "") for field in ("symbol", "formula", "other names"))
    return Entry(name, title, section.text, page, source, symbol, formula, other)


def search(text: str) -> tuple[Entry, ...]:
    """The entries in which every word of ``text`` occurs, those first whose title has them."""
    found = [entry for entry in glossary().values() if entry.matches(text)]
    return tuple(sorted(found, key=lambda entry: text.lower().strip() not in entry.title.lower()))


def entry_of(text: str) -> Entry:
    """The entry that a URL names.

    Raises:
        InvalidInput: for any other text.
    """
    if text not in glossary():
        raise InvalidInput("term", text, "a word of this list, such as kernel-change")
    return glossary()[text]
