"""The words of pages, charts and the glossary, read on first use from Markdown.

``words.md`` in the folder of a page contains the words of the page, and of each chart below a
heading ``Chart: NAME``. Every other Markdown file in the folder contains the words of the chart
with its name (steps of the lecture).
"""

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl

from linearity_lab.page_modules import page_folder
from linearity_lab.words.markdown import Section, WordsError, read
from ntk_core.errors import InvalidInput

GLOSSARY_FILE = Path(__file__).with_name("glossary.md")
MARKS_FILE = Path(__file__).with_name("marks.md")


@dataclass(frozen=True)
class Entry:
    """A glossary entry."""

    name: str  # in the URL
    title: str
    sentence: str
    page: str
    source: str
    symbol: str  # LaTeX, empty for none
    formula: str  # LaTeX of its definition, empty where the sentence is one
    other_names: str  # synonyms, for the search

    @property
    def searched(self) -> str:
        """All its text in small letters, for the search."""
        return (
            f"{self.name} {self.title} {self.symbol} {self.sentence} {self.source} "
            f"{self.other_names}"
        ).lower()


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
    symbol, formula, other = (
        section.fields.get(field, "") for field in ("symbol", "formula", "other names")
    )
    return Entry(name, title, section.text, page, source, symbol, formula, other)


def search(text: str) -> tuple[Entry, ...]:
    """Return entries with every word of ``text``, matching titles first."""
    wanted = text.lower().split()
    found = list(glossary().values())
    for word in wanted:
        found = [entry for entry in found if word in entry.searched]
    return tuple(sorted(found, key=lambda entry: text.lower().strip() not in entry.title.lower()))


def entry_of(text: str) -> Entry:
    """The entry that a URL names.

    Raises:
        InvalidInput: for any other text.
    """
    if text not in glossary():
        raise InvalidInput("term", text, "a word of this list, such as kernel-change")
    return glossary()[text]


SHOWS = "What this page shows"
CHANGES = "What finite width changes"
# Results of the stored figures, each with the name of its figure: true beside any
# other figure, too.
MEASURED = "Measured in the stored figures"
# Below figures of pages, whatever their results are; and below those of the lecture, whose
# results are known.
READ = "How to read it"
SEE = "What should I see?"
FINITE = "Why is finite width different?"
# Marks that a figure may have; a field of this name in its words explains it, or else ``marks.md``.
MARKS = ("dashed", "dotted", "ring", "arrow", "seeds", "band", "guide", "excluded")
CHART = "Chart: "
PREDICT = "Predict first or show the answer. Then this text explains what to look for."


@dataclass(frozen=True)
class FigureWords:
    """The words below one figure."""

    formula: str  # what it measures, Markdown with LaTeX; empty if it is beside the figure
    see: str  # how to read it; in the lecture, what to look for
    finite_width: str  # why a network of finite width differs from the limit
    terms: tuple[str, ...]  # names of entries of the glossary
    clicks: str = ""  # what a click shows, which only the app has
    marks: tuple[tuple[str, str], ...] = ()  # (mark, its meaning)
    heading: str = READ  # above ``see``

    def reading(self, shown: Collection[str], *, in_app: bool = False) -> str:
        """Return how to read a figure that has these marks; in the app, also what a click shows."""
        sentences = [text for mark, text in self.marks if mark in shown]
        return " ".join((self.see, *sentences, *([self.clicks] if in_app and self.clicks else [])))


def figure_words(key: str) -> FigureWords:
    """Return the words of the chart with this key (``page.chart``).

    Raises:
        WordsError: it has none; or some words of its page are missing, or name a term
            that the glossary lacks.
    """
    page, _, name = key.partition(".")
    found = charts_in(page_folder(page)).get(name)
    if found is None:
        raise WordsError(f"{page_folder(page) / 'words.md'} has no section “{CHART}{name}”.")
    return found


def veiled_words(key: str) -> FigureWords:
    """Return the words of a chart whose answer is still to be predicted."""
    return replace(figure_words(key), see=PREDICT, clicks="", marks=())


def titled(heading: str, text: str) -> str:
    """Return a paragraph that starts with its heading; a list begins a line of its own."""
    between = "\n\n" if text.startswith("- ") else " "
    return f"**{heading}{'' if heading.endswith('?') else '.'}**{between}{text}"


def titled_prose(page: str, heading: str) -> str:
    """Return the page's text below a heading, as a paragraph that starts with the heading."""
    return titled(heading, prose(page, heading))


@dataclass(frozen=True)
class Link:
    """A suggestion: a page with settings in its URL."""

    label: str
    page: str
    query: dict[str, str]


def try_links(page: str) -> tuple[Link, ...]:
    """Return the suggestions of the page from the front matter of its words.

    Each is a line ``label: page?name=text&…``.
    """
    links = []
    for label, target in _page(page_folder(page)).fields.items():
        name, _, query = target.partition("?")
        links.append(Link(label, name, dict(parse_qsl(query))))
    return tuple(links)


def prose(page: str, heading: str) -> str:
    """Return the page's text below a heading, unchanged."""
    return _page(page_folder(page)).prose(heading)


def has_prose(page: str, heading: str) -> bool:
    """Whether the page has text below a heading."""
    return heading in _page(page_folder(page)).sections


@functools.cache
def charts_in(folder: Path) -> Mapping[str, FigureWords]:
    """Name of a chart → its words, of all charts of the page in this folder.

    Raises:
        WordsError: as :func:`figure_words`.
    """
    found = {}
    for path in sorted(folder.rglob("*.md")):
        if path.name != "words.md":
            found[path.stem] = _figure(read(path), SEE)
            continue
        for heading, section in _page(folder).sections.items():
            if heading.startswith(CHART):
                section.holds_only(("formula", "terms", "clicks", *MARKS), (READ, FINITE))
                section.field("formula")
                words = replace(_figure(section, READ), marks=_marks(section))
                found |= dict.fromkeys(heading.removeprefix(CHART).split(", "), words)
    return found


@functools.cache
def _common_marks() -> Mapping[str, str]:
    """Mark → its meaning, where a figure has no words of its own for it."""
    return {mark: section.text for mark, section in read(MARKS_FILE).sections.items()}


def _marks(section: Section) -> tuple[tuple[str, str], ...]:
    known = {**_common_marks(), **section.fields}
    return tuple((mark, known[mark]) for mark in MARKS if mark in known)


@functools.cache
def _page(folder: Path) -> Section:
    return read(folder / "words.md")


def _figure(section: Section, heading: str) -> FigureWords:
    terms = section.listed("terms")
    for term in terms:
        if term not in glossary():
            raise WordsError(f"{section.place}: {GLOSSARY_FILE.name} has no term “{term}”.")
    return FigureWords(
        section.fields.get("formula", ""),
        section.prose(heading),
        section.prose(FINITE),
        terms,
        section.fields.get("clicks", ""),
        heading=heading,
    )
