"""The words of a page and its charts, read on first use from the Markdown in its folder.

``linearity_lab/views/PAGE/words.md`` holds the words of the page, and of each chart below a heading ``Chart: NAME``.
Any other Markdown file in the folder holds the words of the one chart named like it (steps of the lecture).
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl

from linearity_lab.view_modules import view_folder
from linearity_lab.words.glossary import GLOSSARY_FILE, glossary
from linearity_lab.words.markdown import Section, WordsError, read

SHOWS, CHANGES = "What this page shows", "What finite width changes"
SEE, FINITE = "What should I see?", "Why is finite width different?"
CHART = "Chart: "
VEILED_KEY = ".veiled"
PREDICT = "Predict first or show the answer. Then this text explains what to look for."


@dataclass(frozen=True)
class FigureWords:
    """The words below one figure.

    Attributes:
        formula: what it measures, Markdown with LaTeX; empty if it is beside the figure.
        see: what to look for.
        finite_width: why a network of finite width differs from the limit.
        terms: names of entries of the glossary.
    """

    formula: str
    see: str
    finite_width: str
    terms: tuple[str, ...]


def figure_words(key: str) -> FigureWords:
    """The words of the chart with this key (``page.chart``), of one whose answer is veiled without the answer.

    Raises:
        WordsError: it has none; or some words of its page are missing, or name a term that the glossary lacks.
    """
    page, _, name = key.removesuffix(VEILED_KEY).partition(".")
    found = charts_in(view_folder(page)).get(name)
    if found is None:
        raise WordsError(f"{view_folder(page) / 'words.md'} has no section “{CHART}{name}”.")
    return replace(found, see=PREDICT) if key.endswith(VEILED_KEY) else found


def titled_prose(page: str, heading: str) -> str:
    """Return the page's text below a heading, as a paragraph that starts with the heading."""
    return f"**{heading}{'' if heading.endswith('?') else '.'}** {prose(page, heading)}"


@dataclass(frozen=True)
class Link:
    """Something to try: some settings of a page, as its URL has them."""

    label: str
    page: str
    query: dict[str, str]


def try_links(page: str) -> tuple[Link, ...]:
    """What the page proposes to try: ``label: page?name=text&…``, a line each, in the front matter of its words."""
    links = []
    for label, target in _page(view_folder(page)).fields.items():
        name, _, query = target.partition("?")
        links.append(Link(label, name, dict(parse_qsl(query))))
    return tuple(links)


def prose(page: str, heading: str) -> str:
    """Return the page's text below a heading, unchanged."""
    return _page(view_folder(page)).prose(heading)


@functools.cache
def charts_in(folder: Path) -> Mapping[str, FigureWords]:
    """Name of a chart → its words, of all charts of the page in this folder.

    Raises:
        WordsError: as :func:`figure_words`.
    """
    found = {}
    for path in sorted(folder.rglob("*.md")):
        if path.name != "words.md":
            found[path.stem] = _figure(read(path))
            continue
        for heading, section in _page(folder).sections.items():
            if heading.startswith(CHART):
                section.holds_only(("formula", "terms"), (SEE, FINITE))
                section.field("formula")
                found |= dict.fromkeys(heading.removeprefix(CHART).split(", "), _figure(section))
    return found


@functools.cache
def _page(folder: Path) -> Section:
    return read(folder / "words.md")


def _figure(section: Section) -> FigureWords:
    terms = section.listed("terms")
    for term in terms:
        if term not in glossary():
            raise WordsError(f"{section.place}: {GLOSSARY_FILE.name} has no term “{term}”.")
    return FigureWords(section.fields.get("formula", ""), section.prose(SEE), section.prose(FINITE), terms)
