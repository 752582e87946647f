"""The page that compares networks, and its figures."""

from typing import Any

import numpy as np
import pytest

from linearity_lab.charts.style import compared_styles, network_style
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.architectures import figures as figures
from linearity_lab.views.architectures.network_drawing import drawing, drawing_words, drawn, layer_rows, size_rows
from ntk_core.experiments.architectures import ArchitecturesSpec
from ntk_core.networks.build import build_network
from ntk_core.networks.graphs import composition_examples
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.networks.sizes import layer_sizes
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.numbers import number
from ntk_core.settings.grammar import with_settings
from tests.dashboard.open_pages import address, bars, checked, open_page, words
from tests.smallest import settings_of

pytestmark = pytest.mark.usefixtures("gallery")
KEY = "architectures."
LAYERED = tuple(name for name, kind in ARCHITECTURES.items() if "depth" in kind.settings)
STYLES = compared_styles({"A": "fully-connected", "B": "bottleneck"}, "linear")


def beside(first: ArchitectureSpec, **settings) -> ArchitecturesSpec:
    """Settings of a comparison of this network with the bottleneck."""
    return ArchitecturesSpec(architectures=(first, ArchitecturesSpec().architectures[1]), **settings)


RESULT: Any = gallery_result("bottleneck")
WIDTHS = RESULT.spec.widths
POINTS = {letter: [point for point in RESULT.points if point.network == letter] for letter in RESULT.spec.networks}
KERNELS = {letter: points[-1].snapshots[0] for letter, points in POINTS.items()}


@pytest.mark.parametrize("kind", [*LAYERED, "composed"])  # the others take sequences
def test_parameters_and_smallest_width_are_those_of_the_network(kind):
    spec = beside(ArchitectureSpec(**settings_of(kind)), widths=(20,))
    shape = spec.shapes().input_shape
    net = build_network(spec.networks["A"], 20, spec.shapes().num_outputs, "linear")
    (row,) = size_rows(spec)
    assert row["A: parameters"] == net.num_params(shape)
    smallest = row["A: smallest in-degree" if kind == "densenet" else "A: smallest width"]
    assert smallest == {"densenet": net.min_width(shape), "bottleneck": 3, "adapted": 4}.get(kind, 20)


@pytest.mark.parametrize("kind", LAYERED)
def test_every_layer_is_drawn_as_a_box(kind):
    chart = drawn(beside(ArchitectureSpec(kind=kind, depth=16), widths=(20,)), "A")
    columns = {round(shape.x0 + 0.27, 6) for shape in chart.figure.layout.shapes if shape.type == "rect"}
    num_layers = 48 if kind == "adapted" else 16  # frozen weights, A and B
    assert columns >= set(range(num_layers + 2))
    assert len(chart.rows) == num_layers + 1
    assert (chart.figure.data[0].text[0], chart.figure.data[0].text[-1]) == ("49", "3")


def test_queries_keys_and_values_branch_off_and_are_named():
    attention = ArchitectureSpec(kind="attention")
    sizes = layer_sizes(attention, 20, (6, 8), 3)
    figure = drawing(attention, sizes, (6, 8), 20)
    assert [row["kind"] for row in layer_rows(attention, sizes)] == ["queries", "keys", "values", "dense"]
    assert sum(each.type == "path" for each in figure.layout.shapes) == 4  # into keys and values, from queries and keys
    assert "⊙" in figure.data[-1].text
    assert "mixes values by queries and keys" in drawing_words(attention, sizes, 20)


def test_bottleneck_is_drawn_narrow_and_frozen_layers_gray():
    narrow = ArchitectureSpec(kind="bottleneck", depth=3, trained="last")
    chart = drawn(ArchitecturesSpec(architectures=(ArchitectureSpec(), narrow), widths=(300,)), "B")
    shapes, color = chart.figure.layout.shapes, network_style("bottleneck").color
    assert shapes[2].y1 - shapes[2].y0 < (shapes[1].y1 - shapes[1].y0) / 2
    assert [shape.line.color == color for shape in shapes[:5]] == [False] * 4 + [True]
    assert [row["trained"] for row in chart.rows] == [False] * 3 + [True]
    assert "the smallest width is 3" in chart.takeaway


COMPOSED = {name: ArchitectureSpec(kind="composed", composition=each) for name, each in composition_examples().items()}


@pytest.mark.parametrize(
    ("network", "layers", "arcs", "marks"),
    [
        (COMPOSED["residual"], 3, 2, ["⊕", "⊕"]),
        (COMPOSED["concat"], 3, 3, ["‖", "‖"]),  # the output layer takes the first three layers
        (COMPOSED["two-speeds"], 2, 0, None),
        (ArchitectureSpec(kind="resnet", depth=3, skip_every=2), 3, 1, None),
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
    whole = np.sort(np.linalg.eigvalsh(np.kron(np.asarray(kept.infinite), np.eye(num_outputs))))[::-1]
    rows = figures.spectra({"A": kept}, STYLES).rows
    np.testing.assert_allclose([row["infinite width"] for row in rows], whole, rtol=1e-6, atol=1e-6 * whole[0])
    dashed = [trace.name for trace in figures.spectra(KERNELS, STYLES).figure.data if trace.line.dash == "dash"]
    assert dashed == ["A: fully connected infinite width"], "a bottleneck has none"


def test_heatmaps_show_shape_and_size_where_all_kernels_are_kept():
    kept = KERNELS["A"]
    chart = figures.heatmaps(kept, "A", WIDTHS[-1])
    notes = [annotation.text for annotation in chart.figure.layout.annotations]
    for name, trace, note in zip(("initial", "final", "infinite"), chart.figure.data, notes, strict=True):
        kernel = np.array(getattr(kept, name))
        size = np.trace(kernel) / len(kernel)
        np.testing.assert_allclose(trace.z, kernel / size)
        assert note.endswith(f"<br>× {number(size)}")
    moved = np.linalg.norm(np.subtract(kept.final, kept.initial)) / np.linalg.norm(kept.initial)
    assert f"changed by {number(moved)} of its norm" in chart.takeaway
    assert list(figures.kept_at(POINTS, "linear")) == list(WIDTHS)
    assert list(figures.kept_at({**POINTS, "B": POINTS["B"][:1]}, "linear")) == [WIDTHS[0]]
    assert figures.kept_at(POINTS, "softmax") == {}


def test_settings_and_number_of_networks_are_in_form_and_url():
    given = {"0.kind": "resnet", "0.depth": "2", "1.kind": "convnet", "1.kernel_size": "5"}
    query = {f"architectures.{name}": text for name, text in given.items()}
    app = open_page("architectures", **query)
    assert app.selectbox(key=KEY + "architectures.0.kind").value == "resnet"
    assert app.number_input(key=KEY + "architectures.1.kernel_size").value == 5
    assert address(app) == query
    app.query_params = {"architectures": "3", "architectures.2.kind": "resnet"}
    checked(app.run())
    assert app.selectbox(key=KEY + "architectures.2.kind").value == "resnet"
    assert len(app.get("plotly_chart")) == 3
    checked(app.number_input(key=KEY + "architectures").set_value(1).run())
    assert len(app.get("plotly_chart")) == 1
    assert address(app) == {"architectures": "1"}
    checked(app.number_input(key=KEY + "architectures").set_value(5).run())
    assert "Networks: 5 cannot be used; use 1 to 4 groups of settings." in words(app)


def test_figures_come_with_the_points_of_each_network(jobs):
    job = jobs.add(RESULT.spec, points=RESULT.points[:1], message="network B, width 30: linear")
    app = open_page("architectures", job=job)
    assert len(app.get("plotly_chart")) == 4, "the drawings, the first figure, and what the open tab holds"
    (bar,) = bars(app)
    assert bar.startswith("1 of 8 points")
    assert "network B, width 30" in bar
    jobs.add(RESULT.spec, points=RESULT.points, status="completed")
    # two drawings, two sweeps, two networks' heatmaps, one figure of spectra
    assert len(checked(app.run()).get("plotly_chart")) == 7
    checked(app.number_input(key=KEY + "architectures.1.bottleneck_width").set_value(9).run())
    assert "Settings changed (Network B, Bottleneck width m_b)" in words(app)


def test_many_samples_are_replaced_by_a_sentence(jobs):
    spec = with_settings(RESULT.spec, {"dataset.num_samples": 300})
    points = tuple(point.model_copy(update={"snapshots": ()}) for point in RESULT.points)
    app = open_page("architectures", job=jobs.add(spec, points=points, status="completed"))
    assert "Kernels are stored and drawn for up to 200 training points." in words(app)
