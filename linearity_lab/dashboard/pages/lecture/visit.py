"""State of one visit to the lecture: step, predictions, and order of choices."""

import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.pages.lecture.steps import (
    PAGE,
    STEPS,
    LectureStep,
    Option,
    named_option,
    option_name,
    step_index,
)
from ntk_core.errors import InvalidInput

PRESENTING = {"1": True, "true": True, "0": False, "false": False}


@dataclass
class Visit:
    """State of the lecture in this session."""

    seed: int = field(default_factory=lambda: secrets.randbits(64))
    index: int = 0
    presenting: bool = False
    # Name of a step → index of the predicted choice, or None after a request for the answer.
    answers: dict[str, int | None] = field(default_factory=dict)
    shown: dict[str, Option] = field(default_factory=dict)  # name of a step → option of its figure
    # Name of a step → exponent of the drawn line, and its (x, y).
    drawn: dict[str, tuple[float, list[tuple[float, float]]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    poll_code: str = ""  # code of this visit's poll; empty for none
    bars: set[str] = field(default_factory=set)  # names of steps whose bars are shown

    @property
    def step(self) -> LectureStep:
        return STEPS[self.index]

    @property
    def known(self) -> bool:
        return self.step.name in self.answers

    def heading(self, step: LectureStep) -> str:
        """Return the claim of an answered step, else its question.

        So no title reveals the answer.
        """
        return step.title if step.name in self.answers else step.asks

    @property
    def next_shows(self) -> str:
        """Return what Next shows first: ``bars``, ``answer``, or empty for the next step."""
        if self.known or not (self.presenting or self.poll_code):
            return ""
        return "bars" if self.poll_code and self.step.name not in self.bars else "answer"

    def order(self, step: LectureStep) -> list[int]:
        """Return the choices in this visit's order, which is random and fixed."""
        places = range(len(step.question.choices))
        return random.Random(f"{self.seed} {step.name}").sample(places, len(places))

    def move(self, by: int) -> None:
        """Go one step forward or back; while presenting, Next shows bars and answer first."""
        self.notes = []
        first = self.next_shows if by > 0 else ""
        if first == "bars":
            self.bars.add(self.step.name)
        elif first:
            self.answers[self.step.name] = None
        else:
            self.index = min(max(self.index + by, 0), len(STEPS) - 1)

    def answer(self, choice: int | None) -> None:
        """Record a predicted choice, or a request for the answer."""
        self.answers[self.step.name] = choice

    def draw(self, exponent: float, points: list[tuple[float, float]]) -> None:
        """Record a drawn line, and its exponent as a predicted choice."""
        self.drawn[self.step.name] = exponent, points
        self.answer(self.step.nearest(exponent))

    def present(self) -> None:
        """Toggle large letters."""
        self.presenting = not self.presenting

    def query(self, index: int) -> dict[str, str]:
        """Return the URL of a step, with letter size and option of its figure."""
        step = STEPS[index]
        option = self.shown.get(step.name, step.control.start)
        return {
            **({"step": step.name} if index else {}),
            **({"present": "1"} if self.presenting else {}),
            **({"show": option_name(option)} if option != step.control.start else {}),
        }

    def read(self, address: Mapping[str, str]) -> None:
        """Read step, size and option from a URL; return one sentence for each invalid part."""
        readers: dict[str, Callable[[str], object]] = {
            "step": step_index,
            "present": _is_large,
            "show": str,
        }
        found, notes = session.read_address(address, readers)
        self.index = found.get("step", 0)
        self.presenting = found.get("present", False)
        if "step" in notes:
            notes["step"] += " This is the first step."
        self.shown.pop(self.step.name, None)
        st.session_state.pop(control_key(self.step), None)
        if "show" in found and not notes:
            shown, notes = session.read_address(
                {"show": found["show"]}, {"show": partial(named_option, self.step)}
            )
            if shown:
                self.shown[self.step.name] = shown["show"]
        self.notes = list(notes.values())


def control_key(step: LectureStep) -> str:
    """Return the key of the control of a step."""
    return f"{PAGE}.{step.name}.control"


def _is_large(text: str) -> bool:
    if text not in PRESENTING:
        raise InvalidInput("present", text, "1 for large letters, or 0")
    return PRESENTING[text]
