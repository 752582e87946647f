"""The page that compares two networks, and its figures."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.style import network_style, pair_styles
from dashboard.views.architectures import figures as figures
from dashboard.views.architectures.comparison import check_both
from dashboard.views.architectures.network_drawing import drawn, layer_rows, size_rows
from ntk_core.errors import TooLarge
from ntk_core.experiments.kernel_change.result import KernelSnapshot
from ntk_core.experiments.kernel_change.spec import INFINITE_WIDTH_KINDS
from ntk_core.networks.compositions import composition_examples
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.pairs import PAIRS, PARTS, ArchitecturePair, pair_of
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.vocabulary import ARCHITECTURES
from tests.dashboard.made_results import make_points
from tests.dashboard.open_pages import checked, open_page, words

KEY = "architectures."
KINDS = tuple(ARCHITECTURES)
LAYERED = tuple(kind for kind in KINDS if kind != "composed")


def architecture(kind: str, **settings) -> ArchitectureSpec:
    """Three layers, or those that somebody put together."""
    return ArchitectureSpec(kind=kind, **settings, **({} if kind == "composed" else {"depth": 3}))


STYLES = pair_styles({"a": "fully-connected", "b": "bottleneck"}, "linear")


def opened(**query: str) -> AppTest:
    return open_page("architectures", **query)


def query(app: AppTest) -> dict[str, str]:
    return {name: texts if isinstance(texts, str) else texts[-1] for name, texts in app.query_params.items()}


def snapshot(scale: float = 1.0, *, infinite: bool = False) -> KernelSnapshot:
    """Two samples and three outputs, K = diag(2, 1) ⊗ I₃, ``scale`` times larger after training."""
    matrix = ((2.0, 0.0), (0.0, 1.0))
    values = (2.0, 2.0, 2.0, 1.0, 1.0, 1.0)
    return KernelSnapshot(
        output="linear",
        seed=0,
        initial=matrix,
        final=tuple(tuple(scale * value for value in row) for row in matrix),
        initial_eigenvalues=values,
        final_eigenvalues=tuple(scale * value for value in values),
        infinite=matrix if infinite else None,
    )


def with_kernels(points, scale: float, distance: float | None = None):
    """The points with a kept kernel, and with a distance to infinite width that falls as m^(-1/2)."""
    return tuple(
        point.model_copy(
            update={
                "snapshots": (snapshot(scale, infinite=distance is not None),),
                "runs": tuple(
                    run.model_copy(
                        update={"infinite_distance": None if distance is None else distance * point.width**-0.5}
                    )
                    for run in point.runs
                ),
            }
        )
        for point in points
    )


@pytest.fixture
def points():
    return {
        "a": with_kernels(make_points(exponents={"linear": -1.0}), 1.1, distance=3.0),
        "b": with_kernels(make_points(exponents={"linear": 0.0}), 5.0),
    }


@pytest.fixture
def page(jobs, gallery, through_the_menu):
    return jobs


def test_both_specs_differ_in_the_architecture_alone_and_make_the_pair_again():
    for pair in (PAIRS[name].spec for name in PAIRS):
        a, b = pair.spec("a"), pair.spec("b")
        assert (a.architecture, b.architecture) == (pair.a, pair.b)
        assert a.model_copy(update={"architecture": b.architecture, "infinite_width": b.infinite_width}) == b
        assert pair_of(a, b) == pair
    other = with_settings(a, {"seed": 5})
    assert pair_of(other, b) is None


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_width_is_asked_for_only_where_it_is_known(kind):
    pair = ArchitecturePair(a=architecture(kind))
    assert pair.spec("a").infinite_width == (kind in INFINITE_WIDTH_KINDS)
    standard = ArchitecturePair(a=architecture(kind, parameterization="standard"))
    assert not standard.spec("a").infinite_width


def test_home_of_the_convergence_preset_is_a_shallow_network_beside_a_residual_one():
    pair = PAIRS["kernel-convergence"].spec
    assert (pair.a.kind, pair.a.depth, pair.b.kind) == ("fully-connected", 1, "resnet")
    assert pair.spec("a").infinite_width
    assert pair.spec("b").infinite_width
    assert PAIRS["kernel-convergence"].claim == PRESETS["kernel-convergence"].claim


@pytest.mark.parametrize("part", PARTS)
def test_network_that_is_impossible_on_these_data_is_named_by_its_own_setting(part):
    with pytest.raises(InvalidSpec, match=rf"^{part}\.kind: convnet cannot be used; use this kind only with images"):
        with_settings(ArchitecturePair(), {f"{part}.kind": "convnet", "dataset.name": "gaussian-mixture"})


def test_the_larger_network_decides_what_fits(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_MEMORY_GIB", "0.05")
    narrow = ArchitectureSpec(depth=1)
    check_both(ArchitecturePair(a=narrow, b=narrow, widths=(3000,)))
    with pytest.raises(TooLarge, match=r"^widths: 3000"):
        check_both(ArchitecturePair(a=narrow, b=ArchitectureSpec(depth=3), widths=(3000,)))


@pytest.mark.parametrize("kind", KINDS)
def test_counted_parameters_and_smallest_width_are_those_of_the_network(kind):
    from ntk_core.networks.build import build_network

    pair = ArchitecturePair(a=architecture(kind), widths=(20,))
    net = build_network(pair.a, 20, pair.shapes.num_outputs, "linear")
    (row,) = size_rows(pair)
    assert row["A: parameters"] == net.num_params(pair.shapes.input_shape)
    smallest = row["A: smallest in-degree" if kind == "densenet" else "A: smallest width"]
    assert smallest == {"densenet": net.min_width(pair.shapes.input_shape), "bottleneck": 3}.get(kind, 20)


@pytest.mark.parametrize("kind", LAYERED)
@pytest.mark.parametrize("depth", [2, 16])
def test_every_layer_is_drawn_as_a_box_and_named(kind, depth):
    pair = ArchitecturePair(a=ArchitectureSpec(kind=kind, depth=depth), widths=(20,))
    figure, alt, rows = drawn(pair, "a", 20)
    columns = {round(shape.x0 + 0.27, 6) for shape in figure.layout.shapes if shape.type == "rect"}
    assert columns >= set(range(depth + 2))
    assert len(rows) == depth + 1
    assert figure.data[0].text[0] == "49"
    assert figure.data[0].text[-1] == "3"
    assert f"{depth} hidden layers" in alt


def test_bottleneck_is_drawn_narrow_and_frozen_layers_gray():
    pair = ArchitecturePair(b=ArchitectureSpec(kind="bottleneck", depth=3, trained="last"), widths=(300,))
    figure, alt, _ = drawn(pair, "b", 300)
    heights = [shape.y1 - shape.y0 for shape in figure.layout.shapes]
    assert heights[2] < heights[1] / 2
    colors = [shape.line.color for shape in figure.layout.shapes]
    assert colors[4] == network_style("bottleneck").color
    assert network_style("bottleneck").color not in colors[:4]
    assert [row["trained"] for row in layer_rows(pair.b, pair.layers("b", 300))] == [False, False, False, True]
    assert "the smallest width is 3" in alt


@pytest.mark.parametrize(
    ("name", "layers", "arcs", "marks"),
    [
        ("residual", 3, 2, ["⊕", "⊕"]),
        ("concat", 3, 2, ["‖", "‖"]),
        ("bottleneck", 3, 0, None),
        ("two-speeds", 2, 0, None),
    ],
)
def test_own_layers_are_drawn_with_their_ways_around(name, layers, arcs, marks):
    own = ArchitectureSpec(kind="composed", composition=composition_examples()[name], trained="first")
    figure, alt, rows = drawn(ArchitecturePair(a=own), "a", 100)
    paths = [shape for shape in figure.layout.shapes if shape.type == "path"]
    assert len(paths) == arcs
    assert [row["trained"] for row in rows] == [True] + [False] * layers
    assert f"{layers} hidden layers" in alt
    assert ("goes around" in alt) == bool(arcs)
    assert not marks or list(figure.data[-1].text) == marks


@pytest.mark.parametrize(
    ("settings", "arcs"), [({"kind": "resnet"}, 2), ({"kind": "resnet", "skip_every": 2}, 1), ({"kind": "densenet"}, 6)]
)
def test_skips_are_drawn_as_the_network_has_them(settings, arcs):
    figure, *_ = drawn(ArchitecturePair(a=ArchitectureSpec(depth=3, **settings)), "a", 100)
    assert sum(shape.type == "path" for shape in figure.layout.shapes) == arcs


def test_sweep_has_one_color_and_one_fitted_exponent_a_network(points):
    figure = figures.against_width(points, "linear", (30, 100, 1000), STYLES)
    lines = {trace.legendgroup: trace for trace in figure.data if "∝" in (trace.name or "")}
    assert {part: lines[part].line.color for part in PARTS} == {part: STYLES[part].color for part in PARTS}
    assert "m<sup>−1.00 ± " in lines["a"].name
    assert "m<sup>0.00 ± " in lines["b"].name
    assert lines["a"].line.dash != lines["b"].line.dash
    assert lines["a"].marker.symbol != lines["b"].marker.symbol
    assert "Network A: from 0.033 at width 30" in figures.takeaway(points, "linear")


def test_distance_to_infinite_width_is_drawn_with_its_guide_where_it_was_measured(points):
    assert figures.measures(points, "linear") == (figures.CHANGE, figures.DISTANCE)
    assert figures.measures({"b": points["b"]}, "linear") == (figures.CHANGE,)
    figure = figures.against_width(points, "linear", (), STYLES, figures.DISTANCE)
    (line,) = [trace for trace in figure.data if "∝" in (trace.name or "")]
    assert np.allclose(line.y, 3.0 * np.array([30, 100, 1000]) ** -0.5)
    guides = [trace for trace in figure.data if trace.name and trace.name.startswith("slope")]
    assert [trace.name for trace in guides] == ["slope −0.5"]
    assert guides[0].line.dash == "dash"
    assert figures.caption(points, "linear", figures.DISTANCE) == [
        "Network B: no infinite-width kernel is known or asked for."
    ]


def test_eigenvalues_of_infinite_width_are_those_of_its_kernel_once_an_output():
    kept = snapshot(2.0, infinite=True)
    whole = np.kron(np.asarray(kept.infinite), np.eye(3))
    assert np.allclose(figures.infinite_eigenvalues(kept), np.sort(np.linalg.eigvalsh(whole))[::-1])
    figure = figures.spectra({"a": kept, "b": snapshot(3.0)}, STYLES)
    assert [(trace.name, trace.line.dash) for trace in figure.data if trace.mode == "lines"] == [
        ("A: fully connected infinite width", "dash")
    ]
    assert [row["infinite width"] for row in figures.spectra_rows({"a": kept})] == [2, 2, 2, 1, 1, 1]


def test_heatmaps_show_the_shape_and_tell_the_size():
    figure = figures.heatmaps(snapshot(4.0, infinite=True), "a")
    assert [annotation.text for annotation in figure.layout.annotations] == [
        "A before<br>× 1.5",
        "A after<br>× 6",
        "A infinite<br>× 1.5",
    ]
    assert np.allclose(figure.data[0].z, figure.data[1].z)
    assert "changed by 3 of its norm" in figures.heatmap_words(snapshot(4.0), "a", 100)


def test_kernels_are_drawn_at_widths_that_both_networks_have(points):
    assert list(figures.kept_at(points, "linear")) == [30, 100, 1000]
    assert list(figures.kept_at({**points, "b": points["b"][:1]}, "linear")) == [30]
    assert figures.kept_at(points, "softmax") == {}


def test_first_visit_draws_both_networks_and_waits_for_run(page):
    app = opened()
    assert len(app.get("plotly_chart")) == 2
    assert "Press Run" in words(app)
    assert query(app) == {}


def test_settings_of_both_networks_are_kept_apart_in_the_url(page):
    given = {"a__kind": "resnet", "a__depth": "2", "b__kind": "convnet", "b__kernel_size": "5"}
    app = opened(**given)
    assert app.selectbox(key=KEY + "a.kind").value == "resnet"
    assert app.number_input(key=KEY + "b.kernel_size").value == 5
    assert query(app).items() >= {name.replace("__", "."): text for name, text in given.items()}.items()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("name", "text"), [("kind", "[x](http://y)"), ("depth", "99"), ("activation", "nothing")])
def test_nonsense_in_the_url_is_named_and_replaced(page, part, name, text):
    app = opened(**{f"{part}__{name}": text})
    assert "In the URL, " in words(app)
    assert "is used instead." in words(app)
    assert query(app) == {}
    assert not app.button(key=KEY + "run").disabled


def test_unknown_jobs_in_the_url_are_named(page):
    app = opened(a__job="nothing", b__job="0123456789abcdef")
    assert "the id of a run of this server" in words(app)
    assert query(app) == {}


def test_run_starts_two_jobs_that_are_followed_stopped_and_found_again(page):
    app = opened(widths="30,100,1000")
    checked(app.button(key=KEY + "run").click().run())
    pair = with_settings(ArchitecturePair(), {"widths": [30, 100, 1000]})
    assert page.submitted == [pair.spec("a"), pair.spec("b")]
    ids = list(page.snapshots)
    assert query(app) | {"a.job": ids[0], "b.job": ids[1]} == query(app)
    assert [bar.proto.text[0] for bar in app.get("progress")] == ["A", "B"]
    checked(app.button(key=KEY + "stop").click().run())
    assert page.stopped == ids
    assert words(app).count("Stopped: 0 of 3 widths are done") == 2

    again = opened(a__job=ids[0], b__job=ids[1])
    assert again.text_input(key=KEY + "widths").value == "30,100,1000"
    assert words(again).count("Stopped: 0 of 3 widths are done") == 2


def test_points_of_both_jobs_are_drawn_with_kernels_and_spectra(page, points):
    pair = ArchitecturePair(widths=(30, 100, 1000))
    ids = {part: page.add(pair.spec(part), points=points[part], status="completed") for part in PARTS}
    app = opened(a__job=ids["a"], b__job=ids["b"])
    # two drawings, two sweeps, two networks' heatmaps, one figure of spectra
    assert len(app.get("plotly_chart")) == 7
    assert "What this page shows." in words(app)
    assert "What finite width changes." in words(app)
    checked(app.number_input(key=KEY + "seed").set_value(9).run())
    assert "This figure shows earlier settings (First seed changed)" in words(app)


def test_page_shows_one_network_while_the_other_waits(page, points):
    pair = ArchitecturePair(widths=(30, 100, 1000))
    first = page.add(pair.spec("a"), points=points["a"][:1])
    second = page.add(pair.spec("b"), status="queued", position=1, starts_in_s=12.0)
    app = opened(a__job=first, b__job=second)
    assert len(app.get("plotly_chart")) == 6
    assert [bar.proto.text for bar in app.get("progress")][1] == (
        r"B\: Waiting, place 1 in the queue, begins in about 12 s, done in about 42 s"
    )


def test_what_was_computed_beforehand_is_drawn_on_the_first_visit(jobs, through_the_menu):
    app = opened()
    assert len(app.get("plotly_chart")) == 7
    assert "Press Run" not in words(app)
    assert not jobs.submitted


def test_the_export_has_both_networks_and_the_figures_of_the_page(page, points, monkeypatch):
    exported = {}
    monkeypatch.setattr(
        "dashboard.views.architectures.pair_panel.export_several",
        lambda name, title, runs, figures: exported.update({"runs": list(runs), "figures": list(figures)}),
    )
    pair = ArchitecturePair(widths=(30, 100, 1000))
    ids = {part: page.add(pair.spec(part), points=points[part], status="completed") for part in PARTS}
    opened(a__job=ids["a"], b__job=ids["b"])
    assert [run.spec for run in exported["runs"]] == [pair.spec("a"), pair.spec("b")]
    sweep, _, kernel_a, kernel_b, spectra = exported["figures"]
    assert sweep.startswith("Kernel change against width")
    assert "network A at width 1,000" in kernel_a
    assert "network B at width 1,000" in kernel_b
    assert spectra.startswith("Eigenvalues")


def test_what_is_wrong_with_a_network_names_it(page):
    app = opened()
    checked(app.number_input(key=KEY + "b.depth").set_value(99).run())
    assert "Network B, Hidden layers L: 99 cannot be used" in words(app)
    assert "Network A" not in words(app).split("Fix these settings")[1].split("\n")[0]


def test_many_samples_are_not_drawn_and_the_page_says_so(page, points):
    pair = with_settings(ArchitecturePair(widths=(30, 100, 1000)), {"dataset.num_samples": 300})
    bare = [point.model_copy(update={"snapshots": ()}) for point in points["a"]]
    ids = {part: page.add(pair.spec(part), points=tuple(bare), status="completed") for part in PARTS}
    app = opened(a__job=ids["a"], b__job=ids["b"])
    assert "Kernels are kept and drawn for up to 200 training points." in words(app)
