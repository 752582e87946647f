"""The source lecture and where its linearity ends, in seventeen steps, free of Streamlit."""

from typing import Any

from dashboard.views.lecture.steps._beyond import BEYOND
from dashboard.views.lecture.steps._edges import EDGES
from dashboard.views.lecture.steps._limits import LIMITS
from dashboard.views.lecture.steps._linear import LINEAR
from dashboard.views.lecture.steps._step import Control, Question, Step
from ntk_core.errors import InvalidInput

STEPS: tuple[Step, ...] = (*LINEAR, *LIMITS, *EDGES, *BEYOND)

__all__ = ["STEPS", "Control", "Question", "Step", "named_option", "option_name", "step_index"]


def step_index(text: str) -> int:
    """Index of the step that a URL names, by its number from 1 or by its name.

    Raises:
        InvalidInput: for any other text.
    """
    names = [step.name for step in STEPS]
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(STEPS):
        return int(text) - 1
    raise InvalidInput("step", text, f"a number from 1 to {len(STEPS)}, or the name of a step, such as {names[1]}")


def option_name(option: Any) -> str:
    """What the URL calls an option of a figure: ``0.5``, ``4``, ``bound``."""
    return f"{option:g}" if isinstance(option, float) else str(option)


def named_option(step: Step, text: str) -> Any:
    """The option of the step's figure that a URL names.

    Raises:
        InvalidInput: for any other text.
    """
    options = {option_name(option): option for option in step.control.options}
    if text not in options:
        raise InvalidInput("show", text, f"{', '.join(list(options)[:-1])} or {list(options)[-1]}")
    return options[text]
