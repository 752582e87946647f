"""Figures and page of a network beside its linear model."""

from __future__ import annotations

import numpy as np
import pytest

from linearity_lab.components.shown import Shown
from linearity_lab.views.dynamics import figures
from linearity_lab.views.dynamics.frames import ball, divergence_caption, leaving_caption, moving
from linearity_lab.views.dynamics.page import charts
from ntk_core.experiments.dynamics import DynamicsSpec
from tests.dashboard.made_dynamics import STEPS, make_dynamics_points, make_dynamics_result
from tests.dashboard.open_pages import checked, chooser, form_sentences, open_page, press, words

METHODS = ("gradient-descent", "beyond-stable", "adam")
POINTS = make_dynamics_points(widths=(30, 3000), methods=METHODS)


def lines(figure, dash=None):
    drawn = [trace for trace in figure.data if trace.mode.startswith("lines") and "text" not in trace.mode]
    return [trace for trace in drawn if dash in (None, trace.line.dash)]


def test_each_model_has_its_dash_in_trajectories():
    point = POINTS[0]
    figure = figures.trajectories(point, "linear", "gradient-descent", "step", "training points").figure
    run = point.of("linear", "gradient-descent")[0]
    for dash, path in (("solid", run.network), ("dash", run.linearized), ("dot", run.infinite)):
        legend, *drawn = lines(figure, dash)
        assert legend.name in ("network: solid", "linear model: dashed", "infinite width: dotted")
        for row, (trace, own_class) in enumerate(zip(drawn, (1, 0), strict=True)):
            assert list(trace.x) == [1, 10, 100]
            np.testing.assert_allclose(trace.y, [block[row][own_class] for block in path.outputs[1:]])
    swish = figures.trajectories(point, "swish", "gradient-descent", "time", "test points").figure
    assert not lines(swish, "dot")
    assert list(lines(swish, "solid")[1].x) == [0.5, 5, 50]


def test_departure_is_marked_on_lines_that_leave_for_good():
    figure = figures.difference_against_time(POINTS, "gradient-descent", "step").figure
    runs = [
        run for point in POINTS for run in (*point.of("linear", "gradient-descent"), *point.of("swish", METHODS[0]))
    ]
    drawn = [trace for trace in figure.data if trace.x[0] is not None and "text" not in trace.mode]
    assert len(drawn) == len(runs)
    for trace, run in zip(drawn, runs, strict=True):
        np.testing.assert_allclose(trace.y, run.difference[1:])
        sizes = trace.marker.size or [0] * len(trace.x)
        marked = [step for step, size in zip(trace.x, sizes, strict=True) if size]
        assert marked == ([] if run.departure_step is None else [run.departure_step])
    assert any(run.departure_step for run in runs)
    assert any(run.departure_step is None for run in runs)
    assert figure.layout.shapes[0].y0 == 0.01


@pytest.mark.parametrize("curve", [True, False])
def test_motion_has_a_frame_for_each_record(curve):
    point = make_dynamics_points(curve=curve)[0]
    figure = moving(point, "linear", "gradient-descent").figure
    run = point.of("linear")[0]
    assert [frame.name for frame in figure.frames] == [f"{step:,}" for step in STEPS]
    (slider,) = figure.layout.sliders
    assert [step.args[0][0] for step in slider.steps] == [frame.name for frame in figure.frames]
    play, pause = figure.layout.updatemenus[0].buttons
    assert list(play.args[0]) == [frame.name for frame in figure.frames]
    assert pause.args[0] == (None,) or pause.args[0] == [None]
    for index, frame in enumerate(figure.frames):
        if curve:
            expected = [path.test_outputs[index] for path in (run.network, run.linearized, run.infinite)]
            assert [list(data.y) for data in frame.data] == [[row[0] for row in block] for block in expected]
        else:
            np.testing.assert_allclose(frame.data[0].x, np.ravel(run.linearized.outputs[index]))
            np.testing.assert_allclose(frame.data[1].y, np.ravel(run.network.test_outputs[index]))
    # The last frame is what is seen first.
    first = figure.data[figure.frames[-1].traces[0]]
    np.testing.assert_allclose(first.y, figure.frames[-1].data[0].y)


def test_every_method_has_its_distance_and_its_kernel_change():
    chart = ball(POINTS, POINTS[0], "linear", "step")
    figure = chart.figure
    assert {trace.name for trace in figure.data} == {"gradient descent", "beyond the stable rate", "Adam"}
    assert len(figure.data) == 2 * len(POINTS[0].of("linear"))
    np.testing.assert_allclose(figure.data[0].y, [0.5, 2.0, 5.0])
    (level,) = figure.layout.shapes
    assert (level.yref, level.y0) == ("y", 5.0)  # as far as gradient descent gets
    assert {"λ_min", "condition number", "ΔK of hidden1"} <= set(chart.rows[0])
    assert [row["condition number"] for row in chart.rows[:4]] == [100, 100, np.inf, 100]


def test_one_method_shows_its_layers_instead_of_other_methods():
    (point,) = make_dynamics_points(widths=(30,), seeds=1)
    names = [trace.name for trace in ball([point], point, "linear", "time").figure.data]
    assert names == ["gradient descent"] * 2 + ["part of hidden layer 1", "part of output"]
    assert leaving_caption(point, "linear") == []


def test_methods_that_leave_the_ball_are_named_with_the_step():
    point = POINTS[1]
    (sentence,) = leaving_caption(point, "linear")
    assert sentence == "Gradient descent stays within 5 of w₀ at m = 3,000; beyond 1.5 times that: no method."
    runs = list(point.runs)
    index = next(i for i, run in enumerate(runs) if run.method == "adam")
    far = runs[index].network.model_copy(update={"distance": (0.0, 1.0, 8.0, 10.0)})
    runs[index] = runs[index].model_copy(update={"network": far})
    (sentence,) = leaving_caption(point.model_copy(update={"runs": tuple(runs)}), "linear")
    assert "Adam from step 10 (2.0 times as far, ΔK up to " in sentence


def test_words_state_the_fitted_and_the_stable_rate():
    points = make_dynamics_points(widths=(30, 100, 300, 1000, 3000), methods=METHODS, seeds=3)
    chart = figures.difference_against_time(points, "gradient-descent", "step")
    linear, swish = chart.caption
    assert "∝ m^(−0.50 ± " in linear  # the made gaps fall as m^(-1/2)
    assert "∝ m^(0.00 ± " in swish
    (diverged,) = divergence_caption(points)
    assert diverged.startswith(
        "Diverged with beyond the stable rate at η = 3: linear model at m = 30 (last finite step 37)"
    )
    assert diverged.endswith("Linear models are stable below η = 2.")
    assert "at width 3,000" in chart.takeaway


def test_charts_have_figures_words_and_numbers_for_every_choice():
    shown = Shown(make_dynamics_result(methods=METHODS).spec, POINTS, None, "job")
    for output in ("linear", "swish"):
        for method in METHODS:
            found = charts(shown, None, POINTS[0].width, output, method, "time", "test points")
            assert [each.name for each in found] == [
                f"figure.{name}" for name in ("outputs", "difference", "motion", "ball")
            ]
            assert all(each.takeaway.endswith(".") and each.rows and each.figure.data for each in found)


PAGE = "dynamics"


@pytest.fixture
def _offline(jobs, gallery, through_the_menu):
    return


@pytest.mark.usefixtures("_offline")
def test_page_shows_four_figures_and_redraws_on_choice(gallery):
    gallery("liu-true-and-linearized", make_dynamics_result(methods=METHODS))
    app = open_page(PAGE)
    assert len(app.get("plotly_chart")) == 4
    assert "Diverged with beyond the stable rate" in words(app)
    before = {chart.proto.spec for chart in app.get("plotly_chart")}
    choices = {"method": "adam", "output": "swish", "width": 30, "axis": "time", "points": "test points"}
    for key, value in choices.items():
        chooser(app, f"{PAGE}.{key}").set_value(value)
    after = {chart.proto.spec for chart in checked(app.run()).get("plotly_chart")}
    assert len(after - before) == 4


@pytest.mark.usefixtures("_offline")
def test_the_page_runs_its_settings(jobs):
    app = open_page(PAGE, widths="30", methods="sgd,adam", dataset__name="sine", outputs="linear")
    press(app, f"{PAGE}.run")
    (spec,) = jobs.submitted
    assert isinstance(spec, DynamicsSpec)
    assert (spec.widths, spec.methods, spec.is_curve) == ((30,), ("sgd", "adam"), True)


@pytest.mark.usefixtures("_offline")
def test_settings_unsuited_to_a_curve_are_explained():
    app = open_page(PAGE, preset="curves-in-one-dimension")
    app.multiselect(key=f"{PAGE}.outputs").set_value(["softmax"])
    sentences = form_sentences(checked(app.run()))
    assert sentences == ["Outputs φ: softmax cannot be used; use other outputs, for data without classes."]
