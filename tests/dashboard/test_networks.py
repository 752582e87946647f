"""Pages of networks and of graphs: drawings, editor, verdicts, figures."""

import json
import math
from typing import Any

import numpy as np
import pytest

from linearity_lab.charts.figure import figures_of, shown_result
from linearity_lab.charts.style import compared_styles
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.architectures import figures as figures
from linearity_lab.experiments.architectures.network_drawing import (
    drawing,
    drawing_words,
    drawn,
    layer_rows,
    size_rows,
)
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.dag import figures as dag
from linearity_lab.experiments.dag.canvas import NAME
from linearity_lab.experiments.dag.graph_editor import drawable, from_browser, judged
from linearity_lab.experiments.dag.point import DAGSpec
from linearity_lab.networks.build import build_network
from linearity_lab.networks.sizes import layer_sizes
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import PRESETS
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import (
    composition_examples,
    dense_graph,
    example_graphs,
    graph_data,
    graph_verdict,
    parse_graph,
)
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.numbers import number
from tests.dashboard.open_pages import address, bars, checked, open_page, press, words
from tests.smallest import settings_of

KEY = "architectures."
LAYERED = tuple(name for name, kind in ARCHITECTURES.items() if "depth" in kind.settings)
STYLES = compared_styles({"A": "fully-connected", "B": "bottleneck"}, "linear")


def beside(first: ArchitectureSpec, **settings) -> ArchitecturesSpec:
    """Settings of a comparison of this network with the bottleneck."""
    return ArchitecturesSpec(
        architectures=(first, ArchitecturesSpec().architectures[1]), **settings
    )


RESULT: Any = gallery_result("bottleneck")
WIDTHS = RESULT.spec.widths
POINTS = {
    letter: [point for point in RESULT.points if point.network == letter]
    for letter in RESULT.spec.networks
}
KERNELS = {letter: points[-1].snapshots[0] for letter, points in POINTS.items()}


@pytest.mark.parametrize("kind", [*LAYERED, "composed"])  # the others take sequences
def test_parameters_and_smallest_width_are_those_of_the_network(kind):
    spec = beside(ArchitectureSpec(**settings_of(kind)), widths=(20,))
    shape = spec.shapes().input_shape
    net = build_network(spec.networks["A"], 20, spec.shapes().num_outputs, "linear")
    (row,) = size_rows(spec)
    assert row["A: parameters"] == net.num_params(shape)
    smallest = row["A: smallest in-degree" if kind == "densenet" else "A: smallest width"]
    assert smallest == {"densenet": net.min_width(shape), "bottleneck": 3, "adapted": 4}.get(
        kind, 20
    )


def test_queries_keys_and_values_branch_off_and_are_named():
    attention = ArchitectureSpec(kind="attention")
    sizes = layer_sizes(attention, 20, (6, 8), 3)
    figure = drawing(attention, sizes, (6, 8), 20)
    assert [row["kind"] for row in layer_rows(attention, sizes)] == [
        "queries",
        "keys",
        "values",
        "dense",
    ]
    # Into keys and values, from queries and keys.
    assert sum(each.type == "path" for each in figure.layout.shapes) == 4
    assert "⊙" in figure.data[-1].text
    assert "mixes values by queries and keys" in drawing_words(attention, sizes, 20)


COMPOSED = {
    name: ArchitectureSpec(kind="composed", composition=each)
    for name, each in composition_examples().items()
}


@pytest.mark.parametrize(
    ("network", "layers", "arcs", "marks"),
    [
        (COMPOSED["residual"], 3, 2, ["⊕", "⊕"]),
        (COMPOSED["concat"], 3, 3, ["‖", "‖"]),  # the output layer takes the first three layers
        (COMPOSED["two-speeds"], 2, 0, None),
        (ArchitectureSpec(kind="densenet", depth=3), 3, 6, None),
    ],
)
def test_layers_are_drawn_with_their_skip_connections(network, layers, arcs, marks):
    chart = drawn(beside(network, widths=(100,)), "A")
    assert sum(shape.type == "path" for shape in chart.figure.layout.shapes) == arcs
    assert f"{layers} hidden layers" in chart.takeaway
    assert ("skip connection" in chart.takeaway) == bool(arcs)
    assert not marks or list(chart.figure.data[-1].text) == marks


def test_distance_is_shown_where_it_is_known():
    assert figures.measures(POINTS, "linear") == ("change", "distance")
    assert figures.measures({"B": POINTS["B"]}, "linear") == ("change",)
    chart = figures.against_width(POINTS, "linear", (), STYLES, "distance")
    guides = [trace for trace in chart.figure.data if (trace.name or "").startswith("slope")]
    assert [(trace.name, trace.line.dash) for trace in guides] == [("slope −0.5", "dash")]
    assert chart.caption[0] == "Network B: no infinite-width kernel is known or requested."


def test_infinite_width_eigenvalues_are_those_of_one_output():
    kept = KERNELS["A"]
    num_outputs = len(kept.initial_eigenvalues) // len(kept.initial)
    whole = np.sort(np.linalg.eigvalsh(np.kron(np.asarray(kept.infinite), np.eye(num_outputs))))[
        ::-1
    ]
    rows = figures.spectra({"A": kept}, STYLES).rows
    np.testing.assert_allclose(
        [row["infinite width"] for row in rows], whole, rtol=1e-6, atol=1e-6 * whole[0]
    )
    dashed = [
        trace.name
        for trace in figures.spectra(KERNELS, STYLES).figure.data
        if trace.line.dash == "dash"
    ]
    assert dashed == ["A: fully connected infinite width"], "a bottleneck has none"


def test_heatmaps_show_shape_and_size_where_all_kernels_are_kept():
    kept = KERNELS["A"]
    chart = figures.heatmaps(kept, "A", WIDTHS[-1])
    notes = [annotation.text for annotation in chart.figure.layout.annotations]
    for name, trace, note in zip(
        ("initial", "final", "infinite"), chart.figure.data, notes, strict=True
    ):
        kernel = np.array(getattr(kept, name))
        size = np.trace(kernel) / len(kernel)
        np.testing.assert_allclose(trace.z, kernel / size)
        assert note.endswith(f"<br>× {number(size)}")
    assert list(figures.kept_at(POINTS, "linear")) == list(WIDTHS)
    assert list(figures.kept_at({**POINTS, "B": POINTS["B"][:1]}, "linear")) == [WIDTHS[0]]
    assert figures.kept_at(POINTS, "softmax") == {}


@pytest.mark.usefixtures("gallery")
def test_settings_and_number_of_networks_are_in_form_and_url():
    given = {"0.kind": "resnet", "0.depth": "2", "1.kind": "convnet", "1.kernel_size": "5"}
    query = {f"architectures.{name}": text for name, text in given.items()}
    app = open_page("architectures", **query)
    assert app.selectbox(key=KEY + "architectures.0.kind").value == "resnet"
    assert app.number_input(key=KEY + "architectures.1.kernel_size").value == 5
    assert address(app) == query
    for count in (3, 1):
        checked(app.number_input(key=KEY + "architectures").set_value(count).run())
        assert len(app.get("plotly_chart")) == count
    assert address(app)["architectures"] == "1"
    checked(app.number_input(key=KEY + "architectures").set_value(5).run())
    assert "Networks: 5 cannot be used; use 1 to 4 groups of settings." in words(app)


@pytest.mark.usefixtures("gallery")
def test_figures_come_with_the_points_of_each_network(jobs):
    job = jobs.add(RESULT.spec, points=RESULT.points[:1], message="network B, width 30: linear")
    app = open_page("architectures", job=job)
    assert len(app.get("plotly_chart")) == 4, (
        "the drawings, the first figure, and what the open tab holds"
    )
    (bar,) = bars(app)
    assert bar.startswith("1 of 8 points")
    assert "network B, width 30" in bar
    jobs.add(RESULT.spec, points=RESULT.points, status="completed")
    # two drawings, two sweeps, two networks' heatmaps, one figure of spectra
    assert len(checked(app.run()).get("plotly_chart")) == 7
    checked(app.number_input(key=KEY + "architectures.1.bottleneck_width").set_value(9).run())
    assert "Settings changed (Network B, Bottleneck width m_b)" in words(app)
    spec = with_settings(RESULT.spec, {"dataset.num_samples": 300})
    points = tuple(point.model_copy(update={"snapshots": ()}) for point in RESULT.points)
    app.query_params = {"job": jobs.add(spec, points=points, status="completed")}
    assert "Kernels are stored and drawn for up to 200 training points." in words(
        checked(app.run())
    )


EXAMPLES = example_graphs()
GALLERY = [name for name, preset in PRESETS.items() if preset.spec.experiment == "dag"]


def edges(*names: str) -> list[dict]:
    return [dict(zip(("source", "target"), name.split("-"), strict=True)) for name in names]


def edit(**changes):
    """A canvas's report of a graph of two groups."""
    groups = [{"name": "a"}, {"name": "b"}]
    return {
        **{
            "version": 0,
            "edit": 1,
            "places": {},
            "groups": groups,
            "edges": edges("input-a", "a-b", "b-output"),
        },
        **changes,
    }


def test_canvas_report_contains_graph_and_positions():
    for graph in EXAMPLES.values():
        given = json.loads(
            json.dumps({**graph_data(graph), "version": 2, "edit": 7, "places": {"a": [1, -0.5]}})
        )
        found = from_browser(given)
        assert parse_graph(found.text) == graph
        assert (found.version, found.number, found.places) == (2, 7, {"a": (1.0, -0.5)})
        assert drawable(found.text) == graph_data(graph)


def test_impossible_canvas_report_is_refused_in_one_sentence():
    deep: list = []
    for _ in range(50):
        deep = [deep]
    refused = [
        None,
        [],
        "graph",
        3,
        edit(version=-1),
        edit(edit=2**40),
        edit(version="0"),
        edit(groups=None),
        edit(edges={}),
        edit(groups=["a"]),
        edit(groups=[{"name": "a" * 81}]),
        edit(groups=[{"name": "a", "size": float("nan")}]),
        edit(groups=[{"name": "a", "size": 10**400}]),
        edit(groups=[{"name": deep}]),
        edit(groups=[{"x": 1}]),
        edit(groups=[{"name": "a" * 80}] * 5000),
        edit(edges=[{"source": {}, "target": "b"}]),
    ]
    for each in refused:
        with pytest.raises(InvalidInput) as reported:
            from_browser(each)
        assert len(str(reported.value)) < 400
    wild = {"a": [1e9, 0], "b": [0], "c": "here", "d": [None, 1], "e" * 90: [0, 0], "f": [1, 2]}
    assert from_browser(edit(places=wild)).places == {"f": (1.0, 2.0)}
    assert len(from_browser(edit(places={str(at): [0, 0] for at in range(5000)})).places) <= 66
    assert (
        drawable("{") == drawable("[]") == drawable('{"groups": 3}') == {"groups": [], "edges": []}
    )


def named(*names):
    return [{"name": name} for name in names]


LONG = "x" * 40
WHOLE = ("input-a", "a-b", "b-output")
BROKEN = [
    ({"edges": edges(*WHOLE, "b-a")}, {"a", "b", "a → b", "b → a"}),
    ({"groups": [{"name": "a", "size": -3}, {"name": "b"}]}, {"a"}),
    ({"groups": [{"name": "a"}, {"name": "b"}, {"name": "lonely"}]}, {"lonely"}),
    ({"edges": edges(*WHOLE[:2])}, {"output"}),
    ({"groups": []}, set()),
    # Names inside other names, and names longer than the shown part of a value.
    (
        {"groups": named("a", "b", "aa", "ba"), "edges": edges(*WHOLE, "ba-aa", "aa-ba", "ba-b")},
        {"aa", "ba", "aa → ba", "ba → aa"},
    ),
    (
        {
            "groups": named(LONG, "b"),
            "edges": edges(f"input-{LONG}", f"{LONG}-b", f"b-{LONG}", "b-output"),
        },
        {LONG, "b", f"{LONG} → b", f"b → {LONG}"},
    ),
    ({"edges": edges(*WHOLE, "a-b")}, {"a", "b", "a → b"}),
    ({"edges": edges(*WHOLE, "c-b")}, {"c → b"}),
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
        found, core = (
            judged(str(graph), spec, ""),
            graph_verdict(graph, spec.widths[-1], (192,), num_outputs=2),
        )
        assert found["outcome"] == ("good" if core.becomes_linear else "bad"), name
        assert set(found["at"]) == {reason.group for reason in core.reasons if reason.against}
        assert found["degrees"] == pytest.approx(
            {group: sum(found["counts"][group].values()) for group in graph.depths}
        )
        assert core.outcome in found["summary"]


@pytest.mark.parametrize("name", GALLERY)
def test_figures_of_every_preset_have_guides_and_finite_numbers(name):
    shown = shown_result(gallery_result(name))
    found = [chart for figure in figures_of(shown) for chart in figure.initial_charts(shown)]
    assert len(found) == {"zhu-preactivations": 4, "zhu-pl": 3}.get(name, 2)
    for chart in found:
        means = [
            value
            for trace in chart.figure.data
            if trace.mode == "lines+markers"
            for value in trace.y
        ]
        assert means
        assert all(map(math.isfinite, means))
    lines = [*dag.change_lines(shown.points), *dag.linear_model_lines(shown.points, "width")]
    assert len(found[0].rows) == len(shown.points) * len(lines)


def reported(app) -> dict:
    """Data of the page's canvas."""
    (component,) = (
        each.proto for each in app.get("bidi_component") if each.proto.component_name.endswith(NAME)
    )
    return json.loads(component.json)


def test_gallery_graph_is_drawn_judged_kept_in_the_url_and_run(jobs):
    app = open_page("dag", num_hessians="0", graph="{")
    assert "In the URL" in words(app), "the invalid graph is replaced"
    found = reported(app)
    assert found["judged"]["title"] == "Wide: becomes linear"
    assert found["graph"] == graph_data(gallery_result("zhu-fig2").spec.graph)
    app.selectbox(key="dag.gallery").set_value("bottleneck-layer")
    assert reported(checked(app.run()))["version"] == found["version"] + 1
    reasons = reported(app)["judged"]["reasons"]
    assert (
        "All 512 neurons of group c have in-degree 2 (from b) at every width: not wide." in reasons
    )
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
    app.session_state["dag.graph"] = json.dumps(
        {"groups": [{"name": "a"}], "edges": edges("input-a", "a-a")}
    )
    assert len(reported(checked(app.run()))["judged"]["reasons"]) == 1
    assert app.button(key="dag.run").disabled
