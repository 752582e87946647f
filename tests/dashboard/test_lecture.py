"""The lecture: steps hide their answers until asked and agree with the gallery.

Drawn lines are compared.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from linearity_lab.charts.chart import VEILED_KEY, drawn_rows, enlarged
from linearity_lab.charts.figure import all_figures
from linearity_lab.charts.style import FONT_SIZE
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.lecture import figures as lecture_exact
from linearity_lab.dashboard.pages.lecture.drawing import line_words
from linearity_lab.dashboard.pages.lecture.page import LARGER, PRESENTED_HEIGHT, _results
from linearity_lab.dashboard.pages.lecture.steps import (
    PARTS,
    STEPS,
    named_option,
    option_name,
    step_index,
)
from linearity_lab.dashboard.pages.lecture.visit import Visit
from linearity_lab.dashboard.sketch import COLUMNS, from_browser
from linearity_lab.experiments.hessian.norm_figures import of_line
from linearity_lab.runs import PRESETS, Value, mean
from linearity_lab.words.pages import figure_words
from ntk_core.errors import InvalidInput
from ntk_core.fits import fit_power_law
from tests.dashboard.open_pages import address, checked, open_page, words

NAMES = [step.name for step in STEPS]


def at(app) -> str:
    return app.title[0].value


def places(app) -> list[str]:
    """Places of the choices in order, from their keys."""
    keys = {app.button(key=f"lecture.choice{index}").proto.shortcut: index for index in range(3)}
    return [STEPS[0].question.choices[keys[key]] for key in sorted(keys)]


def press(app, key):
    return checked(app.button(key=f"lecture.{key}").click().run())


def control(app):
    return app.get("button_group")[0]


def test_every_step_has_a_name_and_leads_to_a_page():
    assert len(set(NAMES)) == len(STEPS) > 10
    for step in STEPS:
        assert step.page in [entry.name for entry in PAGES]
        assert step.preset in PRESETS
        assert max(len(step.title), len(step.asks)) <= 65, "one line on a projector"
    assert [name for names in PARTS.values() for name in names] == NAMES


def test_a_step_is_named_by_its_number_and_by_its_name():
    for index, name in enumerate(NAMES):
        assert step_index(str(index + 1)) == step_index(name) == index
    for text in (
        "",
        "0",
        str(len(STEPS) + 1),
        "-1",
        "1.5",
        "²",
        "٣",
        "1e1",
        "hessian",
        "9" * 5000,
        "<b>",
    ):
        with pytest.raises(InvalidInput, match=f"use a number from 1 to {len(STEPS)}"):
            step_index(text)


def hides_its_answer(app, step) -> None:
    """Assert that question and unfinished figure are shown without any hint of the answer."""
    assert at(app) == step.asks
    assert address(app) == ({} if step is STEPS[0] else {"step": step.name})
    assert [piece.value.strip("$\n ") for piece in app.get("latex")] == list(step.formula)
    assert step.question.why(_results(step)).replace("\\", "") not in words(app)
    assert control(app).proto.disabled
    (chart,) = app.get("plotly_chart")
    assert VEILED_KEY in chart.proto.id


def shows_its_answer(app, step) -> None:
    assert step.question.why(_results(step)).replace("\\", "") in words(app)
    assert at(app) == step.title, "the claim comes with the answer"
    assert not control(app).proto.disabled
    assert len(app.get("plotly_chart")) == 1
    assert figure_words(f"lecture.{step.name}").finite_width.replace("\\", "") in words(app)


@pytest.mark.slow
def test_lecture_is_walked_by_buttons_and_counts_predictions():
    app = open_page("lecture")
    for index in (0, 1, len(STEPS) - 2, len(STEPS) - 1):
        step = STEPS[index]
        if index > 1:
            app.query_params = {"step": step.name}
            checked(app.run())
        hides_its_answer(app, step)
        assert app.get("progress")[0].proto.text == f"Step {index + 1} of {len(STEPS)}"
        is_right = index in (0, len(STEPS) - 2)
        choice = (step.question.answer + (not is_right)) % 3
        shows_its_answer(press(app, f"choice{choice}"), step)
        right = f"Right: **{step.question.choices[step.question.answer]}"
        assert any(right in each.value for each in app.success) == is_right
        if index == 0:
            press(app, "next.bottom")
    assert f"You predicted 2 of {len(STEPS)} figures." in words(app)
    assert "The story in short" in words(app)
    assert at(press(app, "back.top")) == STEPS[-2].title
    assert "Right" in "".join(each.value for each in app.success), "answers are remembered"


def test_choices_have_a_uniform_order_per_visit():
    app = open_page("lecture")
    first = places(app)
    assert sorted(first) == sorted(STEPS[0].question.choices)
    press(app, "next.top")
    assert places(press(app, "back.top")) == first, "the order is kept"
    for step in STEPS:
        found = Counter(
            Visit(seed=seed).order(step).index(step.question.answer) for seed in range(600)
        )
        # 200 expected of 600, with a standard deviation of 11.5; 19 steps × 3 places stay
        # within four of them.
        assert all(abs(found[place] - 200) < 46 for place in range(3)), step.name
    assert Visit().seed != Visit().seed


@pytest.mark.slow
def test_every_figure_that_a_step_leads_to_is_a_tab_of_its_page():
    led = [step for step in STEPS if step.tab]
    assert len(led) == 6
    for step in led:
        app = open_page(step.page, opened=False, preset=step.preset, tab=step.tab)
        # The figure of the preset's own panel is large, above the tabs.
        panel = PRESETS[step.preset].panel if step.preset else ""
        figures = all_figures(step.page)
        large = [figure.title for figure in figures if figure.name == panel]
        assert step.tab in [*large, *(tab.label for tab in app.tabs)], step.name
        assert not app.warning, "the name of a tab is no wrong setting"


def test_option_of_a_figure_is_in_the_address_and_remembered():
    app = open_page("lecture", step="hessian-and-ball", show="4")
    assert control(app).value == STEPS[1].control.start, "what is veiled gives nothing away"
    press(app, "show")
    assert control(app).value == 4.0
    control(app).set_value(0.5)
    assert address(checked(app.run())) == {"step": NAMES[1], "show": "0.5"}
    press(app, "next.top")
    assert address(app) == {"step": NAMES[2]}
    assert address(press(app, "back.top")) == {"step": NAMES[1], "show": "0.5"}
    for query, value in (
        ({"step": "2", "show": "4"}, 4.0),
        ({"step": "2"}, STEPS[1].control.start),
    ):
        app.query_params = query  # another link to the same step
        assert control(checked(app.run())).value == value


def test_without_a_gallery_the_words_and_the_question_are_there(gallery):
    app = open_page("lecture", step="6")
    assert "`make gallery` computes them" in words(app)
    assert not press(app, "choice1").get("plotly_chart")


def numbers_of(chart) -> list[float]:
    return [
        value for trace in chart.figure.data for value in trace.y if isinstance(value, (int, float))
    ]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_options_are_drawn_and_a_veil_gives_nothing_away(step):
    for option in step.control.options:
        assert named_option(step, option_name(option)) == option
    for option in (list(step.control.options)[-1], step.control.start):
        whole = step.draw(_results(step), option, True)
        assert whole.rows
        assert whole.takeaway.endswith(".")
        assert len(numbers_of(whole)) >= 4
    veiled = step.draw(_results(step), step.control.start, False)
    assert 0 < len(drawn_rows(veiled.figure)) <= len(numbers_of(veiled))
    names = [trace.name or "" for trace in veiled.figure.data]
    assert not any("∝" in name or name.startswith("slope") for name in names)
    if step.name != "diagonal-hessian":  # shown only at its first width
        assert len(numbers_of(veiled)) < len(numbers_of(whole))


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_the_numbers_of_an_answer_are_read_from_the_results(step):
    """Changing every exponent and mean of the results changes the reason."""
    changed = {
        name: result.model_copy(update={"points": tuple(map(scaled, result.points))})
        for name, result in _results(step).items()
    }
    assert step.question.why(changed) != step.question.why(_results(step))


def scaled(point):
    """Multiply a point's measured numbers by a power of its width,
    and those of networks by twice that.
    """

    def walk(part, factor):
        if isinstance(part, Value):
            kept = set(type(part).model_fields) - {"rate", "radius", "learning_rate"}
            found = {
                name: walk(getattr(part, name), factor**2 if name == "network" else factor)
                for name in kept
            }
            return part.model_copy(update=found)
        if isinstance(part, tuple):
            return tuple(walk(each, factor) for each in part)
        return part * factor if isinstance(part, float) else part

    return point.model_copy(
        update={"runs": tuple(walk(run, point.width**0.1) for run in point.runs)}
    )


def test_diagonal_entries_are_those_of_the_hessian():
    """Central differences of f in float64, with error about h² + eps/h², 1e-8 at h = 1e-4."""
    width, h = 5, 1e-4
    weights, entries = lecture_exact.diagonal_entries(width, seed=3)
    draw, e = np.random.default_rng(3), np.eye(width) * h
    draw.standard_normal(width)
    signs = draw.choice((-1.0, 1.0), width)

    def f(w):
        return float(signs @ np.tanh(w)) / math.sqrt(width)

    second = [
        [
            f(weights + a + b) - f(weights + a - b) - f(weights - a + b) + f(weights - a - b)
            for b in e
        ]
        for a in e
    ]
    np.testing.assert_allclose(np.array(second) / (4 * h * h), np.diag(entries), atol=1e-6)
    gradient = np.array([f(weights + a) - f(weights - a) for a in e]) / (2 * h)
    assert lecture_exact.kernel_entry(width, seed=3) == pytest.approx(gradient @ gradient, rel=1e-6)


def test_the_drawn_norms_scale_as_the_step_states():
    for law, low, high in (("signs", -0.5001, -0.4999), ("normal", -0.45, -0.37)):
        found = lecture_exact.norm_dots(law)
        assert (
            low
            < fit_power_law(
                *zip(*((dot.at, dot.value) for dot in found["b_max"]), strict=True)
            ).exponent
            < high
        )
        assert max(abs(dot.value - 1) for dot in found["b_norm"] if dot.at >= 1000) < 0.1
    for point in of_line(gallery_result("liu-shallow").points, "shallow"):
        norms = mean([run.norm for run in point.runs])
        largest = [
            float(abs(lecture_exact.diagonal_entries(point.width, seed)[1]).max())
            for seed in range(5)
        ]
        # The largest of many entries close to the bound barely depends on the draw.
        assert mean(largest).value == pytest.approx(norms.value, rel=0.01)


DRAWN = [step for step in STEPS if step.measured]
DRAWN_STEPS = pytest.mark.parametrize("step", DRAWN, ids=lambda step: step.name)


def straight(step, power: float):
    """A power law from the first point, as reported by a browser and as parsed by the page."""
    line, _ = step.measured(_results(step))
    (first, start), *_, (last, _) = line.means
    ends = math.log10(first), math.log10(last)
    return from_browser(
        [math.log10(start.value) + power * (x - ends[0]) for x in np.linspace(*ends, COLUMNS)], ends
    )


@pytest.mark.parametrize(
    "heights", [None, 3, "x", [], [0.0] * 5, [math.nan] * COLUMNS, [1e9] * COLUMNS, ["a"] * COLUMNS]
)
def test_invalid_drawings_are_rejected(heights):
    assert from_browser(heights, (1.0, 3.0)) is None


def test_the_power_of_a_line_is_that_of_least_squares():
    wavy = [-0.5 * x + 0.05 * math.sin(9 * x) for x in np.linspace(2, 4, COLUMNS)]
    power, points = from_browser(wavy, (2.0, 4.0))
    assert power == pytest.approx(
        np.polyfit(np.log(points)[:, 0], np.log(points)[:, 1], 1)[0], abs=1e-12
    )
    assert (points[0][0], points[-1][0]) == pytest.approx((100.0, 10_000.0))


@DRAWN_STEPS
def test_drawn_line_is_compared_with_the_measured_interval(step):
    line, axis = measured = step.measured(_results(step))
    law = line.law
    assert step.nearest(law.exponent) == step.question.answer
    why = step.question.why(_results(step))
    assert f"^{{{law.exponent:.2f} \\pm {law.interval:.2f}}}" in why, (
        "the answer names the same power"
    )
    for power, verdict in (
        (law.exponent, "inside the 95%"),
        (law.exponent + law.interval + 0.3, "outside the 95%"),
    ):
        drawn = straight(step, power)
        assert drawn[0] == pytest.approx(power, abs=1e-12)
        output = line_words(step, drawn, measured)
        assert verdict in output
        assert f"{axis.letter}^{{{power:.2f}}}" in output.replace("-0.00", "0.00")
        assert step.question.choices[step.nearest(power)] in output
    assert f"by {law.interval + 0.3:.2f}" in output


@pytest.mark.parametrize("name", ["two-norms", "hessian-and-ball", "graphs", "nonlinear-output"])
def test_enlarged_labels_do_not_touch(name):
    step = next(each for each in STEPS if each.name == name)
    chart = step.draw(_results(step), step.control.start, True)
    figure = enlarged(chart.figure, LARGER, PRESENTED_HEIGHT)
    low, high = figure.layout.yaxis.range
    pixels = (PRESENTED_HEIGHT - 28 - 4.5 * FONT_SIZE * LARGER) / (high - low)
    labels = []
    for trace in figure.data:
        if (trace.name or "").startswith("label of "):
            rows = trace.text[-1].count("<br>") + 1
            center = pixels * (math.log10(trace.y[-1]) - low)
            half = rows * 1.3 * (trace.textfont.size - 1) / 2
            labels.append((center - half, center + half))
    labels.sort()
    assert len(labels) > 1
    for (_, upper), (lower, _) in itertools.pairwise(labels):
        assert upper <= lower + 0.5
