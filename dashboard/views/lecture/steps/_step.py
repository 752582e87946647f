"""What a step of the lecture is: a claim, a formula, one figure with one control, and a question to predict first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.charts.chart import Chart
from dashboard.words.markdown import WordsError, read
from dashboard.words.pages import FINITE, SEE

Results = Mapping[str, Any]
Numbers = Callable[[Results], Mapping[str, str]]
Draw = Callable[[Results, Any, bool], Chart]
_FIELDS = ("title", "source", "gallery", "terms", "page", "preset", "invitation")
_FORMULA = re.compile(r"^\$\$(.+)\$\$\n*", re.MULTILINE)
_CHOICE = re.compile(r"^- \[([ x])\] (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Question:
    """What is to be predicted before the figure shows it.

    Attributes:
        answer: index of the right choice.
        reason: the answer's reason, with ``{{name}}`` where a number of the results belongs.
        numbers: results → name → number, as it is written.
    """

    text: str
    choices: tuple[str, ...]
    answer: int
    reason: str
    numbers: Numbers

    def why(self, results: Results) -> str:
        """The answer's reason, with numbers taken from the results that the figure shows."""
        numbers = self.numbers(results)
        if set(_NUMBER.findall(self.reason)) != set(numbers):
            raise WordsError(f"“{self.reason}” has other numbers than {', '.join(numbers)}.")
        return _NUMBER.sub(lambda found: numbers[found[1]], self.reason)


@dataclass(frozen=True)
class Control:
    """What acts on the figure.

    Attributes:
        options: values, each with the words that people read.
        start: the option that is chosen at first, and that a veiled figure shows.
    """

    label: str
    options: Mapping[Any, str]
    start: Any


@dataclass(frozen=True)
class Step:
    """One step of the lecture.

    Attributes:
        name: in the URL, of its Markdown, and of its chart.
        title: the claim.
        formula: LaTeX, in pieces that stand beside each other where there is room.
        words: two or three sentences, Markdown.
        source: paper and section.
        gallery: presets whose results the figure is drawn from.
        page, preset, invitation: where a person can run it, with which preset, and the words of the link.
        draw: (results, chosen option, whether the answer is known) → the figure.
    """

    name: str
    title: str
    formula: tuple[str, ...]
    words: str
    question: Question
    control: Control
    source: str
    gallery: tuple[str, ...]
    page: str
    preset: str
    invitation: str
    draw: Draw


def step(name: str, control: Control, draw: Draw, numbers: Numbers) -> Step:
    """The step whose words stand in ``NAME.md`` beside this file; those of its figure are read with the figure.

    Raises:
        WordsError: some are missing, or it is not one choice that is marked as right.
    """
    found = read(Path(__file__).with_name(f"{name}.md"))
    found.holds_only(_FIELDS, ("Question", "Answer", SEE, FINITE))
    asked, text = found.prose("Question"), found.text
    marks, choices = zip(*_CHOICE.findall(asked), strict=True)
    if marks.count("x") != 1:
        raise WordsError(f"{found.place}, “Question” marks {marks.count('x')} choices by [x]; one is right.")
    return Step(
        name=name,
        title=found.field("title"),
        formula=tuple(_FORMULA.findall(text)),
        words=_FORMULA.sub("", text),
        question=Question(_CHOICE.sub("", asked).strip(), choices, marks.index("x"), found.prose("Answer"), numbers),
        control=control,
        source=found.field("source"),
        gallery=found.listed("gallery"),
        page=found.field("page"),
        preset=found.field("preset"),
        invitation=found.field("invitation"),
        draw=draw,
    )
