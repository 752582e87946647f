"""The page on early time, and its figures of results in the gallery."""

from __future__ import annotations

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.early_time import figures as early_time
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import checked, chooser, open_page, words

SWEEP = gallery_result("hu-fig1")
WIDTHS = gallery_result("hu-departure")
KERNELS = gallery_result("hu-fig5")
POINT = WIDTHS.points[-1]
DEPARTING = POINT.of("tanh")  # its kernel has a norm feature


def along(runs, view):
    return early_time.along_steps(POINT, runs, view).figure


def named(figure) -> dict[str, list]:
    found: dict[str, list] = {}
    for trace in figure.data:
        if "text" not in trace.mode and trace.x[0] is not None:
            found.setdefault(trace.name, []).append(trace)
    return found


@pytest.mark.parametrize("view", early_time.VIEWS)
def test_every_view_draws_each_model_and_seed_from_step_one(view):
    traces = named(along(DEPARTING, view))
    assert all(tuple(trace.x) == DEPARTING[0].steps[1:] for group in traces.values() for trace in group)
    assert all(len(group) == len(DEPARTING) * (2 if view == "residual" else 1) for group in traces.values())
    without_feature = named(along(POINT.of("erf"), view))
    if view == "test loss":
        assert set(traces) == {"network", "linear model ψ", "without the norm feature"}
        assert tuple(traces["network"][0].y) == DEPARTING[0].network.test_loss[1:]
        assert set(without_feature) == {"network", "linear model ψ"}
    if view == "relative error":
        assert set(without_feature) == {"linear model ψ"}
    if view == "residual":  # one row outside the span, one inside
        assert {trace.yaxis for trace in traces["network"]} == {"y", "y2"}


def test_departure_and_the_best_linear_model_are_marked():
    run = DEPARTING[0]
    figure = along([run], "test loss")
    upright = [shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1]
    assert upright == [run.steps[run.linear_phase], run.departure_step]
    level = [shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1]
    assert level == [run.optimal_test_loss]
    notes = figure.layout.annotations
    assert f" network departs: <br> step {run.departure_step:,} " in [note.text for note in notes]
    assert [note.x for note in notes][:2] == pytest.approx(np.log10(upright))  # logarithms
    low, high = figure.layout.xaxis.range  # all steps, however long the words are
    assert low <= 0
    assert 10**high >= run.steps[-1]
    stays = SWEEP.points[-1].runs
    assert not any("departs" in note.text for note in along(stays, "test loss").layout.annotations)
    assert "does not depart" in early_time.along_steps(SWEEP.points[-1], stays, "residual").takeaway


def test_single_outputs_have_colors_by_input_and_dashes_by_model():
    chart = early_time.single_outputs(DEPARTING[0])
    drawn = [trace for trace in chart.figure.data if trace.x[0] is not None and "text" not in trace.mode]
    assert len(drawn) == 2 * len({trace.line.color for trace in drawn})
    assert {trace.line.dash for trace in drawn} == {"solid", "dash"}
    assert len(chart.rows) == len(DEPARTING[0].targets) * len(DEPARTING[0].steps)


def test_a_growing_run_with_one_record_is_drawn():
    run = DEPARTING[0]
    cut = {name: getattr(run, name)[:1] for name in ("steps", "distance", "naive_distance", "linear_power")}
    for name in ("network", "linear", "naive"):
        model = getattr(run, name)
        cut[name] = model.model_copy(update={each: getattr(model, each)[:1] for each in type(model).model_fields})
    first = run.model_copy(update=cut)
    for view in early_time.VIEWS:
        assert along([first], view).data
    assert early_time.single_outputs(first).figure.data


def test_discrepancies_and_departures_are_means_of_the_runs():
    for quantity, of in (
        ("discrepancy", lambda run: run.discrepancy),
        ("departure time", lambda run: run.learning_rate * run.departure_step if run.departure_step else np.nan),
    ):
        chart = early_time.against_swept(SWEEP.points, quantity)
        (line,) = [trace for trace in chart.figure.data if trace.mode == "lines+markers"]
        means = [np.nanmean(values) for point in SWEEP.points if np.isfinite(values := list(map(of, point.runs))).any()]
        np.testing.assert_allclose(line.y, means)
        assert line.name.startswith("erf ∝ d<sup>")
    stays = early_time.against_swept(SWEEP.points[2:], "departure time")
    assert not stays.figure.data
    assert "erf: no departure time in 6 runs." in stays.caption


def test_both_kernel_norms_are_drawn_with_the_guide():
    chart = early_time.kernel_distance(KERNELS.points)
    traces = named(chart.figure)
    for norm, of in (("spectral", "difference"), ("Frobenius", "frobenius_difference")):
        ((line,),) = (each for name, each in traces.items() if name.startswith(f"ReLU, {norm} norm ∝ d<sup>−"))
        means = np.array([np.mean([getattr(each, of) for each in point.kernels]) for point in KERNELS.points])
        np.testing.assert_allclose(line.y, means / means[0])
    low, high = KERNELS.spec.values[0], KERNELS.spec.values[-1]
    np.testing.assert_allclose(traces["slope −1.0"][0].y, [1, low / high])
    assert len(chart.rows) == len(KERNELS.points) * KERNELS.spec.num_seeds
    first_seed = [point.model_copy(update={"kernels": point.kernels[:1]}) for point in KERNELS.points[:3]]
    assert "exponent" not in early_time.kernel_distance(first_seed).takeaway, "three values are too few"


def test_the_page_shows_curves_outputs_sweep_and_kernels():
    app = open_page("early_time")
    assert len(app.get("plotly_chart")) == 3
    assert "The test inputs span " in words(app)
    assert app.dataframe[-1].value["ζ"].tolist() == [round(SWEEP.points[0].constants["erf"].zeta, 4)]
    chooser(app, "early_time.view").set_value("residual").run()
    checked(chooser(app, "early_time.quantity").set_value("departure time").run())
    app.query_params = {"preset": "hu-fig5"}
    assert len(checked(app.run()).get("plotly_chart")) == 1
    assert "ReLU, spectral norm of K − ψψᵀ: " in words(app)


@pytest.mark.usefixtures("gallery")
def test_the_page_draws_a_point_that_grows(jobs):
    spec = with_settings(PRESETS["hu-fig1"].spec, {"values": [25, 50]})
    job = jobs.add(spec, points=(), growing=SWEEP.points[:1], message="d = 25: erf, step 100")
    app = open_page("early_time", job=job)
    assert len(app.get("plotly_chart")) == 2
    assert "Computing the first point…" not in words(app)
