"""A small table of words that needs no scrolling: on phones every row becomes a card."""

import html
import re
from collections.abc import Mapping, Sequence

import streamlit as st


def words_table(rows: Sequence[Mapping[str, str]], caption: str) -> None:
    """Show rows, with the first column as their names; ``m^{−1/2}`` has a superscript."""
    if rows:
        st.html(table_html(rows, caption))


def table_html(rows: Sequence[Mapping[str, str]], caption: str) -> str:
    """Return the table as HTML; every cell names its column."""
    head = "".join(f'<th scope="col">{_raised(name)}</th>' for name in rows[0])
    body = []
    for row in rows:
        (_, first), *others = row.items()
        cells = "".join(
            f'<td data-label="{html.escape(name)}"><span>{_raised(text)}</span></td>' for name, text in others
        )
        body.append(f'<tr><th scope="row">{_raised(first)}</th>{cells}</tr>')
    return (
        f'<table class="words"><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _raised(text: str) -> str:
    return re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", html.escape(text))
