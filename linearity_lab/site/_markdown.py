"""Our Markdown as HTML, with formulas as MathML, which browsers draw without a script or a font of ours."""

import functools
import re
from collections.abc import Callable

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.token import Token

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
