"""The lecture as one page to scroll, and its questions as Markdown."""

import html
import math
from collections.abc import Sequence

from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.live import home_data
from linearity_lab.components.sketch import CSS, HTML
from linearity_lab.site._figures import Figure, chart_data, lecture_figure
from linearity_lab.site._page import Page, embedded, formula, html_of
from linearity_lab.views.lecture.drawing import drawing_words, measured_words, to_draw, with_line
from linearity_lab.views.lecture.steps import PARTS, STEPS, Step, part_of
from linearity_lab.views.overview.page import TITLE
from linearity_lab.words.pages import FINITE, SHOWS, figure_words, glossary, prose
from ntk_core.markup import JSON
from ntk_core.numbers import width_label
from ntk_core.runs import PRESETS

SCRIPTS = ("home.js", "sketch.js", "lecture.js")
_STEP = """\
<section class="step" id="{name}" aria-labelledby="{name}-title">
<h3 id="{name}-title"><span class="number">Step {number}</span> <span class="asks">{asks}</span>
<span class="claim" hidden>{title}</span></h3>
<div class="pinned"><div class="options" role="group" aria-label="{control}"></div>{sketch}
<div class="st-key-{plot} place" data-figure="lecture.{name}"></div></div>
<div class="text">
<div class="formulas">{formulas}</div>
{words}
<div class="question">
<p class="ask"><strong>Predict first.</strong> {question}</p>
<ul class="choices">{choices}</ul>
<button type="button" class="show">Show the answer</button>
<div class="answer" role="status"></div>
</div>
<p class="source">{source} · <a href="{more}">{invitation}</a> ·
<a href="figures/lecture.{name}.html">This figure alone</a></p>
</div>
</section>
"""


def lecture_figures() -> list[Figure]:
    """The figure of every step."""
    return [lecture_figure(step, part_of(step)[1]) for step in STEPS]


def lecture_page() -> Page:
    """The page: what a tangent kernel is, the phenomenon in motion, the steps in their parts, and the end."""
    answers: JSON = {}
    parts = []
    for number, (part, names) in enumerate(PARTS.items(), start=1):
        steps = [step for step in STEPS if step.name in names]
        answers |= {step.name: _answers(step) for step in steps}
        parts.append(f'<h2 id="part-{number}"><span>Part {number}</span> {html.escape(part)}</h2>')
        parts += [_step(step) for step in steps]
    data = {
        "steps": answers,
        "home": home_data(),
        "sketch": {"css": CSS, "html": HTML},
    }
    body = (
        f'<div class="opening"><h1>{TITLE}</h1>{html_of(prose("overview", SHOWS))}</div>'
        f'<div class="live-place" id="live"></div><noscript><p>The figures need JavaScript.</p></noscript>'
        f'<div class="story">{html_of(prose("lecture", "Story"))}{_contents()}</div>'
        f'{"".join(parts)}<section class="end">{html_of(prose("lecture", "The end"))}<p class="score"></p></section>'
        f"{embedded('data', data)}"
    )
    about = "See when and why a wide neural network becomes a linear model."
    return Page("Linearity Lab", body, here="index.html", kind="lecture", about=about, scripts=SCRIPTS)


def _contents() -> str:
    listed = []
    for number, (part, names) in enumerate(PARTS.items(), start=1):
        asked = "".join(
            f'<li value="{at}"><a href="#{step.name}">{html_of(step.asks, inline=True)}</a></li>'
            for at, step in enumerate(STEPS, start=1)
            if step.name in names
        )
        listed.append(f'<div><p><a href="#part-{number}">{html.escape(part)}</a></p><ol>{asked}</ol></div>')
    return f'<nav class="contents" aria-label="Steps">{"".join(listed)}</nav>'


def _step(step: Step) -> str:
    question = step.question
    choices = "".join(
        f'<li><button type="button" class="choice" data-choice="{index}">{html_of(words, inline=True)}</button></li>'
        for index, words in enumerate(question.choices)
    )
    return _STEP.format(
        name=step.name,
        number=1 + [each.name for each in STEPS].index(step.name),
        asks=html_of(step.asks, inline=True),
        title=html_of(step.title, inline=True),
        control=html.escape(step.control.label, quote=True),
        sketch='<div class="sketch-place"></div>' if step.measured else "",
        plot=f"lecture-{step.name}-veiled",
        formulas="".join(formula(each, "block") for each in step.formula),
        words=html_of(step.words),
        question=html_of(question.text, inline=True),
        choices=choices,
        source=html_of(step.source, inline=True),
        more=f"figures/{step.preset}.html",
        invitation=html.escape(PRESETS[step.preset].title),
    )


def _answers(step: Step) -> JSON:
    """Return the response to each choice, with ``None`` for a request for the answer."""
    results, question = _results(step), step.question
    words = figure_words(f"lecture.{step.name}")
    terms = "".join(f'<a href="glossary.html#{name}">{html.escape(glossary()[name].title)}</a>' for name in words.terms)
    chosen: Sequence[int | None] = (None, *range(len(question.choices)))
    return {
        "right": question.answer,
        "verdicts": {str(each): html_of(question.verdict(each), inline=True) for each in chosen},
        "drawn": html_of(question.verdict(-1, True), inline=True),
        "why": html_of(question.why(results)) + html_of(words.see) + html_of(f"**{FINITE}** {words.finite_width}"),
        "terms": terms,
        "line": _line(step, results) if step.measured else None,
    }


def _line(step: Step, results: JSON) -> JSON:
    """Data to compare a drawn line with the measured one, as ``drawing.line_words`` does."""
    assert step.measured is not None
    measured = step.measured(results)
    line, axis = measured
    (first, start), *_, (last, end) = line.means
    shown = with_line(step.draw(results, step.control.start, True), (0.0, [(first, start.value)] * 2), measured)
    law = line.law
    fields = drawing_words()
    return {
        "props": to_draw(step, line, axis),
        "trace": chart_data(shown)["figure"]["data"][-1],
        "exponents": [each if math.isfinite(each) else None for each in step.exponents],
        "choices": [html_of(each, inline=True) for each in step.question.choices],
        "law": None if law is None else [law.exponent, law.interval if math.isfinite(law.interval) else None],
        "end": end.value,
        "letter": axis.letter,
        "measured": html_of(measured_words(measured), inline=True),
        "last": width_label(last),
        "words": {name: fields[name] for name in ("drawn", "inside", "outside", "unknown interval")},
    }


def _results(step: Step) -> JSON:
    return {name: gallery_result(name) for name in step.gallery}


def questions() -> str:
    """Every question with its choices and its answer, as Markdown."""
    lines = ["# Questions of the lecture", "", prose("lecture", "Story"), ""]
    for number, step in enumerate(STEPS, start=1):
        place, part = part_of(step)
        if PARTS[part][0] == step.name:
            lines += [f"## Part {place}: {part}", ""]
        lines += [f"### {number}. {step.asks}", "", step.question.text, ""]
        lines += [f"{letter}. {choice}" for letter, choice in zip("ABCDEFGH", step.question.choices, strict=False)]
        right = "ABCDEFGH"[step.question.answer]
        reason = step.question.why(_results(step))
        lines += ["", f"**Answer: {right}.** {step.title}. {reason} ({step.source})", ""]
    return "\n".join(lines)
