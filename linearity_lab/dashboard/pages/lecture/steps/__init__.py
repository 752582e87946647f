"""The source lecture and where its linearity ends, in nineteen steps, free of Streamlit."""

from pathlib import Path

from linearity_lab.dashboard.pages.lecture.steps._beyond import BEYOND
from linearity_lab.dashboard.pages.lecture.steps._edges import EDGES, LIMITS
from linearity_lab.dashboard.pages.lecture.steps._linear import LINEAR
from linearity_lab.dashboard.pages.lecture.steps._step import Control, LectureStep, Option, Question
from linearity_lab.words.markdown import read
from ntk_core.errors import InvalidInput

PAGE = "lecture"  # name of the page
_WRITTEN = {step.name: step for step in (*LINEAR, *LIMITS, *EDGES, *BEYOND)}
# Title of a part of the story → the names of its steps, in order.
PARTS: dict[str, tuple[str, ...]] = {
    title: part.listed("steps")
    for title, part in read(Path(__file__).parents[1] / "words.md")
    .sections["Story"]
    .sections.items()
}
STEPS: tuple[LectureStep, ...] = tuple(_WRITTEN[name] for names in PARTS.values() for name in names)

__all__ = [
    "PAGE",
    "PARTS",
    "STEPS",
    "Control",
    "Question",
    "Step",
    "named_option",
    "option_name",
    "part_of",
    "step_index",
]


def part_of(step: LectureStep) -> tuple[int, str]:
    """(number from 1, title) of a step's part of the story."""
    return next(
        (at, title)
        for at, (title, names) in enumerate(PARTS.items(), start=1)
        if step.name in names
    )


def step_index(text: str) -> int:
    """Return the index of the step in a URL, from its number or name.

    Raises:
        InvalidInput: for any other text.
    """
    names = [step.name for step in STEPS]
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= len(STEPS):
        return int(text) - 1
    raise InvalidInput(
        "step", text, f"a number from 1 to {len(STEPS)}, or the name of a step, such as {names[1]}"
    )


def option_name(option: Option) -> str:
    """Name of a figure's option in the URL: ``0.5``, ``4``, ``bound``."""
    return f"{option:g}" if isinstance(option, float) else str(option)


def named_option(step: LectureStep, text: str) -> Option:
    """Return the option of the step's figure in a URL.

    Raises:
        InvalidInput: for any other text.
    """
    options = {option_name(option): option for option in step.control.options}
    if text not in options:
        raise InvalidInput("show", text, f"{', '.join(list(options)[:-1])} or {list(options)[-1]}")
    return options[text]
