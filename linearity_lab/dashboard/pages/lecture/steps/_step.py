"""A step of the lecture.

It has a claim, a formula, one figure with one control, and a question to predict first.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from linearity_lab.charts.chart import Chart, veiled
from linearity_lab.charts.lines import Axis, Line
from linearity_lab.words.markdown import Section, WordsError, read
from linearity_lab.words.pages import FINITE, SEE

Results = Mapping[str, Any]  # result of each preset
Option = Any  # to choose in a step: a name, a width, a rate
Numbers = Callable[[Results], Mapping[str, str]]
Draw = Callable[[Results, Option], Chart]
Veil = Callable[[Results, Chart], Chart]
Measured = Callable[[Results], tuple[Line, Axis]]
_FIELDS = (
    "title",
    "asks",
    "source",
    "gallery",
    "terms",
    "page",
    "preset",
    "tab",
    "invitation",
    "control",
    "before",
    "exponents",
    "drawn",
)
_FORMULA = re.compile(r"^\$\$(.+)\$\$\n*", re.MULTILINE)
_CHOICE = re.compile(r"^- \[([ x])\] (.+)$", re.MULTILINE)
_OPTION = re.compile(r"^- \[([ x])\] (.+?): (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Question:
    """Question to predict before the figure shows the answer."""

    text: str
    choices: tuple[str, ...]
    answer: int  # index of the right choice
    reason: str  # the answer's reason, with ``{{name}}`` where a number of the results belongs
    numbers: Numbers  # results → name → number, as it is written

    def why(self, results: Results) -> str:
        """The answer's reason, with numbers taken from the results that the figure shows."""
        numbers = self.numbers(results)
        if set(_NUMBER.findall(self.reason)) != set(numbers):
            raise WordsError(f"“{self.reason}” has other numbers than {', '.join(numbers)}.")
        return _NUMBER.sub(lambda found: numbers[found[1]], self.reason)

    def verdict(self, chosen: int | None, was_drawn: bool = False) -> str:
        """Return the response to a choice; None is a request for the answer."""
        right = self.choices[self.answer]
        if chosen is None:
            return f"**{right}.**"
        if chosen == self.answer:
            return f"Right: **{right}.**"
        prefix = "" if was_drawn else f"Your answer: “{self.choices[chosen]}”. "
        return f"{prefix}Correct: **{right}.**"


@dataclass(frozen=True)
class Control:
    """Control of the figure."""

    label: str
    options: Mapping[Option, str]  # values with their displayed texts
    start: Option  # the initial option, which a veiled figure shows


@dataclass(frozen=True)
class LectureStep:
    """One step of the lecture."""

    name: str  # in the URL, of its Markdown, and of its chart
    title: str  # the claim, once the answer is known
    asks: str  # title of the step before the answer
    formula: tuple[str, ...]  # LaTeX, in pieces shown side by side if they fit
    words: str
    question: Question
    control: Control
    source: str
    gallery: tuple[str, ...]  # presets whose results the figure is drawn from
    page: str  # page and preset that run it, and the text of the link
    preset: str
    invitation: str
    before: str  # description of the veiled figure for screen readers; empty if the figure has one
    notes: str
    tab: str  # figure of ``page`` that the link opens, if not the first one
    exponents: tuple[float, ...]  # exponent of each choice if the answer can be drawn, or NaN
    drawn: str  # description of the line to draw
    whole: Draw  # (results, chosen option) → the figure
    veil: Veil  # (results, figure) → the figure without its answer
    measured: Measured | None = None  # results → the line to draw before it appears, and its axis

    def nearest(self, exponent: float) -> int:
        """Return the index of the choice nearest to a drawn exponent."""
        known = [index for index, each in enumerate(self.exponents) if math.isfinite(each)]
        return min(known, key=lambda index: abs(self.exponents[index] - exponent))

    def draw(self, results: Results, option: Option, known: bool) -> Chart:
        """Draw the figure, veiled until the answer is ``known``."""
        chart = self.whole(results, option)
        if known:
            return chart
        shown = self.veil(results, chart)
        return replace(shown, takeaway=self.before or shown.takeaway)


def smallest_alone(_: Results, chart: Chart) -> Chart:
    """Keep the values at the smallest width."""
    smallest = min(x for trace in chart.figure.data for x in trace.x if x is not None)
    return replace(chart, figure=veiled(chart.figure, smallest))


def alone(title: str) -> Veil:
    """Keep the lines whose titles begin so."""
    return lambda _, chart: replace(chart, figure=veiled(chart.figure, keep=(title,)))


def step(
    name: str,
    whole: Draw,
    numbers: Numbers,
    veil: Veil = smallest_alone,
    measured: Measured | None = None,
) -> LectureStep:
    """Build the step from ``NAME.md`` beside this file.

    The words of its figure are read with the figure.

    Raises:
        WordsError: for missing words, or not exactly one marked choice or option.
    """
    found = read(Path(__file__).with_name(f"{name}.md"))
    found.holds_only(_FIELDS, ("Control", "Question", "Answer", "Notes", SEE, FINITE))
    asked = found.prose("Question")
    text = found.text
    choices = tuple(choice for _, choice in _CHOICE.findall(asked))
    options = [
        (_value(value), words) for _, value, words in _OPTION.findall(found.prose("Control"))
    ]
    return LectureStep(
        name=name,
        **{
            field: found.field(field)
            for field in ("title", "asks", "source", "page", "preset", "invitation")
        },
        formula=tuple(_FORMULA.findall(text)),
        words=_FORMULA.sub("", text),
        question=Question(
            _CHOICE.sub("", asked).strip(),
            choices,
            _marked(found, "Question"),
            found.prose("Answer"),
            numbers,
        ),
        control=Control(
            found.field("control"), dict(options), options[_marked(found, "Control")][0]
        ),
        gallery=found.listed("gallery"),
        before=found.fields.get("before", ""),
        notes=found.prose("Notes"),
        tab=found.fields.get("tab", ""),
        exponents=tuple(float(each) for each in found.listed("exponents")) if measured else (),
        drawn=found.field("drawn") if measured else "",
        measured=measured,
        whole=whole,
        veil=veil,
    )


def _marked(found: Section, heading: str) -> int:
    marks = [mark for mark, _ in _CHOICE.findall(found.prose(heading))]
    if marks.count("x") != 1:
        raise WordsError(
            f"{found.place}, “{heading}” marks {marks.count('x')} choices by [x]; one is right."
        )
    return marks.index("x")


def _value(text: str) -> Option:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
