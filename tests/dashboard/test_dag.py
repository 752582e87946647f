"""The page of graphs: drawing, editor, verdict, figures."""

import json
import math

import pytest

from linearity_lab.charts.labels import power
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dag import figures
from linearity_lab.views.dag.canvas import NAME
from linearity_lab.views.dag.graph_editor import drawable, from_browser, judged
from ntk_core.errors import InvalidInput
from ntk_core.experiments.dag import DAGSpec
from ntk_core.networks.graphs import dense_graph, example_graphs, graph_data, graph_verdict, parse_graph
from ntk_core.runs import PRESETS
from tests.dashboard.open_pages import address, checked, open_page, press, words

EXAMPLES = example_graphs()
GALLERY = [name for name, preset in PRESETS.items() if preset.spec.experiment == "dag"]


def edges(*names: str) -> list[dict]:
    return [dict(zip(("source", "target"), name.split("-"), strict=True)) for name in names]


def edit(**changes):
    """A canvas's report of a graph of two groups."""
    groups = [{"name": "a"}, {"name": "b"}]
    return {
        **{"version": 0, "edit": 1, "places": {}, "groups": groups, "edges": edges("input-a", "a-b", "b-output")},
        **changes,
    }


def test_canvas_report_contains_graph_and_positions():
    for graph in EXAMPLES.values():
        given = json.loads(json.dumps({**graph_data(graph), "version": 2, "edit": 7, "places": {"a": [1, -0.5]}}))
        found = from_browser(given)
        assert parse_graph(found.text) == graph
        assert (found.version, found.number, found.places) == (2, 7, {"a": (1.0, -0.5)})
        assert drawable(found.text) == graph_data(graph)


def test_impossible_canvas_report_is_refused_in_one_sentence():
    deep: list = []
    for _ in range(50):
        deep = [deep]
    refused = [
        None, [], "graph", 3, edit(version=-1), edit(edit=2**40), edit(version="0"), edit(groups=None), edit(edges={}),
        edit(groups=["a"]), edit(groups=[{"name": "a" * 81}]), edit(groups=[{"name": "a", "size": float("nan")}]),
        edit(groups=[{"name": "a", "size": 10**400}]), edit(groups=[{"name": deep}]), edit(groups=[{"x": 1}]),
        edit(groups=[{"name": "a" * 80}] * 5000), edit(edges=[{"source": {}, "target": "b"}]),
    ]  # fmt: skip
    for each in refused:
        with pytest.raises(InvalidInput) as reported:
            from_browser(each)
        assert len(str(reported.value)) < 400
    wild = {"a": [1e9, 0], "b": [0], "c": "here", "d": [None, 1], "e" * 90: [0, 0], "f": [1, 2]}
    assert from_browser(edit(places=wild)).places == {"f": (1.0, 2.0)}
    assert len(from_browser(edit(places={str(at): [0, 0] for at in range(5000)})).places) <= 66
    assert drawable("{") == drawable("[]") == drawable('{"groups": 3}') == {"groups": [], "edges": []}


WHOLE = ("input-a", "a-b", "b-output")
BROKEN = [
    ({"edges": edges(*WHOLE, "b-a")}, {"a", "b", "a → b", "b → a"}),
    ({"groups": [{"name": "a", "size": -3}, {"name": "b"}]}, {"a"}),
    ({"groups": [{"name": "a"}, {"name": "b"}, {"name": "lonely"}]}, {"lonely"}),
    ({"groups": [{"name": "a"}, {"name": "a"}]}, {"a"}),
    ({"edges": edges(*WHOLE[:2])}, {"output"}),
    ({"edges": [*edges(*WHOLE[:2]), {**edges(WHOLE[2])[0], "drop_probability": 2}]}, {"b → output"}),
    ({"groups": []}, set()),
]


@pytest.mark.parametrize(("change", "at"), BROKEN)
def test_graph_error_is_one_sentence_with_its_place(change, at):
    found = judged(from_browser(edit(**change)).text, DAGSpec(), "")
    (reason,) = found["reasons"]
    assert found["outcome"] == "invalid"
    assert " cannot be used; use " in reason
    assert set(found["at"]) == at
    assert "degrees" not in found


def test_the_canvas_gets_the_verdict_of_the_core():
    spec = DAGSpec()
    for name, graph in EXAMPLES.items():
        if graph.positioned:
            continue
        found, core = judged(str(graph), spec, ""), graph_verdict(graph, spec.widths[-1], (192,), num_outputs=2)
        assert found["outcome"] == ("good" if core.becomes_linear else "bad"), name
        assert set(found["at"]) == {reason.group for reason in core.reasons if reason.against}
        assert found["degrees"] == pytest.approx(
            {group: sum(found["counts"][group].values()) for group in graph.depths}
        )
        assert core.outcome in found["summary"]


@pytest.mark.parametrize("name", GALLERY)
def test_figures_of_every_preset_have_guides_and_finite_numbers(name):
    shown = gallery_result(name)
    axis = figures.axes_of(shown.points)[0]
    assert axis == {"zhu-fig2": "in-degree", "zhu-bottleneck-neurons": "width"}.get(name, axis), "what grows"
    found = figures.charts(shown.points, shown.spec.widths, axis)
    assert len(found) == {"zhu-preactivations": 4, "zhu-pl": 3}.get(name, 2)
    for chart in found:
        means = [value for trace in chart.figure.data if trace.mode == "lines+markers" for value in trace.y]
        assert means
        assert all(map(math.isfinite, means))
        assert all("smallest in-degree" in row for row in chart.rows)
    guide = power("m" if axis == "width" else "k", "−1/2")
    assert any(guide in str(trace.text) for trace in found[0].figure.data)
    assert len(found[0].rows) == len(shown.points) * len(figures.change_lines(shown.points))


def reported(app) -> dict:
    """Data of the page's canvas."""
    (component,) = (each.proto for each in app.get("bidi_component") if each.proto.component_name.endswith(NAME))
    return json.loads(component.json)


def test_gallery_graph_is_drawn_judged_kept_in_the_url_and_run(jobs):
    app = open_page("dag", num_hessians="0", graph="{")
    assert "In the URL" in words(app), "the invalid graph is replaced"
    found = reported(app)
    assert found["judged"]["title"] == "Wide: becomes linear"
    assert found["graph"] == graph_data(dense_graph(3, 0.5))
    app.selectbox(key="dag.gallery").set_value("bottleneck-layer")
    assert reported(checked(app.run()))["version"] == found["version"] + 1
    reasons = reported(app)["judged"]["reasons"]
    assert "All 1,024 neurons of group c have in-degree 2 (from b) at every width: not wide." in reasons
    assert parse_graph(address(app)["graph"]) == EXAMPLES["bottleneck-layer"]
    press(app, "dag.run")
    assert jobs.submitted[0].graph == EXAMPLES["bottleneck-layer"]
    assert app.selectbox(key="dag.gallery").value == "bottleneck-layer"
    app.session_state["dag.graph"] = str(dense_graph(2))
    assert checked(app.run()).selectbox(key="dag.gallery").value is None


def test_other_settings_count_in_the_verdict():
    app = open_page("dag", outputs="softmax")
    alone = reported(app)["judged"]
    assert (alone["title"], alone["at"]) == ("Nonlinear output: does not become linear", ["output"])
    app.query_params = {"outputs": "linear,softmax"}
    assert reported(checked(app.run()))["judged"]["title"] == "Wide: becomes linear"
    assert "With softmax outputs no graph becomes linear" in words(app)
    app.session_state["dag.graph"] = json.dumps({"groups": [{"name": "a"}], "edges": edges("input-a", "a-a")})
    assert len(reported(checked(app.run()))["judged"]["reasons"]) == 1
    assert app.button(key="dag.run").disabled
