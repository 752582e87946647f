"""Frame of every page of the site: head, menu, foot, and Markdown as HTML with formulas as MathML."""

import functools
import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.token import Token

from linearity_lab.charts.style import CHART_CONFIG

NAME = "Linearity Lab"
MENU = {
    "index.html": "Lecture",
    "live.html": "Live",
    "gallery.html": "Gallery",
    "glossary.html": "Glossary",
    "truth.html": "Claims",
}
DOCUMENTATION = {"docs/index.html": "Docs", "docs/api/index.html": "API"}  # written by make docs
ICON = (Path(__file__).parents[1] / "icon.svg").read_text(encoding="utf-8")
# Before anything is drawn: the chosen theme, and whether the page is embedded.
_FIRST = """\
const root = document.documentElement;
try { root.dataset.theme = (localStorage.getItem("theme") ?? "").replace("auto", ""); } catch { /* keeps nothing */ }
if (self !== top) root.classList.add("framed");"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{about}">
<title>{title}</title>
<link rel="icon" href="{up}icon.svg">
<link rel="stylesheet" href="{up}site.css">
<script>{first}</script>
{scripts}
</head>
<body data-up="{up}">
<a class="skip" href="#main">Skip to the text</a>
<header><nav aria-label="Pages"><a class="home" href="{up}index.html">{icon}<span>{name}</span></a>{menu}</nav>
<button type="button" class="theme" hidden>◐</button></header>
<main id="main" class="{kind}">
{body}
</main>
<footer><p>
Made by <code>linearity-lab site</code> from the results of its gallery; nothing comes from other hosts.</p></footer>
</body>
</html>
"""


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Attributes:
        here: its file, where the menu has it.
        kind: class of its main part, for the style sheet.
        about: a sentence for search engines.
        up: what leads from its folder to that of the site.
        scripts: files that it loads, in this order, once it is read; what draws figures is loaded with the first one.
    """

    title: str
    body: str
    here: str = ""
    kind: str = ""
    about: str = ""
    up: str = ""
    scripts: tuple[str, ...] = ()

    def html(self, menu: Mapping[str, str]) -> str:
        """Return the page with a menu of files and their titles."""
        links = "".join(
            f'<a href="{self.up}{file}"{" aria-current=page" if file == self.here else ""}>{words}</a>'
            for file, words in menu.items()
        )
        return _PAGE.format(
            title=html.escape(NAME if self.title == NAME else f"{self.title} · {NAME}"),
            about=html.escape(self.about, quote=True),
            up=self.up,
            first=_FIRST,
            scripts="\n".join(f'<script defer src="{self.up}{each}"></script>' for each in ("site.js", *self.scripts)),
            icon=ICON,
            name=NAME,
            menu=links,
            kind=self.kind,
            body=self.body,
        )


def embedded(name: str, data: object) -> str:
    """Embed data for the scripts of the page."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def configuration() -> str:
    """App settings that the scripts need."""
    return f"lab.config = {json.dumps(CHART_CONFIG)};\n"


_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)
_HELD = re.compile("([(“‘]*)\ue000(\\d+)\ue001([,.;:!?)’”]*)")  # private characters, which no text of ours has
_LARGE_BARS = re.compile(r"\\[bB]ig\\\|")  # not known to the converter
# Fonts draw a prime raised already.
_PRIMES = re.compile(r"<msup>(<mi>[^<]*</mi>)(<mi>&#x0203[23];</mi>)</msup>")
_READER = MarkdownIt("commonmark", {"html": False}).enable("table")


@functools.cache
def formula(latex: str, display: str = "inline") -> str:
    """MathML; ``display`` is ``inline`` or ``block``."""
    return _PRIMES.sub(r"\1\2", convert(_LARGE_BARS.sub(r"\\Vert ", latex), display=display))


def html_of(text: str, *, inline: bool = False, link: Callable[[str], str | None] = str) -> str:
    """HTML of Markdown with ``$…$`` and ``$$…$$``.

    Args:
        inline: without a paragraph around it.
        link: the target of each link → what it becomes; None leaves the words alone.
    """
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(formula(found[1], "block") if found[1] else formula(found[2]))
        return f"\ue000{len(held) - 1}\ue001"

    environment: dict[str, object] = {}
    read = _READER.parseInline if inline else _READER.parse
    tokens = read(_FORMULA.sub(hold, text), environment)
    for token in tokens:
        token.children = _relinked(token.children or [], link) if token.type == "inline" else token.children
    _name_cells(tokens)
    found = _READER.renderer.render(tokens, _READER.options, environment)
    return _HELD.sub(lambda at: _together(at[1], held[int(at[2])], at[3]), found)


def _together(before: str, held: str, after: str) -> str:
    """A formula in one line with what opens before and ends after it."""
    return f'<span class="held">{before}{held}{after}</span>' if before or after else held


def _relinked(children: list[Token], link: Callable[[str], str | None]) -> list[Token]:
    kept, dropped = [], 0
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
    """Label every cell of a table with its column, for phones, where each row is a card."""
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
