"""Page and figures of a network and its linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dynamics import figures
from linearity_lab.views.dynamics.frames import ball, divergence_caption, leaving_caption, moving
from ntk_core.experiments.dynamics import DynamicsSpec, difference_law
from tests.dashboard.open_pages import checked, chooser, form_sentences, open_page, press

DESCENT = "gradient-descent"
LEARNED = gallery_result("liu-true-and-linearized")
METHODS = gallery_result("beyond-gradient-descent")
CURVES = gallery_result("curves-in-one-dimension")


def test_each_model_has_its_dash_in_trajectories():
    point = LEARNED.points[0]
    (run, *_), classes = point.of("linear", DESCENT), np.argmax(point.y, axis=1)
    figure = figures.trajectories(point, "linear", DESCENT, "time", "training points").figure
    for dash, path in (("solid", run.network), ("dash", run.linearized), ("dot", run.infinite)):
        legend, *drawn = [trace for trace in figure.data if trace.line.dash == dash and "text" not in trace.mode]
        assert legend.name in ("network: solid", "linear model: dashed", "infinite width: dotted")
        for row, trace in enumerate(drawn):
            row *= len(point.y) // len(drawn)
            np.testing.assert_allclose(trace.x, run.learning_rate * np.array(run.steps[1:]))
            np.testing.assert_allclose(trace.y, [block[row][classes[row]] for block in path.outputs[1:]])


def test_departure_is_marked_on_lines_that_leave_for_good():
    figure = figures.difference_against_time(LEARNED.points, DESCENT, "step").figure
    runs = [run for point in LEARNED.points for output in LEARNED.spec.outputs for run in point.of(output, DESCENT)]
    drawn = [trace for trace in figure.data if trace.x[0] is not None and "text" not in trace.mode]
    for trace, run in zip(drawn, runs, strict=True):
        np.testing.assert_allclose(trace.y, run.difference[1:])
        sizes = trace.marker.size or [0] * len(trace.x)
        marked = [step for step, size in zip(trace.x, sizes, strict=True) if size]
        assert marked == ([] if run.departure_step is None else [run.departure_step])
    assert len({run.departure_step is None for run in runs}) == 2
    assert figure.layout.shapes[0].y0 == 0.01


@pytest.mark.parametrize("result", [CURVES, LEARNED], ids=["functions", "outputs"])
def test_motion_has_a_frame_for_each_record(result):
    point = result.points[0]
    figure, run = moving(point, "linear", DESCENT).figure, point.of("linear")[0]
    assert [frame.name for frame in figure.frames] == [f"{step:,}" for step in run.steps]
    (slider,) = figure.layout.sliders
    assert [step.args[0][0] for step in slider.steps] == [frame.name for frame in figure.frames]
    play, pause = figure.layout.updatemenus[0].buttons
    assert list(play.args[0]) == [frame.name for frame in figure.frames]
    assert list(pause.args[0]) == [None]
    for index, frame in enumerate(figure.frames):
        if result is CURVES:
            expected = [path.test_outputs[index] for path in (run.network, run.linearized, run.infinite)]
            assert [list(data.y) for data in frame.data] == [[row[0] for row in block] for block in expected]
        else:
            np.testing.assert_allclose(frame.data[0].x, np.ravel(run.linearized.outputs[index]))
            np.testing.assert_allclose(frame.data[1].y, np.ravel(run.network.test_outputs[index]))
    last = figure.frames[-1]
    np.testing.assert_allclose(figure.data[last.traces[0]].y, last.data[0].y)  # the first view


def test_every_method_has_its_distance_and_its_kernel_change():
    point = METHODS.points[0]
    chart = ball(METHODS.points, point, "linear", "step")
    drawn = [trace for trace in chart.figure.data if "text" not in trace.mode and trace.x[0] is not None]
    assert len({trace.name for trace in drawn}) == len(METHODS.spec.methods)
    assert len(drawn) == 2 * len(point.of("linear"))
    run = point.of("linear", DESCENT)[0]
    np.testing.assert_allclose(drawn[0].y, run.network.distance[1:])
    assert chart.figure.layout.shapes[0].y0 == run.sup_distance, "the ball of gradient descent"
    assert {"λ_min", "condition number", "ΔK of hidden1"} <= set(chart.rows[0])
    assert chart.rows[0]["condition number"] == pytest.approx(run.largest[0] / run.smallest[0])


def test_one_method_shows_its_layers_instead_of_other_methods():
    point: Any = LEARNED.points[0].model_copy(update={"runs": LEARNED.points[0].runs[:1]})
    names = [trace.name for trace in ball([point], point, "linear", "time").figure.data]
    assert set(names) == {"gradient descent", "part of hidden layer 1", "part of output"}
    assert leaving_caption(point, "linear") == []


def test_methods_that_leave_the_ball_are_named_with_the_step():
    """Largest width only; a method leaves the ball at 1.5 times the distance of gradient descent."""
    point = METHODS.points[-1]
    radius = point.of("linear", DESCENT)[0].sup_distance
    (sentence,) = leaving_caption(point, "linear")
    named = []
    for run in point.of("linear"):
        far = [step for step, r in zip(run.steps, run.network.distance, strict=True) if r > 1.5 * radius]
        if far:
            named.append(run.method)
            assert f" from step {far[0]:,} ({run.sup_distance / radius:.1f} times as far, ΔK up to " in sentence
    assert named == ["beyond-stable", "adam"]
    assert sentence.count("from step") == 2


def test_words_state_the_fitted_and_the_stable_rate():
    caption = figures.difference_against_time(LEARNED.points, DESCENT, "step").caption
    for output, sentence in zip(LEARNED.spec.outputs, caption[:2], strict=True):
        law = difference_law(LEARNED.points, output, DESCENT)
        assert f"{output} output".capitalize() in sentence
        assert f"∝ m^({law.exponent:.2f} ± {law.interval:.2f})".replace("-", "−") in sentence
    (diverged,) = divergence_caption(METHODS.points)
    assert diverged.startswith("Diverged with beyond the stable rate at η = ")
    assert "linear model at m = 30 (last finite step " in diverged
    assert "Linear models are stable below η = " in diverged


def test_every_choice_redraws_the_figures_of_a_page():
    app = open_page("dynamics", preset="beyond-gradient-descent")
    before = {chart.proto.spec for chart in app.get("plotly_chart")}
    for key, value in {"method": "adam", "width": 30, "axis": "time", "points": "test points"}.items():
        chooser(app, f"dynamics.{key}").set_value(value)
    assert len({chart.proto.spec for chart in checked(app.run()).get("plotly_chart")} - before) == 4


@pytest.mark.usefixtures("gallery")
def test_settings_of_a_curve_are_run_and_unsuited_ones_explained(jobs):
    app = open_page("dynamics", widths="30", methods="sgd,adam", dataset__name="sine", outputs="linear")
    press(app, "dynamics.run")
    (spec,) = jobs.submitted
    assert isinstance(spec, DynamicsSpec)
    assert (spec.widths, spec.methods, spec.is_curve) == ((30,), ("sgd", "adam"), True)
    app = open_page("dynamics", preset="curves-in-one-dimension")
    app.multiselect(key="dynamics.outputs").set_value(["softmax"])
    sentences = form_sentences(checked(app.run()))
    assert sentences == ["Outputs φ: softmax cannot be used; use other outputs, for data without classes."]
