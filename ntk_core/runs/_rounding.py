"""Numbers as results keep them."""

from __future__ import annotations

from collections.abc import Iterable


def rounded(values: Iterable[float]) -> tuple[float, ...]:
    """Four digits, enough to draw and half of the size."""
    return tuple(float(f"{value:.4g}") for value in values)
