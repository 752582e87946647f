"""Drawn predictions: a line on the veiled figure, then compared with the measurement."""

import math
from collections.abc import Mapping
from dataclasses import replace

import plotly.graph_objects as go

from linearity_lab.charts.axes import log_ticks
from linearity_lab.charts.chart import VEILED_KEY, Chart, drawn_rows
from linearity_lab.charts.labels import power
from linearity_lab.charts.lines import Axis, Line
from linearity_lab.charts.style import GUIDE_COLOR
from linearity_lab.dashboard.pages.lecture.steps import PAGE, STEPS, LectureStep, Option
from linearity_lab.page_modules import page_folder
from linearity_lab.words.markdown import read
from ntk_core.fits import exponent_words
from ntk_core.numbers import number, signed, width_label

# Steepest exponent that fits into the figure, up and down; as the slider of the component.
STEEPEST = 1.2
Drawn = tuple[float, list[tuple[float, float]]]


def before_answer(step: LectureStep, results: Mapping[str, object], option: Option) -> Chart:
    """Veil the figure of an unanswered step, with space for a line if one can be drawn."""
    shown = step.draw(results, option, False)
    number_of_step = 1 + [each.name for each in STEPS].index(step.name)
    alt = (
        f"{shown.takeaway} The rest of the figure appears with the answer of step {number_of_step}."
    )
    chart = Chart(shown.figure, alt, drawn_rows(shown.figure))
    return space_to_draw(chart, step.measured(results)[0]) if step.measured else chart


def space_to_draw(chart: Chart, line: Line) -> Chart:
    """Center the vertical range at the first point, so that the axis does not reveal the answer."""
    (first, start), *_, (last, _) = line.means
    span = STEEPEST * math.log10(last / first)
    middle = math.log10(start.value)
    ends = [middle - span, middle + span]
    figure = go.Figure(chart.figure)
    figure.update_yaxes(**log_ticks([10**end for end in ends]), range=ends, autorange=False)
    return replace(chart, figure=figure)


def to_draw(step: LectureStep, line: Line, axis: Axis) -> dict[str, object]:
    """Return the data of the sketch component for a step."""
    (first, start), *_, (last, _) = line.means
    words = drawing_words()
    return {
        # CSS class of the figure, without "st-key-".
        "plot": f"{PAGE}.{step.name}{VEILED_KEY}".replace(".", "-"),
        "ends": (math.log10(first), math.log10(last)),
        "start": math.log10(start.value),
        "letter": axis.letter,
        "words": {**words, "task": words["task"].format(drawn=step.drawn)},
    }


def with_line(chart: Chart, drawn: Drawn, measured: tuple[Line, Axis]) -> Chart:
    """Add the drawn line to the figure, in the color of guides, with space for it."""
    exponent, points = drawn
    _, axis = measured
    name = f"{drawing_words()['yours']} ∝ {power(axis.letter, signed(exponent))}"
    figure = go.Figure(chart.figure)
    figure.add_scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="lines",
        line={"color": GUIDE_COLOR, "dash": "solid", "width": 3},
        name=name,
        showlegend=True,
        hoverinfo="skip",
    )
    low, high = figure.layout.yaxis.range
    heights = [math.log10(y) for _, y in points]
    figure.update_yaxes(range=[min(low, min(heights) - 0.05), max(high, max(heights) + 0.05)])
    text = f" Your line scales as {axis.letter}^{signed(exponent)}."
    return replace(chart, figure=figure, takeaway=chart.takeaway + text)


def line_words(step: LectureStep, drawn: Drawn, measured: tuple[Line, Axis]) -> str:
    """Compare drawn and measured exponents.

    Whether the interval contains the drawn one, and the last values.
    """
    exponent, points = drawn
    line, axis = measured
    law = line.law
    last, end = line.means[-1]
    words = drawing_words()
    text = words["drawn"].format(
        drawn=_power(axis, signed(exponent)), choice=step.question.choices[step.nearest(exponent)]
    )
    if law is None:
        return text
    apart = abs(exponent - law.exponent)
    verdict = "unknown interval"
    if math.isfinite(law.interval):
        verdict = "inside" if apart <= law.interval else "outside"
    ratio = points[-1][1] / end.value
    return f"{text} " + words[verdict].format(
        measured=measured_words(measured),
        by=f"{apart:.2f}",
        letter=f"${axis.letter}$",
        last=width_label(last),
        factor=number(max(ratio, 1 / ratio)),
        way="high" if ratio > 1 else "low",
    )


def measured_words(measured: tuple[Line, Axis]) -> str:
    """Return the measured exponent with its interval, as a formula; empty without a fit."""
    line, axis = measured
    return "" if line.law is None else _power(axis, exponent_words(line.law))


def _power(axis: Axis, exponent: str) -> str:
    return f"${axis.letter}^{{{exponent.replace('−', '-').replace('±', chr(92) + 'pm')}}}$"


def drawing_words() -> Mapping[str, str]:
    """Return the words for drawing and for its result."""
    return read(page_folder(PAGE) / "words.md").sections["Drawing"].fields
