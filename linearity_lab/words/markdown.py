"""Markdown with named parts.

Headings, and fields ``name: value`` in front matter or below a heading.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ntk_core.markup import without_marks

_ROOT = Path(__file__).parents[2]
_FRONT = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_FIELDS = re.compile(r"(?:[a-z][A-Za-z ]*: .+\n)+(?=\n|\Z)")


class WordsError(LookupError):
    """Error for missing or unused words; names the file and the section."""


@dataclass(frozen=True)
class Section:
    """A file, or the part below one of its headings."""

    place: str  # the file and the headings that lead here, for errors
    fields: Mapping[str, str]  # name → value
    text: str  # the prose up to the next heading
    sections: Mapping[str, Section]  # heading, one level down → the part below it

    def field(self, name: str) -> str:
        """The value of a field.

        Raises:
            WordsError: there is none.
        """
        if name not in self.fields:
            raise WordsError(f"{self.place} has no field “{name}”.")
        return self.fields[name]

    def listed(self, name: str) -> tuple[str, ...]:
        """Return the comma-separated values of a field."""
        return tuple(self.field(name).split(", "))

    def prose(self, heading: str) -> str:
        """The prose below a heading.

        Raises:
            WordsError: there is no such heading, or nothing below it.
        """
        if heading not in self.sections or not self.sections[heading].text:
            raise WordsError(f"{self.place} has no text “{heading}”.")
        return self.sections[heading].text

    def holds_only(self, fields: Collection[str], headings: Collection[str] = ()) -> None:
        """Check for unused fields and headings.

        Raises:
            WordsError: a field or a heading has another name.
        """
        for kind, names, known in (
            ("field", self.fields, fields),
            ("heading", self.sections, headings),
        ):
            for name in names:
                if name not in known:
                    raise WordsError(
                        f"{self.place}: nothing shows the {kind} “{name}”; it may be "
                        f"{', '.join(known)}."
                    )


def read(path: Path) -> Section:
    """The file as sections.

    Raises:
        WordsError: there is no such file, or a heading occurs twice.
    """
    place = path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else str(path)
    try:
        return _parsed(place, path.read_text(encoding="utf-8"), 1)
    except FileNotFoundError:
        raise WordsError(f"{place} is missing.") from None


def _parsed(place: str, text: str, level: int) -> Section:
    head, *below = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    sections: dict[str, Section] = {}
    for heading, part in zip(below[::2], below[1::2], strict=True):
        if heading in sections:
            raise WordsError(f"{place} has the heading “{heading}” twice.")
        sections[heading] = _parsed(f"{place}, “{heading}”", part, level + 1)
    head = head.lstrip("\n")
    found = _FRONT.match(head) or _FIELDS.match(head)
    lines = found[found.lastindex or 0].splitlines() if found else []
    fields = {name: value.strip() for name, _, value in (line.partition(": ") for line in lines)}
    return Section(place, fields, head[found.end() if found else 0 :].strip(), sections)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~$:&^-])")
_ADDRESS = re.compile(r"(https?:(?=//)|\bwww(?=\.)|@)", re.IGNORECASE)
# A letter with an index, a power or both: ``Q_L``, ``m^(-1/2)``, ``m_b^(-1/2)``.
_INDEX = r"_(?:\{[\w, ]+\}|(?:[A-Za-z\d]+|∞)(?![A-Za-z\d_]))"
_EXPONENT = r"\^\([-−±\d./ ρ]+\)"
_SYMBOL = re.compile(rf"(\b[A-Za-zα-ω](?:{_INDEX})?{_EXPONENT}|(?:\b[A-Za-zα-ω]|‖){_INDEX})")
RHO = r"\rho "
INFINITY = r"\infty "
_PARTS = re.compile(rf"(?P<letter>.)(?P<index>{_INDEX})?(?P<power>{_EXPONENT})?")


def plain(text: str) -> str:
    """Escape text for Markdown: no links, images, formulas, icons or colors.

    Markdown links addresses even if they are escaped, so a zero-width character splits them.
    """
    return _MARKDOWN.sub(r"\\\1", _ADDRESS.sub("\\1\u2060", _one_line(text)))


def _one_line(text: str) -> str:
    """Return text in one line, without invisible marks."""
    return " ".join(without_marks(text).split())


def typeset(text: str) -> str:
    """Escape ``text`` like :func:`plain`, with symbols as formulas.

    Symbols are such as ``m^(-1/2)`` and ``Q_L``.
    """
    pieces = _SYMBOL.split(_one_line(text))
    pieces[::2] = [_MARKDOWN.sub(r"\\\1", each) for each in pieces[::2]]
    for at in range(1, len(pieces), 2):
        letter, index, power = _symbol(pieces[at])
        norm, letter = (letter, "{}") if letter == "‖" else ("", letter)
        if index.isalpha() and len(index) > 1:
            index = rf"\text{{{index}}}"
        formula = letter + (f"_{{{index}}}" if index else "") + (f"^{{{power}}}" if power else "")
        pieces[at] = norm + f"${formula.replace('ρ', RHO).replace('∞', INFINITY)}$"
    return "".join(pieces)


def _symbol(text: str) -> tuple[str, str, str]:
    """Return letter, index and power of a symbol."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    index, power = (found[name] or "" for name in ("index", "power"))
    return found["letter"], index[1:].strip("{}"), power[2:-1]


def raised(text: str) -> str:
    """Return ``text`` as HTML with raised powers such as ``m^(-1/2)``.

    It is readable before the formula script loads.
    """
    pieces = _SYMBOL.split(html.escape(_one_line(text)))
    for at in range(1, len(pieces), 2):
        letter, index, power = _symbol(pieces[at])
        below = f"<sub>{index}</sub>" if index else ""
        above = f"<sup>{power.replace('-', '−')}</sup>" if power else ""
        pieces[at] = f"{letter if letter == '‖' else f'<i>{letter}</i>'}{below}{above}"
    return "".join(pieces)
