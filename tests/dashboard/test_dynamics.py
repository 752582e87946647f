"""Figures along training, from the gallery: dynamics, early time and learning rates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dynamics import figures
from linearity_lab.views.dynamics.frames import ball, divergence_caption, leaving_caption, moving
from linearity_lab.views.early_time import figures as early_time
from linearity_lab.views.learning_rate import figures as learning_rate
from linearity_lab.views.learning_rate.page import choose_clicked
from ntk_core.experiments.dynamics import difference_law
from ntk_core.runs import spec_digest
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import bars, checked, open_page, press

DESCENT = "gradient-descent"
LEARNED = gallery_result("liu-true-and-linearized")
METHODS = gallery_result("beyond-gradient-descent")
CURVES = gallery_result("curves-in-one-dimension")


def test_each_model_has_its_dash_in_trajectories():
    point = LEARNED.points[0]
    (run, *_), classes = point.of("linear", DESCENT), np.argmax(point.y, axis=1)
    figure = figures.trajectories(point, "linear", DESCENT, "time", "training points").figure
    models = {"solid": run.network, "dash": run.linearized, "dot": run.infinite}
    for (dash, path), name in zip(
        models.items(), ("network: solid", "linear model: dashed", "infinite width: dotted"), strict=True
    ):
        legend, *drawn = [trace for trace in figure.data if trace.line.dash == dash and "text" not in trace.mode]
        assert legend.name == name
        for trace, row in zip(drawn, range(0, len(point.y), len(point.y) // len(drawn)), strict=True):
            np.testing.assert_allclose(trace.x, run.learning_rate * np.array(run.steps[1:]))
            np.testing.assert_allclose(trace.y, [block[row][classes[row]] for block in path.outputs[1:]])


def test_departure_is_marked_on_lines_that_leave_for_good():
    figure = figures.difference_against_time(LEARNED.points, DESCENT, "step").figure
    runs = [run for point in LEARNED.points for output in LEARNED.spec.outputs for run in point.of(output, DESCENT)]
    drawn = [trace for trace in figure.data if trace.x[0] is not None and "text" not in trace.mode]
    for trace, run in zip(drawn, runs, strict=True):
        np.testing.assert_allclose(trace.y, run.difference[1:])
        marked = [step for step, size in zip(trace.x, trace.marker.size or (), strict=False) if size]
        assert marked == ([] if run.departure_step is None else [run.departure_step])
    assert len({run.departure_step is None for run in runs}) == 2


@pytest.mark.parametrize("result", [CURVES, LEARNED], ids=["functions", "outputs"])
def test_motion_has_a_frame_for_each_record(result):
    point = result.points[0]
    figure, run = moving(point, "linear", DESCENT).figure, point.of("linear")[0]
    names = [f"{step:,}" for step in run.steps]
    assert [frame.name for frame in figure.frames] == names
    assert [step.args[0][0] for step in figure.layout.sliders[0].steps] == names
    play, pause = figure.layout.updatemenus[0].buttons
    assert (list(play.args[0]), list(pause.args[0])) == (names, [None])
    for index, frame in enumerate(figure.frames):
        if result is CURVES:
            expected = [path.test_outputs[index] for path in (run.network, run.linearized, run.infinite)]
            assert [list(data.y) for data in frame.data] == [[row[0] for row in block] for block in expected]
        else:
            np.testing.assert_allclose(frame.data[0].x, np.ravel(run.linearized.outputs[index]))
            np.testing.assert_allclose(frame.data[1].y, np.ravel(run.network.test_outputs[index]))


def test_every_method_has_its_distance_and_its_kernel_change():
    point = METHODS.points[0]
    chart = ball(METHODS.points, point, "linear", "step")
    drawn = [trace for trace in chart.figure.data if "text" not in trace.mode and trace.x[0] is not None]
    assert len({trace.name for trace in drawn}) == len(METHODS.spec.methods)
    assert len(drawn) == 2 * len(point.of("linear"))
    run = point.of("linear", DESCENT)[0]
    np.testing.assert_allclose(drawn[0].y, run.network.distance[1:])
    assert chart.figure.layout.shapes[0].y0 == run.sup_distance, "the ball of gradient descent"
    assert chart.rows[0]["condition number"] == pytest.approx(run.largest[0] / run.smallest[0])


def test_methods_that_leave_the_ball_are_named_with_the_step():
    """Largest width only; a method leaves the ball at 1.5 times the distance of gradient descent."""
    point = METHODS.points[-1]
    radius = point.of("linear", DESCENT)[0].sup_distance
    (sentence,) = leaving_caption(point, "linear")
    for method in ("beyond-stable", "adam"):
        (run,) = point.of("linear", method)[:1]
        far = next(step for step, r in zip(run.steps, run.network.distance, strict=True) if r > 1.5 * radius)
        assert f" from step {far:,} ({run.sup_distance / radius:.1f} times as far, ΔK up to " in sentence
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


SWEEP = gallery_result("hu-fig1")
WIDTHS = gallery_result("hu-departure")
KERNELS = gallery_result("hu-fig5")
POINT = WIDTHS.points[-1]
DEPARTING = POINT.of("tanh")  # its kernel has a norm feature


def named(chart) -> dict[str, list]:
    """Name → curves."""
    found: dict[str, list] = {}
    for trace in chart.figure.data:
        if "text" not in trace.mode and trace.x[0] is not None:
            found.setdefault(trace.name, []).append(trace)
    return found


@pytest.mark.parametrize("view", early_time.VIEWS)
def test_every_view_draws_each_model_and_seed_from_step_one(view):
    traces, without_feature = (
        named(early_time.along_steps(POINT, runs, view)) for runs in (DEPARTING, POINT.of("erf"))
    )
    assert all(tuple(trace.x) == DEPARTING[0].steps[1:] for group in traces.values() for trace in group)
    assert all(len(group) == len(DEPARTING) * (2 if view == "residual" else 1) for group in traces.values())
    if view == "test loss":
        assert set(traces) == {"network", "linear model ψ", "without the norm feature"}
        assert tuple(traces["network"][0].y) == DEPARTING[0].network.test_loss[1:]
        assert set(without_feature) == {"network", "linear model ψ"}
    if view == "residual":  # one row outside the span, one inside
        assert {trace.yaxis for trace in traces["network"]} == {"y", "y2"}


def test_departure_and_the_best_linear_model_are_marked():
    run = DEPARTING[0]
    layout = early_time.along_steps(POINT, [run], "test loss").figure.layout
    upright = [shape.x0 for shape in layout.shapes if shape.x0 == shape.x1]
    assert upright == [run.steps[run.linear_phase], run.departure_step]
    assert [shape.y0 for shape in layout.shapes if shape.y0 == shape.y1] == [run.optimal_test_loss]
    assert f" network departs: <br> step {run.departure_step:,} " in [note.text for note in layout.annotations]
    assert [note.x for note in layout.annotations][:2] == pytest.approx(np.log10(upright))  # logarithms
    assert layout.xaxis.range[0] <= 0
    assert 10 ** layout.xaxis.range[1] >= run.steps[-1], "all steps, however long the words are"
    assert "does not depart" in early_time.along_steps(SWEEP.points[-1], SWEEP.points[-1].runs, "residual").takeaway


def test_a_growing_run_with_one_record_is_drawn():
    run = DEPARTING[0]
    cut = {name: getattr(run, name)[:1] for name in ("steps", "distance", "naive_distance", "linear_power")}
    for name in ("network", "linear", "naive"):
        model = getattr(run, name)
        cut[name] = model.model_copy(update={each: getattr(model, each)[:1] for each in type(model).model_fields})
    first = run.model_copy(update=cut)
    for chart in (
        early_time.single_outputs(first),
        *(early_time.along_steps(POINT, [first], view) for view in early_time.VIEWS),
    ):
        assert chart.figure.data


def test_sweep_without_departures_says_so():
    stays = early_time.against_swept(SWEEP.points[2:], "departure time")
    assert not stays.figure.data
    assert "erf: no departure time in 6 runs." in stays.caption


def test_both_kernel_norms_are_drawn_with_the_guide():
    chart = early_time.kernel_distance(KERNELS.points)
    traces = named(chart)
    for norm, of in (("spectral", "difference"), ("Frobenius", "frobenius_difference")):
        ((line,),) = (each for name, each in traces.items() if name.startswith(f"ReLU, {norm} norm ∝ d<sup>−"))
        means = np.array([np.mean([getattr(each, of) for each in point.kernels]) for point in KERNELS.points])
        np.testing.assert_allclose(line.y, means / means[0])
    low, high = KERNELS.spec.values[0], KERNELS.spec.values[-1]
    np.testing.assert_allclose(traces["slope −1.0"][0].y, [1, low / high])
    assert len(chart.rows) == len(KERNELS.points) * KERNELS.spec.num_seeds


MAP = gallery_result("catapult-map")
RUN = gallery_result("catapult-run")


def test_every_cell_of_the_map_has_its_outcome():
    chart = learning_rate.outcome_map(MAP.points, MAP.spec.models, (800, 3.5))
    panels = [trace for trace in chart.figure.data if trace.type == "heatmap"]
    assert len(panels) == 3
    assert all(len(panel.z) == len(MAP.spec.rates) and None not in panel.z[0] for panel in panels)
    assert len(chart.rows) == 3 * 3 * len(MAP.spec.rates) * len(MAP.spec.widths)
    assert chart.finding == "Largest c up to which no run diverged: linear model 1.8; quadratic model 3.8; network 5."
    assert chart.takeaway.startswith("Linear model: 96 monotone, 192 diverged;")
    markers = [trace for trace in chart.figure.data if trace.type == "scatter" and trace.customdata is not None]
    cells = [(width, rate) for rate in MAP.spec.rates for width in MAP.spec.widths]
    assert [[tuple(each[:2]) for each in trace.customdata] for trace in markers] == [cells] * 3, "each can be clicked"
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in chart.figure.layout.shapes]
    assert frames == [(2.5, 3.5, 6.5, 7.5)] * 6, "white around black"


def test_the_page_follows_the_chosen_cell_beneath_its_map(jobs):
    app = open_page("learning_rate")
    app.selectbox(key="learning_rate.width").set_value(800)
    app.selectbox(key="learning_rate.rate").set_value(2.5)
    checked(app.run())
    press(app, "learning_rate.follow")
    (asked,) = jobs.submitted
    assert (asked.widths, asked.rates, asked.num_seeds, asked.keep_paths) == ((800,), (2.5,), 1, True)
    assert asked.dataset == MAP.spec.dataset
    assert "0 of 1 width" in bars(app)[0]
    assert len(app.get("plotly_chart")) == 4
    (point,) = RUN.points
    grown = point.model_copy(update={"runs": point.of("network", 3.0)})
    spec, job = with_settings(RUN.spec, {"rates": [3.0]}), spec_digest(asked)[:16]
    jobs.snapshots[job] = replace(jobs.snapshots[job], spec=spec, growing=(grown,), grown=2)
    assert len(checked(app.run()).get("plotly_chart")) == 5
    assert not app.query_params, "the page's own settings are as they were"
    app.query_params = {"preset": "catapult-run"}
    assert len(checked(app.run()).get("plotly_chart")) == 4, "runs that are kept are drawn at once"
    assert not [each for each in app.button if each.key == "learning_rate.follow"]


def test_second_click_on_a_cell_keeps_the_choice(monkeypatch):
    state: dict = {}
    monkeypatch.setattr("linearity_lab.views.learning_rate.page.st", SimpleNamespace(session_state=state))
    followed = []
    monkeypatch.setattr("linearity_lab.views.learning_rate.page.submit", lambda page, spec: followed.append(spec))
    for points in ([{"customdata": [800, 3.5, "3 of 3 catapult"]}], []):
        state["learning_rate.map"] = SimpleNamespace(selection=SimpleNamespace(points=points))
        choose_clicked(MAP.spec)
    assert (state["learning_rate.width"], state["learning_rate.rate"]) == (800, 3.5)
    assert [spec.point_keys() for spec in followed] == [("width=800",)]
    choose_clicked(RUN.spec)
    assert len(followed) == 1, "a sweep that keeps its paths has the run already"
