"""How much memory runs may use, as whoever runs the machine has stated it."""

from __future__ import annotations

import os

from ntk_core.errors import InvalidInput

MEMORY_VARIABLE = "LINEARITY_LAB_MEMORY_GIB"


def stated_memory() -> float | None:
    """Bytes that a run may use as ``LINEARITY_LAB_MEMORY_GIB`` says; None where it says nothing.

    Raises:
        InvalidInput: when it is not a number above 0.
    """
    given = os.environ.get(MEMORY_VARIABLE)
    if not given:
        return None
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = -1.0
    if not 0 < gibibytes < 1e6:
        raise InvalidInput(MEMORY_VARIABLE, given, "a number of GiB above 0")
    return gibibytes * 2**30
