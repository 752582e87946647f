"""Two networks side by side, held against the limits of the server; free of Streamlit."""

from __future__ import annotations

import re
from typing import Any

from dashboard.jobs.limits import OverLimit, check_limits
from ntk_core.errors import TooLarge
from ntk_core.pairs import PARTS, ArchitecturePair


def check_both(pair: ArchitecturePair) -> None:
    """Refuse a pair of which one network asks for more than the server allows.

    Raises:
        OverLimit, TooLarge: for a setting, with the largest value that fits; the lower one where both are refused.
    """
    refusals: list[Any] = []
    for part in PARTS:
        try:
            check_limits(pair.spec(part))
        except OverLimit as error:
            name = re.sub(r"^architecture\.", f"{part}.", error.field)
            refusals.append(OverLimit(name, error.given, error.nearest))
        except TooLarge as error:
            refusals.append(error)
    if refusals:
        raise min(refusals, key=lambda error: error.nearest)
