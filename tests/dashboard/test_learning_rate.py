"""The page *Learning rate*: map, peaks and runs, from the gallery."""

from dataclasses import replace
from types import SimpleNamespace

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.learning_rate import figures
from linearity_lab.views.learning_rate.page import choose_clicked
from ntk_core.runs import spec_digest
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import bars, checked, open_page, press, words

MAP = gallery_result("catapult-map")
RUN = gallery_result("catapult-run")


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


def test_a_cell_can_be_clicked_on_wherever_it_is():
    chart = figures.outcome_map(MAP.points, MAP.spec.models, (800, 3.5))
    markers = [trace for trace in chart.figure.data if trace.type == "scatter" and trace.customdata is not None]
    cells = [(width, rate) for rate in MAP.spec.rates for width in MAP.spec.widths]
    assert [[tuple(each[:2]) for each in trace.customdata] for trace in markers] == [cells] * 3
    frames = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in chart.figure.layout.shapes]
    assert frames == [(2.5, 3.5, 6.5, 7.5)] * 6, "white around black"
    assert [trace.hoverinfo for trace in chart.figure.data if trace.type == "heatmap"] == ["skip"] * 3


def test_the_page_follows_the_chosen_cell_beneath_its_map(jobs):
    app = open_page("learning_rate")
    assert len(app.get("plotly_chart")) == 4
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
    spec = with_settings(RUN.spec, {"rates": [3.0]})
    job = spec_digest(asked)[:16]
    jobs.snapshots[job] = replace(jobs.snapshots[job], spec=spec, growing=(grown,), grown=2)
    checked(app.run())
    assert len(app.get("plotly_chart")) == 5
    assert "The run continues." in words(app)
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
