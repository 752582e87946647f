"""The lecture as one page to scroll, and its questions as Markdown."""

import html
import math
from collections.abc import Mapping, Sequence

from linearity_lab.dashboard.live import home_data
from linearity_lab.dashboard.pages.lecture.drawing import (
    drawing_words,
    measured_words,
    to_draw,
    with_line,
)
from linearity_lab.dashboard.pages.lecture.steps import PARTS, STEPS, LectureStep
from linearity_lab.dashboard.pages.overview import TITLE
from linearity_lab.dashboard.scripts import SKETCH, SKETCH_HTML
from linearity_lab.site._figures import chart_data, step_results
from linearity_lab.site._page import html_of, page
from linearity_lab.words.pages import FINITE, figure_words, glossary, prose
from ntk_core.markup import JSON
from ntk_core.numbers import width_label

SCRIPTS = ("home.js", "sketch.js", "lecture.js")


def lecture_page(menu: Mapping[str, str]) -> str:
    """Return the page: introduction, *Live*, all steps by part, and the end."""
    data = {
        "steps": {step.name: _answers(step) for _, steps in parts() for _, step in steps},
        "home": home_data(),
        "sketch": {
            "css": SKETCH.with_suffix(".css").read_text(encoding="utf-8"),
            "html": SKETCH_HTML,
        },
    }
    return page(
        "lecture.html",
        menu,
        title="Linearity Lab",
        here="index.html",
        kind="lecture",
        about="See when and why a wide neural network becomes a linear model.",
        scripts=SCRIPTS,
        opening=TITLE,
        parts=parts(),
        data=data,
    )


def parts() -> list[tuple[str, list[tuple[int, LectureStep]]]]:
    """Return the title of each part with its numbered steps."""
    numbered = list(enumerate(STEPS, start=1))
    return [
        (part, [each for each in numbered if each[1].name in names])
        for part, names in PARTS.items()
    ]


def _answers(step: LectureStep) -> JSON:
    results = step_results(step)
    question = step.question
    words = figure_words(f"lecture.{step.name}")
    terms = "".join(
        f'<a href="glossary.html#{name}">{html.escape(glossary()[name].title)}</a>'
        for name in words.terms
    )
    chosen: Sequence[int | None] = (None, *range(len(question.choices)))
    return {
        "right": question.answer,
        "verdicts": {str(each): html_of(question.verdict(each), inline=True) for each in chosen},
        "drawn": html_of(question.verdict(-1, True), inline=True),
        "why": html_of(question.why(results))
        + html_of(words.see)
        + html_of(f"**{FINITE}** {words.finite_width}"),
        "terms": terms,
        "line": _line(step, results) if step.measured else None,
    }


def _line(step: LectureStep, results: JSON) -> JSON:
    """Data to compare a drawn line with the measured one, as ``drawing.line_words`` does."""
    assert step.measured is not None
    measured = step.measured(results)
    line, axis = measured
    (first, start), *_, (last, end) = line.means
    shown = with_line(
        step.draw(results, step.control.start, True), (0.0, [(first, start.value)] * 2), measured
    )
    law: list[float | None] | None = None
    if line.law is not None:
        interval = line.law.interval
        law = [line.law.exponent, interval if math.isfinite(interval) else None]
    fields = drawing_words()
    return {
        "props": to_draw(step, line, axis),
        "trace": chart_data(shown)["figure"]["data"][-1],
        "exponents": [each if math.isfinite(each) else None for each in step.exponents],
        "choices": [html_of(each, inline=True) for each in step.question.choices],
        "law": law,
        "end": end.value,
        "letter": axis.letter,
        "measured": html_of(measured_words(measured), inline=True),
        "last": width_label(last),
        "words": {
            name: fields[name] for name in ("drawn", "inside", "outside", "unknown interval")
        },
    }


def questions() -> str:
    """Return all questions with choices and answers as Markdown."""
    lines = ["# Questions of the lecture", "", prose("lecture", "Story"), ""]
    for place, (part, steps) in enumerate(parts(), start=1):
        lines += [f"## Part {place}: {part}", ""]
        for number, step in steps:
            choices = step.question.choices
            reason = step.question.why(step_results(step))
            lines += [f"### {number}. {step.asks}", "", step.question.text, ""]
            lines += [
                f"{letter}. {choice}" for letter, choice in zip("ABCDEFGH", choices, strict=False)
            ]
            right = "ABCDEFGH"[step.question.answer]
            lines += ["", f"**Answer: {right}.** {step.title}. {reason} ({step.source})", ""]
    return "\n".join(lines)
