"""The source lecture as twelve steps, free of Streamlit."""

from __future__ import annotations

from dashboard.lecture._beyond import BEYOND
from dashboard.lecture._limits import LIMITS
from dashboard.lecture._linear import LINEAR
from dashboard.lecture._step import Control, Question, Step
from ntk_core.errors import InvalidInput

STEPS: tuple[Step, ...] = (*LINEAR, *LIMITS, *BEYOND)

__all__ = ["STEPS", "Control", "Question", "Step", "step_index"]


def step_index(text: str) -> int:
    """Index of the step that an address names, by its number from 1 or by its name.

    Raises:
        InvalidInput: for any other text.
    """
    names = [step.name for step in STEPS]
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(STEPS):
        return int(text) - 1
    raise InvalidInput("step", text, f"a number from 1 to {len(STEPS)}, or the name of a step, such as {names[1]}")
