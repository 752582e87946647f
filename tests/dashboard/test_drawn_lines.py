"""Lines drawn before the answer: accepted input, comparison, and axes that do not reveal the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linearity_lab.components.sketch import COLUMNS, from_browser
from linearity_lab.views.lecture.drawing import line_words, space_to_draw, with_line
from linearity_lab.views.lecture.page import _results
from linearity_lab.views.lecture.steps import STEPS

DRAWN = [step for step in STEPS if step.measured]
DRAWN_STEPS = pytest.mark.parametrize("step", DRAWN, ids=lambda step: step.name)


def straight(step, power: float):
    """A power law from the first point, as reported by a browser and as parsed by the page."""
    line, _ = step.measured(_results(step))
    (first, start), *_, (last, _) = line.means
    ends = math.log10(first), math.log10(last)
    heights = [math.log10(start.value) + power * (x - ends[0]) for x in np.linspace(*ends, COLUMNS)]
    found = from_browser(heights, ends)
    assert found is not None
    return found


@DRAWN_STEPS
def test_nearest_answer_of_a_drawn_step_is_right(step):
    law = step.measured(_results(step))[0].law
    assert step.nearest(law.exponent) == step.question.answer
    assert math.isfinite(law.interval)
    why = step.question.why(_results(step))
    assert f"^{{{law.exponent:.2f} \\pm {law.interval:.2f}}}" in why, "the answer names the same power"
    assert step.control.start == next(iter(step.control.options)) or step.name == "learning-rate"


@pytest.mark.parametrize(
    "heights", [None, 3, "x", [], [0.0] * 5, [math.nan] * COLUMNS, [1e9] * COLUMNS, ["a"] * COLUMNS]
)
def test_invalid_drawings_are_rejected(heights):
    assert from_browser(heights, (1.0, 3.0)) is None


def test_the_power_of_a_line_is_that_of_least_squares():
    wavy = [-0.5 * x + 0.05 * math.sin(9 * x) for x in np.linspace(2, 4, COLUMNS)]
    power, points = from_browser(wavy, (2.0, 4.0))
    x, y = (np.log(np.asarray(each)) for each in zip(*points, strict=True))
    centered = x - x.mean()
    assert power == pytest.approx(float(centered @ y / (centered @ centered)), abs=1e-12)
    assert (points[0][0], points[-1][0]) == pytest.approx((100.0, 10_000.0))


@DRAWN_STEPS
def test_drawn_line_is_compared_with_the_measured_interval(step):
    line, axis = measured = step.measured(_results(step))
    law, (_, end) = line.law, line.means[-1]
    for power, verdict in ((law.exponent, "inside the 95%"), (law.exponent + law.interval + 0.3, "outside the 95%")):
        drawn = straight(step, power)
        assert drawn[0] == pytest.approx(power, abs=1e-12)
        output = line_words(step, drawn, measured)
        assert verdict in output
        assert f"{axis.letter}^{{{power:.2f}}}" in output.replace("-0.00", "0.00")
        assert step.question.choices[step.nearest(power)] in output
    assert "too high" in output
    assert drawn[1][-1][1] > end.value
    assert f"by {law.interval + 0.3:.2f}" in output


@DRAWN_STEPS
def test_axis_for_drawing_is_symmetric(step):
    results = _results(step)
    line, _ = step.measured(results)
    veiled = space_to_draw(step.draw(results, step.control.start, False), line)
    low, high = veiled.figure.layout.yaxis.range
    assert (low + high) / 2 == pytest.approx(math.log10(line.means[0][1].value))
    whole = step.draw(results, step.control.start, True)
    steep = straight(step, -1.2)
    shown = with_line(whole, steep, step.measured(results)).figure
    assert shown.layout.yaxis.range[0] <= math.log10(steep[1][-1][1])
    assert len(shown.data) == len(whole.figure.data) + 1
    assert shown.data[-1].name.startswith("your line")
