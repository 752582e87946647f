"""The page Learning rate: its map, peaks and runs, and what the gallery shows of them."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.learning_rate import figures
from linearity_lab.views.learning_rate.page import choose_clicked
from ntk_core.data import load_dataset
from ntk_core.dynamics import one_sample_catapult
from ntk_core.runs import spec_digest
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import bars, checked, open_page, words

MAP = gallery_result("catapult-map")
RUN = gallery_result("catapult-run")


@pytest.mark.parametrize("width", MAP.spec.widths)
def test_above_two_only_the_linear_model_is_lost_at_every_width(width):
    (point,) = [point for point in MAP.points if point.width == width]
    for rate in MAP.spec.rates:
        outcomes = {model: {run.outcome for run in point.of(model, rate)} for model in MAP.spec.models}
        assert outcomes["linear"] == ({"diverged"} if rate > 2 else {"monotone"})
        if rate < 4:
            assert "diverged" not in outcomes["network"] | outcomes["quadratic"]
            assert all(run.curvature < 2 for model in ("network", "quadratic") for run in point.of(model, rate))
        else:
            assert "diverged" in outcomes["quadratic"]
            assert width < 1000 or outcomes["quadratic"] == {"diverged"}


def test_final_curvatures_are_those_that_were_foreseen():
    """Two-layer ReLU, ten samples: about 1.8 from c = 2.2, near 1 from c = 3, nothing lost below 2."""
    wide = [point for point in MAP.points if point.width >= 1000]
    for point in wide:
        assert all(abs(run.curvature - 1.8) < 0.1 for run in point.of("network", 2.2))
        assert all(0.6 < run.curvature < 1.3 for run in point.of("network", 3.0))
        assert all(abs(run.curvature - 1.5) < 0.05 for model in MAP.spec.models for run in point.of(model, 1.5))


def test_every_cell_of_the_map_has_its_outcome():
    chart = figures.outcome_map(MAP.points, MAP.spec.models)
    panels = [trace for trace in chart.figure.data if trace.type == "heatmap"]
    assert len(panels) == 3
    assert all(len(panel.z) == len(MAP.spec.rates) and None not in panel.z[0] for panel in panels)
    assert len(chart.rows) == 3 * 3 * len(MAP.spec.rates) * len(MAP.spec.widths)
    assert chart.finding == "Largest c up to which no run diverged: linear model 1.8; quadratic model 3.8; network 5."
    assert chart.takeaway.startswith("Linear model: 96 monotone, 192 diverged;")


def test_followed_run_crosses_the_edge_before_recovering():
    (point,) = RUN.points
    (run,) = point.of("network", 3.0)
    losses, curvatures = run.path.loss, run.path.curvature
    assert losses.index(max(losses)) <= next(at for at, value in enumerate(curvatures) if value < 2) + 2
    chart = figures.along_run(point, 3.0)
    assert "network: catapult" in chart.takeaway
    assert chart.takeaway.startswith("Linear model: diverged; quadratic model: catapult")


# Independent script, n = d = 10: peak and last c at three widths, ± 10% over 3–5 seeds; spread as over our draws.
SCRIPT = {
    ("network", 3.0): ((4.1, 42, 380), (1.20, 1.14, 1.09)),
    ("quadratic", 3.0): ((5.0, 50, 450), (1.13, 0.97, 0.92)),
    ("network", 2.2): ((None, 2.1, 19), (1.82, 1.80, 1.80)),  # at m = 100 no loss rises: the first one is the largest
    ("network", 1.5): (None, (1.5, 1.5, 1.5)),
    ("quadratic", 1.5): (None, (1.5, 1.5, 1.5)),
}


@pytest.mark.parametrize(("model", "rate"), SCRIPT)
def test_peaks_and_curvatures_agree_with_the_independent_script(model, rate):
    points = gallery_result("catapult-anew").points
    assert [point.width for point in points] == [100, 1000, 10_000]
    peaks, curvatures = SCRIPT[model, rate]
    for point, peak, curvature in zip(points, peaks or [None] * 3, curvatures, strict=True):
        runs = point.of(model, rate)
        for expected, found in ((peak, [2 * run.peak_loss for run in runs]), (curvature, [r.curvature for r in runs])):
            if expected is not None:
                error = np.std(found, ddof=1) * math.sqrt(1 / len(runs) + 1 / 4)
                assert abs(np.mean(found) - expected) < 0.1 * expected + 2 * error
                assert error < 0.4 * expected, "otherwise the check is empty"


def test_last_curvature_varies_over_draws_after_a_catapult():
    points = gallery_result("catapult-anew").points
    for point in points[1:]:
        spread = [np.std([run.curvature for run in point.of("network", rate)], ddof=1) for rate in (2.2, 3.0)]
        assert spread[1] > 5 * spread[0]


def test_one_sample_quadratic_model_is_the_planar_recursion():
    """u = |x|²η²(g − y)²/(md), v = ηλ, w = |x|²η²(g − y)y/(md), whose sign is that of g(w₀) − y."""
    result = gallery_result("catapult-one-sample")
    data = load_dataset(result.spec.dataset.name, **result.spec.data_options())
    for point in result.points:
        for run in point.of("quadratic"):
            gain = float((data.x[0] ** 2).sum()) * run.learning_rate**2 / (point.width * data.x.shape[1])
            u, steps = gain * 2 * run.first_loss, run.path.steps[:30]
            found = [
                one_sample_catapult(u, run.rate, sign * gain * math.sqrt(2 * run.first_loss) * float(data.y[0, 0]), 30)
                for sign in (-1, 1)
            ]
            scale = np.array(run.path.loss[: len(steps)]) * 2 * gain
            off = [np.abs(np.log(each.u[list(steps)] / scale))[scale > 1e-5 * u].max() for each in found]
            best = found[int(np.argmin(off))]
            assert min(off) < 0.01  # float32 over some dozen steps
            assert np.abs(best.v[list(steps)] - run.path.curvature[: len(steps)]).max() < 0.01
            assert run.outcome == ("monotone" if run.rate < 2 else run.outcome)


@pytest.fixture
def app(jobs, through_the_menu):
    return checked(open_page("learning_rate"))


def test_a_cell_can_be_clicked_on_wherever_it_is(app):
    chart = figures.outcome_map(MAP.points, MAP.spec.models, (800, 3.5))
    markers = [trace for trace in chart.figure.data if trace.type == "scatter" and trace.customdata is not None]
    cells = [(width, rate) for rate in MAP.spec.rates for width in MAP.spec.widths]
    assert [[tuple(each[:2]) for each in trace.customdata] for trace in markers] == [cells] * 3
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in chart.figure.layout.shapes]
    assert frames == [(2.5, 3.5, 6.5, 7.5)] * 6, "white around black"
    assert [trace.hoverinfo for trace in chart.figure.data if trace.type == "heatmap"] == ["skip"] * 3


def test_the_page_follows_the_chosen_cell_beneath_its_map(app, jobs):
    assert len(app.get("plotly_chart")) == 4
    app.selectbox(key="learning_rate.width").set_value(800)
    app.selectbox(key="learning_rate.rate").set_value(2.5)
    checked(app.run())
    app.button(key="learning_rate.follow").click()
    checked(app.run())
    (asked,) = jobs.submitted
    assert (asked.widths, asked.rates, asked.num_seeds, asked.keep_paths) == ((800,), (2.5,), 1, True)
    assert asked.dataset == MAP.spec.dataset
    assert "0 of 1 width" in bars(app)[0]
    assert len(app.get("plotly_chart")) == 4
    (point,) = RUN.points
    grown = point.model_copy(update={"runs": point.of("network", 3.0)})
    spec = with_settings(RUN.spec, {"rates": [3.0]})
    job = spec_digest(asked)[:16]
    jobs.snapshots[job] = replace(jobs.snapshots[job], spec=spec, growing=(grown,), grown=2)
    checked(app.run())
    assert len(app.get("plotly_chart")) == 5
    assert "The run continues." in words(app)
    assert not app.query_params, "the page's own settings are as they were"


def test_second_click_on_a_cell_keeps_the_choice(app, jobs, monkeypatch):
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


@pytest.mark.usefixtures("jobs", "through_the_menu")
def test_runs_that_are_kept_are_drawn_at_once():
    app = checked(open_page("learning_rate", preset="catapult-run"))
    assert len(app.get("plotly_chart")) == 4
    assert not [each for each in app.button if each.key == "learning_rate.follow"]
