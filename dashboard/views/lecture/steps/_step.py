"""What a step of the lecture is: a claim, a formula, one figure with one control, and a question to predict first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.charts.chart import Chart

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """What is to be predicted before the figure shows it.

    Attributes:
        answer: index of the right choice.
        why: the answer's reason, with numbers taken from the results that the figure shows.
    """

    text: str
    choices: tuple[str, ...]
    answer: int
    why: Callable[[Results], str]


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
        name: in the address.
        title: the claim.
        formula: LaTeX, in pieces that stand beside each other where there is room.
        words: two or three sentences, Markdown.
        see: what to look for in the figure once it is whole.
        finite_width: why what is seen at finite width differs from the limit.
        source: paper and section.
        gallery: presets whose results the figure is drawn from.
        terms: names of entries of the glossary.
        page, preset, invitation: where a person can run it, with which preset, and the words of the link.
        draw: (results, chosen option, whether the answer is known) → the figure.
    """

    name: str
    title: str
    formula: tuple[str, ...]
    words: str
    question: Question
    control: Control
    see: str
    finite_width: str
    source: str
    gallery: tuple[str, ...]
    terms: tuple[str, ...]
    page: str
    preset: str
    invitation: str
    draw: Callable[[Results, Any, bool], Chart]
