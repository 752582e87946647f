"""Text for terminals, and HTML for notebooks.

Escaped, with inline styles for light and dark themes.
"""

import html
import importlib
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial, singledispatch
from types import ModuleType
from typing import Any

JSON = dict[str, Any]  # a JSON object
Part = Any  # HTML, or a Plotly figure
_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # invisible, but not in category Cf
_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;vertical-align:top;padding:.15em 1em .15em 0;border-bottom:{_LINE}"


class Markup(str):
    """HTML that Jupyter and marimo render."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


@singledispatch
def shown_parts(value: object, with_figure: bool) -> list[Part]:
    """Return the parts of a value from top to bottom; text is HTML.

    Modules that describe a class register its display here: ``@shown_parts.register``.
    """
    raise NotImplementedError(f"no display of {type(value).__name__}")


class Displayed:
    """Displays a value as several parts: HTML and Plotly figures, see :func:`shown_parts`."""

    def _repr_html_(self) -> str:
        return f"<div>{''.join(shown_parts(self, with_figure=False))}</div>"

    def _ipython_display_(self) -> None:
        if not is_kernel():
            raise NotImplementedError  # IPython then prints the value
        display = importlib.import_module("IPython.display").display
        for part in shown_parts(self, with_figure=True):
            display(
                {"text/html": part} if isinstance(part, str) else part._repr_mimebundle_(), raw=True
            )

    def _display_(self) -> Any:
        marimo = sys.modules["marimo"]  # its caller
        parts = shown_parts(self, with_figure=True)
        return marimo.vstack(
            [marimo.Html(part) if isinstance(part, str) else part for part in parts]
        )


def is_kernel() -> bool:
    """Whether a Jupyter notebook runs this process."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def notebook_place() -> Callable[[str], None] | None:
    """Return a function that replaces the HTML shown in this notebook; None outside a notebook."""
    marimo = sys.modules.get("marimo")  # notebooks have already loaded this module
    if marimo is not None and marimo.running_in_notebook():
        return lambda text: marimo.output.replace(marimo.Html(text))
    if not is_kernel():
        return None
    return partial(_update, importlib.import_module("IPython.display"), [])


def _update(display: ModuleType, handles: list[Any], text: str) -> None:
    shown = display.HTML(text)
    if handles:
        handles[0].update(shown)
    else:
        handles.append(display.display(shown, display_id=True))


def paragraph(text: object, *, title: str = "") -> str:
    """Return a line of text after a bold title."""
    bold = f"<strong>{html.escape(title)}</strong> " if title else ""
    return f'<p style="margin:.3em 0">{bold}{html.escape(str(text))}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a title row."""
    titles = "".join(f'<th scope="col" style="{_CELL}">{html.escape(title)}</th>' for title in head)
    lines = [
        "".join(f'<td style="{_CELL}">{html.escape(str(cell))}</td>' for cell in row)
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;color:inherit">'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )


def lines(text: str) -> str:
    """Return text with columns aligned by spaces."""
    font = "font:.9em ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
    style = f"overflow-x:auto;white-space:pre;margin:.4em 0;color:inherit;background:none;{font}"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


def folded(title: str, inside: str) -> str:
    """Return HTML that unfolds on a click on its title."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"


def shortened(text: str, most: int) -> str:
    """Shorten ``text`` to ``most`` characters, ending in an ellipsis if cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def without_marks(text: str) -> str:
    """Remove bidirectional and zero-width marks, which can make a text look like another one.

    These are the characters of Unicode's category Cf (format) and the Hangul fillers, which are
    drawn as nothing. Letters of right-to-left scripts stay and are displayed in their own order.
    Source: Unicode Technical Report 36, sections 2.5 and 2.8.
    """
    shown = []
    for letter in text:
        is_mark = unicodedata.category(letter) == "Cf" or letter in _BLANK_LETTERS
        if not is_mark:
            shown.append(letter)
    return "".join(shown)


def without_marks_inside(value: Any) -> Any:
    """Return a copy of nested lists and dictionaries whose texts have no such marks.

    Keys that would become equal get numbers, so that every entry stays. Other values are
    returned as they are.
    """
    if isinstance(value, str):
        return value if value.isascii() else without_marks(value)
    if isinstance(value, list | tuple):
        return [without_marks_inside(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    found: dict[Any, Any] = {}
    for key, entry in value.items():
        name = without_marks_inside(key)
        number = 2
        while name in found:
            name = f"{without_marks_inside(key)} ({number})"
            number += 1
        found[name] = without_marks_inside(entry)
    return found


def printable(text: str) -> str:
    """Remove control characters, which could confuse a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
