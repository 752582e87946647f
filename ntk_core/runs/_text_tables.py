"""Tables and counts in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """One line per row, its cells padded to columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def num_runs(count: int) -> str:
    """``1 run``, ``5 runs``."""
    return f"{count} run" if count == 1 else f"{count} runs"
