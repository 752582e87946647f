"""HTML that notebooks show: escaped, styled in place, in the colors of its page, to be read on light and on dark."""

import html
from collections.abc import Iterable, Sequence

_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;vertical-align:top;padding:.15em 1em .15em 0;border-bottom:{_LINE}"


class Markup(str):
    """HTML that Jupyter and marimo show as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def paragraph(text: object, *, title: str = "") -> str:
    """A line of text, behind a title in bold."""
    bold = f"<strong>{html.escape(title)}</strong> " if title else ""
    return f'<p style="margin:.3em 0">{bold}{html.escape(str(text))}</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a row of titles."""
    titles = "".join(f'<th scope="col" style="{_CELL}">{html.escape(title)}</th>' for title in head)
    lines = ["".join(f'<td style="{_CELL}">{html.escape(str(cell))}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;color:inherit">'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )


def lines(text: str) -> str:
    """Text whose columns are made by spaces."""
    font = "font:.9em ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
    style = f"overflow-x:auto;white-space:pre;margin:.4em 0;color:inherit;background:none;{font}"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


def folded(title: str, inside: str) -> str:
    """HTML that a click on its title opens."""
    return f"<details><summary>{html.escape(title)}</summary>{inside}</details>"
