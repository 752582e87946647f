"""The numbers of tables, with as many digits as people compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DIGITS = 5


def readable(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The rows with numbers of five significant digits; what is exported has all of them."""
    return [{name: _short(value) for name, value in row.items()} for row in rows]


def _short(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
