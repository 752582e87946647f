"""Frame of every page of the site.

Head, menu, foot, and Markdown as HTML with formulas as MathML.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import jinja2
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from linearity_lab.runs import PRESETS
from linearity_lab.words.markdown import typeset
from linearity_lab.words.pages import (
    CHANGES,
    FINITE,
    MEASURED,
    SHOWS,
    glossary,
    has_prose,
    prose,
    titled,
    titled_prose,
)

NAME = "Linearity Lab"
MENU = {
    "index.html": "Lecture",
    "live.html": "Live",
    "gallery.html": "Gallery",
    "glossary.html": "Glossary",
    "truth.html": "Claims",
}
DOCUMENTATION = {"docs/index.html": "Docs", "docs/api/index.html": "API"}  # written by make docs
ICON = (Path(__file__).parents[1] / "dashboard" / "icon.svg").read_text(encoding="utf-8")


def page(template: str, menu: Mapping[str, str], **values: object) -> str:
    """Return a page of the site from its template in ``templates``.

    Args:
        menu: files with their titles.
        values: values of the template. ``frame.html`` takes title; here, its file in the menu;
            kind, the class of its main element; about, a sentence for search engines; up, the
            relative path to the site's folder; and scripts to load after the page (scripts that
            draw figures load with the first figure).
    """
    frame = {
        "here": "",
        "kind": "",
        "about": "",
        "up": "",
        "scripts": (),
        "name": NAME,
        "icon": Markup(ICON),
    }
    return _templates().get_template(template).render({**frame, "menu": menu, **values})


@functools.cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "markdown": lambda text: Markup(html_of(text)),
        "inline": lambda text: Markup(html_of(text, inline=True)),
        "latex": lambda text, display="inline": Markup(formula(text, display)),
        "embedded": lambda data, name: Markup(embedded(name, data)),
    }
    found.globals |= {
        "prose": prose,
        "has_prose": has_prose,
        "titled": titled,
        "titled_prose": titled_prose,
        "glossary": glossary(),
        "claim": lambda preset: f"{typeset(preset.statement)} *{preset.source}.*",
        "PRESETS": PRESETS,
        "SHOWS": SHOWS,
        "CHANGES": CHANGES,
        "FINITE": FINITE,
        "MEASURED": MEASURED,
    }
    return found


def embedded(name: str, data: object) -> str:
    """Embed data for the scripts of the page."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)
# Private-use characters, which occur in no text.
_HELD = re.compile("([(“‘]*)\ue000(\\d+)\ue001([,.;:!?)’”]*)")
_LARGE_BARS = re.compile(r"\\[bB]ig\\\|")  # not known to the converter
# Fonts draw a prime raised already.
_PRIMES = re.compile(r"<msup>(<mi>[^<]*</mi>)(<mi>&#x0203[23];</mi>)</msup>")
_READER = MarkdownIt("commonmark", {"html": False}).enable("table")


@functools.cache
def formula(latex: str, display: str = "inline") -> str:
    """Return MathML; ``display`` is ``inline`` or ``block``."""
    return _PRIMES.sub(r"\1\2", convert(_LARGE_BARS.sub(r"\\Vert ", latex), display=display))


def html_of(text: str, *, inline: bool = False, link: Callable[[str], str | None] = str) -> str:
    """Convert Markdown with ``$…$`` and ``$$…$$`` to HTML.

    Args:
        inline: without a paragraph around it.
        link: maps link targets; None keeps only the words.
    """
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(formula(found[1], "block") if found[1] else formula(found[2]))
        return f"\ue000{len(held) - 1}\ue001"

    environment: dict[str, object] = {}
    read = _READER.parseInline if inline else _READER.parse
    tokens = read(_FORMULA.sub(hold, text), environment)
    for token in tokens:
        token.children = (
            _relinked(token.children or [], link) if token.type == "inline" else token.children
        )
    _name_cells(tokens)
    found = _READER.renderer.render(tokens, _READER.options, environment)

    def together(at: re.Match[str]) -> str:
        formula = held[int(at[2])]  # on one line with adjacent brackets and punctuation
        return f'<span class="held">{at[1]}{formula}{at[3]}</span>' if at[1] or at[3] else formula

    return _HELD.sub(together, found)


def _relinked(children: list[Token], link: Callable[[str], str | None]) -> list[Token]:
    kept = []
    dropped = 0
    for child in children:
        if child.type == "link_open":
            target = link(str(child.attrs["href"]))
            if target is None:
                dropped += 1
                continue
            child.attrs["href"] = target
        elif child.type == "link_close" and dropped:
            dropped -= 1
            continue
        kept.append(child)
    return kept


def _name_cells(tokens: list[Token]) -> None:
    """Label every table cell with its column, since phones show each row as a card."""
    columns: list[str] = []
    for at, token in enumerate(tokens):
        if token.type == "thead_open":
            columns = []
        elif token.type == "th_open":
            columns.append(tokens[at + 1].content)
            token.attrs["scope"] = "col"
        elif token.type == "tr_open":
            cell = 0
        elif token.type == "td_open":
            token.attrs["data-label"] = columns[cell]
            cell += 1
