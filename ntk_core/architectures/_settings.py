"""Checks that all architectures share: each refuses with the name of the setting."""

from __future__ import annotations

from ntk_core.errors import InvalidInput

MAX_WIDTH = 10_000_000
TRAINED = ("all", "first", "hidden", "last")


def check_count(field: str, given: object, highest: int, lowest: int = 1) -> int:
    """``given`` as an integer in [lowest, highest], else InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int) or not lowest <= given <= highest:
        raise InvalidInput(field, given, f"an integer from {lowest:,} to {highest:,}")
    return given


def check_trained(given: str) -> None:
    """Refuse a choice of trained layers that is not one of ``TRAINED``."""
    if given not in TRAINED:
        raise InvalidInput("trained", given, "one of " + ", ".join(TRAINED))


def hidden_widths(width: int | tuple[int, ...], depth: int) -> tuple[int, ...]:
    """One width a hidden layer, from a single number or a tuple of ``depth`` numbers."""
    if isinstance(width, tuple):
        if len(width) != depth:
            raise InvalidInput("width", width, f"one integer, or a tuple of {depth} integers (one a hidden layer)")
        return tuple(check_count("width", each, MAX_WIDTH) for each in width)
    return (check_count("width", width, MAX_WIDTH),) * depth
