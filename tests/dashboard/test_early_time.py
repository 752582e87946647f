"""The page on early time: its figures from made results, and the page through app.py."""

from __future__ import annotations

import numpy as np
import pytest

from linearity_lab.views.early_time import figures as early_time
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_early import STEPS, make_early_point, make_early_result, make_early_run
from tests.dashboard.open_pages import chooser, open_page, words

POINTS = tuple(make_early_point(value) for value in (25, 50, 100))
RUNS = POINTS[0].runs


pytestmark = pytest.mark.usefixtures("gallery", "through_the_menu")


def along(runs, view):
    return early_time.along_steps(POINTS[0], runs, view).figure


def named(figure) -> dict[str, list]:
    found: dict[str, list] = {}
    for trace in figure.data:
        if "text" not in trace.mode:
            found.setdefault(trace.name, []).append(trace)
    return found


@pytest.mark.parametrize("view", early_time.VIEWS)
def test_every_view_draws_each_model_and_seed_from_step_one(view):
    traces = named(along(RUNS, view))
    assert all(tuple(trace.x) == STEPS[1:] for group in traces.values() for trace in group)
    assert all(len(group) == len(RUNS) * (2 if view == "residual" else 1) for group in traces.values())
    if view == "test loss":
        assert set(traces) == {"network", "linear model ψ", "without the norm feature"}
        assert tuple(traces["network"][0].y) == RUNS[0].network.test_loss[1:]
    if view == "residual":  # one row outside the span, one inside
        assert {trace.yaxis for trace in traces["network"]} == {"y", "y2"}


def test_departure_and_the_best_linear_model_are_marked():
    figure = along(RUNS, "test loss")
    assert [shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1] == [100, 1000]
    assert [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1] == [0.1]
    texts = [note.text for note in figure.layout.annotations]
    assert " network departs: <br> step 1,000 " in texts
    low, high = figure.layout.xaxis.range  # all steps, however long the words are
    assert low <= 0
    assert 10**high >= STEPS[-1]
    assert [note.x for note in figure.layout.annotations] == pytest.approx([2, 3])  # logarithms
    stays = along([make_early_run(departs=False)], "test loss")
    assert not any("departs" in note.text for note in stays.layout.annotations)


def test_a_model_without_norm_feature_is_drawn_once():
    same = RUNS[0].model_copy(update={"naive": RUNS[0].linear, "naive_distance": RUNS[0].distance})
    assert set(named(along([same], "test loss"))) == {"network", "linear model ψ"}
    assert set(named(along([same], "relative error"))) == {"linear model ψ"}


def test_single_outputs_have_colors_by_input_and_dashes_by_model():
    drawn = [trace for trace in early_time.single_outputs(RUNS[0]).figure.data if trace.x[0] is not None]
    traces = [trace for trace in drawn if "text" not in trace.mode]
    assert len(traces) == 4
    assert len({trace.line.color for trace in traces}) == 2
    assert {trace.line.dash for trace in traces} == {"solid", "dash"}
    assert len(early_time.single_outputs(RUNS[0]).rows) == 2 * len(STEPS)


def test_a_growing_run_with_one_record_is_drawn():
    run = RUNS[0]
    cut = {name: getattr(run, name)[:1] for name in ("steps", "distance", "naive_distance", "linear_power")}
    curves = {
        name: getattr(run, name).model_copy(
            update={each: getattr(getattr(run, name), each)[:1] for each in type(run.network).model_fields}
        )
        for name in ("network", "linear", "naive")
    }
    first = run.model_copy(update={**cut, **curves})
    for view in early_time.VIEWS:
        assert along([first], view).data
    assert early_time.single_outputs(first).figure.data
    assert "does not depart" in early_time.along_steps(POINTS[0], [first], "residual").takeaway


def test_discrepancy_is_drawn_with_its_exponent():
    chart = early_time.against_swept(POINTS, "discrepancy")
    line = next(trace for trace in chart.figure.data if trace.mode == "lines+markers")
    assert line.name.startswith("erf ∝ d<sup>−1.00")
    np.testing.assert_allclose(line.y, [1.05 / 25, 1.05 / 50, 1.05 / 100])
    assert "fitted exponent −1.00" in chart.takeaway
    assert len(chart.rows) == 6


def test_networks_that_never_depart_have_no_departure_time():
    stays = [make_early_point(value, departs=False) for value in (25, 50)]
    chart = early_time.against_swept(stays, "departure time")
    assert not chart.figure.data
    assert "erf: no departure time in 4 runs." in chart.caption
    seeds = early_time.against_swept(POINTS, "departure time").figure.data[1]
    assert (seeds.x[0], seeds.y[0]) == (25, 500.0)


def test_three_values_are_too_few_for_an_exponent():
    points = [make_early_point(value, trained=False) for value in (10, 20, 40)]
    chart = early_time.kernel_distance(points)
    assert {trace.name for trace in chart.figure.data} >= {"erf, spectral norm"}
    assert "exponent" not in chart.takeaway


def test_both_kernel_norms_are_drawn_with_the_guide():
    chart = early_time.kernel_distance([make_early_point(value, trained=False) for value in (10, 20, 40, 80)])
    traces = named(chart.figure)
    assert any(name.startswith("erf, spectral norm ∝ d<sup>−1.50") for name in traces)
    assert any(name.startswith("erf, Frobenius norm ∝ d<sup>−0.50") for name in traces)
    np.testing.assert_allclose(traces["slope −1.0"][0].y, [1, 0.125])
    assert len(chart.rows) == 4


def test_the_page_shows_curves_outputs_sweep_and_constants(gallery):
    spec = PRESETS["hu-fig1"].spec
    gallery("hu-fig1", make_early_result(spec))
    app = open_page("early_time")
    assert len(app.get("plotly_chart")) == 3
    assert "until the network departs at step 1,000" in words(app)
    assert "The test inputs span 50 dimensions." in words(app)
    assert app.dataframe[-1].value["ζ"].tolist() == [0.65]
    chooser(app, "early_time.view").set_value("residual").run()
    chooser(app, "early_time.quantity").set_value("departure time").run()
    assert not app.exception


def test_the_page_shows_kernels_without_training(gallery):
    gallery("hu-fig5", make_early_result(PRESETS["hu-fig5"].spec, trained=False))
    app = open_page("early_time", preset="hu-fig5")
    assert len(app.get("plotly_chart")) == 1
    assert "erf, spectral norm of K − ψψᵀ: " in words(app)


def test_the_page_draws_a_point_that_grows(jobs):
    spec = with_settings(PRESETS["hu-fig1"].spec, {"values": [25, 50]})
    job = jobs.add(spec, points=(), growing=(make_early_point(25),), message="d = 25: erf, step 100")
    app = open_page("early_time", job=job)
    assert len(app.get("plotly_chart")) == 2
    assert "Computing the first point…" not in words(app)
