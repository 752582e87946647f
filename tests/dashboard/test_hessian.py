"""Figures of Hessians: exponents, bounds, balls, blocks, visible unknowns; choices of the page."""

from __future__ import annotations

import re

import numpy as np
import pytest

from linearity_lab.charts.style import network_style
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.hessian import figures, part_figures
from ntk_core.experiments.hessian.network import TEMPLATES, named, templates
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.fits import PowerLaw, becomes_linear
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import spec_from_texts
from tests.dashboard.open_pages import address, bars, checked, chooser, form_sentences, open_page, words
from tests.dashboard.test_figures import numbers, one

LINEAR, NONLINEAR, CNN = "fully-connected", "fully-connected-swish", "convnet"
TABLE = gallery_result("liu-table1").points
BOUNDS = gallery_result("liu-nonlinear-output").points
BALLS = gallery_result("liu-ball").points


def line(chart, name) -> dict:
    return one(chart.figure, legendgroup=name, mode="lines+markers")


def means(line: str, of, points=TABLE) -> list[float]:
    return [np.mean([of(run) for run in point.runs]) for point in figures.of_line(points, line)]


def changed(points, width: int, **changes):
    """Change all runs of one width."""
    return [
        point.model_copy(update={"runs": tuple(run.model_copy(update=changes) for run in point.runs)})
        if point.width == width
        else point
        for point in points
    ]


def test_lines_run_through_means_at_each_networks_width():
    drawn = figures.against_width(TABLE)
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500, 1000])
    np.testing.assert_array_equal(numbers(line(drawn, CNN)["x"]), [8, 17, 42, 83])
    assert "channels" in drawn.figure.layout.xaxis.title.text
    norms = np.array(means(LINEAR, lambda run: run.norm))
    for view, expected in (
        ("‖H‖", norms),
        ("√m ‖H‖", norms * np.sqrt([100, 200, 500, 1000])),
        ("‖H‖ / ‖∇f‖²", means(LINEAR, lambda run: run.norm / run.kernel)),
    ):
        np.testing.assert_allclose(numbers(line(figures.against_width(TABLE, view), LINEAR)["y"]), expected)


def test_unconverged_norms_are_open_markers_in_no_mean_and_named():
    drawn = figures.against_width(changed(TABLE, 1000, converged=False))
    markers = one(drawn.figure, legendgroup=LINEAR, mode="markers")
    assert markers["marker"]["symbol"][-12:] == ["circle-open"] * 12
    assert "unconverged" in markers["customdata"][-1][1]
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500])
    (sentence,) = [each for each in drawn.caption if "linear output has unconverged norms" in each]
    assert "at m = 1,000 (seeds 0, 1, 2" in sentence


def test_kernel_change_shows_trained_seeds_only():
    trained = [run.trained for point in TABLE if point.line == LINEAR for run in point.runs if run.trained]
    lost = changed(TABLE, 1000, trained=trained[0].model_copy(update={"outcome": "over-budget"}))
    drawn = figures.change_against_width(lost)
    seeds = len(trained) - len(trained) // 4 + 12
    assert len(numbers(one(drawn.figure, legendgroup=LINEAR, mode="markers")["x"])) == seeds
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500])
    (sentence,) = [each for each in drawn.caption if "linear output did not reach the loss threshold" in each]
    assert "m = 1,000 (seeds 0, 1" in sentence


def test_table_has_measured_exponents_and_verdicts():
    rows = {row["Network"]: row for row in figures.table_rows(TABLE)}
    assert rows["linear output"]["‖H‖"].startswith("m^{−0.")
    assert [row["Becomes linear?"] for row in rows.values()] == [row["In the paper"] for row in rows.values()]
    assert "m = 1,000" in rows["linear output"]["ΔK at the largest width"]
    assert "m = 83" in rows["CNN"]["ΔK at the largest width"]
    three_widths = figures.table_rows([point for point in TABLE if point.width > 100])
    assert {row["Becomes linear?"] for row in three_widths} == {"undecided"}
    assert "no interval (needs 4 widths)" in three_widths[0]["‖H‖"]


@pytest.mark.parametrize(
    ("exponent", "interval", "verdict"),
    [(-0.5, 0.1, "yes"), (0.0, 0.1, "no"), (-0.3, 0.1, "undecided"), (-0.5, float("nan"), "undecided")],
)
def test_verdict_needs_the_whole_interval_on_one_side(exponent, interval, verdict):
    assert becomes_linear(PowerLaw(exponent, interval, 1.0, 0.95, 10, 0)) == verdict
    assert becomes_linear(None) == "undecided"


def test_measured_norm_is_between_its_bounds():
    above, below = (part_figures.bounded(BOUNDS, name) for name in (LINEAR, NONLINEAR))
    for chart, upper, lower in ((above, "bound", "norm"), (below, "norm", "lower")):
        high, low = (line(chart, name) for name in (upper, lower))
        shared = np.isin(numbers(high["x"]), numbers(low["x"]))  # a logarithmic axis has no lower bound below 0
        assert np.all(numbers(high["y"])[shared] > numbers(low["y"]))
    assert part_figures.bounded(TABLE, CNN) is None
    assert part_figures.quantities(TABLE, CNN) is None
    ratios = [run.bound.bound / run.norm for point in BOUNDS for run in point.runs if run.bound]
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times the norm" in above.takeaway
    assert "above its lower bound in 40 of 40 runs" in below.takeaway


def test_infinity_norm_falls_while_the_two_norm_stays():
    drawn = part_figures.quantities(BOUNDS, LINEAR)
    for name, low, high in (("b_max", 0.15, 0.35), ("b_norm", 0.9, 1.1)):
        y = numbers(line(drawn, name)["y"])
        assert low < y[-1] / y[0] < high, "the width grows by a factor of 30"


@pytest.mark.parametrize("quantity", ["hessian", "kernel_change"])
def test_balls_show_the_bound_above_random_directions(quantity):
    assert part_figures.radii_of(BALLS) == (0.5, 1.0, 2.0, 4.0)
    small, large = (part_figures.ball(BALLS, radius, quantity, 4) for radius in (0.5, 2.0))
    for drawn in (small, large):
        at_least = numbers(line(drawn, LINEAR)["y"])
        assert np.all(at_least > numbers(line(drawn, f"{LINEAR}_random")["y"]))
        assert "at least" in line(drawn, LINEAR)["name"]
    assert np.all(numbers(line(large, LINEAR)["y"]) > numbers(line(small, LINEAR)["y"]))
    assert "lower bounds on the supremum" in large.caption[0]
    assert "4 starts" in large.caption[0]


def test_block_heatmap_has_the_norms_of_the_widest_point():
    points = gallery_result("liu-theorem31").points
    width, blocks = part_figures.blocks_of(points, LINEAR)
    assert width == 3000
    drawn = part_figures.blocks(points, LINEAR)
    (heatmap,) = drawn.figure.data
    np.testing.assert_array_equal(heatmap.z, blocks.norms)
    assert heatmap.x[0] == "layer 1"
    assert f"The largest is layer 1 × layer 1 with {np.max(blocks.norms):.2g}" in drawn.takeaway
    lost = blocks.model_copy(update={"converged": False})
    assert "may be larger" in part_figures.block_words(lost, "linear output", f"width m = {width}")


def test_no_two_networks_look_the_same():
    deeper = TEMPLATES["resnet"].model_copy(update={"depth": 3})
    networks = named((*TEMPLATES.values(), deeper))
    styles = figures.styles(
        [TABLE[0].model_copy(update={"line": name, "network": networks[name]}) for name in networks]
    )
    assert styles["resnet"].title == "ResNet, hidden layers L = 2"
    assert styles["resnet-2"].title == "ResNet, hidden layers L = 3"
    for kind in ("bottleneck", "densenet", "convnet", "mixed"):
        assert styles[kind] == network_style(kind)
    assert styles["resnet-swish"] == network_style("resnet", "swish")
    learning = [style for name, style in styles.items() if networks[name].input == "data"]
    assert len({(style.color, style.dash, style.symbol) for style in learning}) == len(learning)
    assert len({style.title for style in styles.values()}) == len(styles)


@pytest.mark.parametrize("points", [(), TABLE[:1]], ids=["none", "one"])
def test_figures_of_no_or_one_point_can_be_drawn(points):
    for view in figures.VIEWS:
        assert figures.against_width(points, view).figure.layout.xaxis.type == "log"
        assert figures.against_width(points, view).takeaway
    assert len(figures.table_rows(points)) == len(points)


CHOSEN, ALL, ONE = "hessian.networks.chosen", "hessian.networks.all.", "hessian.networks.one"

TABLE_1 = HessianSpec.model_validate(PRESETS["liu-table1"].spec)


def tables(app) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<table" in element.proto.body]


def test_table_views_radii_and_networks_can_be_chosen():
    app = open_page("hessian")
    (table,) = tables(app)
    verdicts = re.findall(r'data-label="Becomes linear\?"><span>(\w+)', table)
    assert verdicts == re.findall(r'data-label="In the paper"><span>(\w+)', table)
    assert "<sup>−0.4" in table
    assert '<th scope="row">linear output</th>' in table
    app.query_params = {"preset": "liu-ball"}
    checked(app.run())
    chooser(app, "hessian.view").set_value("√m ‖H‖")
    app.select_slider(key="hessian.radius").set_value(2.0)
    assert "Ball of radius R = 2 around w₀" in words(checked(app.run()))
    app.query_params = {"preset": "liu-nonlinear-output"}
    checked(app.run())
    first = len(app.get("plotly_chart"))
    chooser(app, "hessian.one").set_value("fully-connected-swish")  # without layer quantities
    assert len(checked(app.run()).get("plotly_chart")) == first - 1
    assert "above its lower bound in 40 of 40 runs" in words(app)


def test_relu_figures_report_what_the_hessian_misses():
    app = open_page("hessian", preset="relu-and-tanh")
    assert "With ReLU, ‖H‖ is that of the almost-everywhere Hessian." in words(app)
    assert "It misses the kinks, which contain the curvature within a layer, so ‖H‖R does not bound" in words(app)
    (table,) = tables(app)
    assert "yes (almost everywhere)" in table
    app.query_params = {}
    checked(app.run()).selectbox(key=ALL + "activation").set_value("relu")
    assert form_sentences(checked(app.run())) == []
    assert not app.button(key="hessian.run").disabled


def spec_of(app) -> HessianSpec:
    """Spec of the page's URL."""
    spec, problems = spec_from_texts(address(app), TABLE_1)
    assert problems == ()
    return spec


def test_networks_are_chosen_and_edited_together_or_singly():
    names = ("bottleneck", "fully-connected-swish", "composed", "shallow")
    app = open_page("hessian")
    assert app.multiselect(key=CHOSEN).value == list(TABLE_1.lines())
    app.multiselect(key=CHOSEN).set_value(list(names))
    checked(app.run())
    assert spec_of(app).networks == tuple(TEMPLATES[name] for name in names)
    app.number_input(key=ALL + "layers").set_value(3)
    checked(app.run()).selectbox(key=ALL + "output").set_value("sigmoid")
    checked(app.run())
    assert spec_of(app).networks == templates(*names, layers=3, output="sigmoid")
    app.selectbox(key=ONE).set_value(1)
    checked(app.run()).number_input(key="hessian.networks.1.depth").set_value(5)
    checked(app.run())
    assert [network.depth for network in spec_of(app).networks[:2]] == [4, 5]
    app.multiselect(key=CHOSEN).set_value([])
    (sentence,) = form_sentences(checked(app.run()))
    assert "1 to 12 groups of settings" in sentence
    app.multiselect(key=CHOSEN).set_value(["resnet"])
    assert form_sentences(checked(app.run())) == []
    assert spec_of(app).networks == (TEMPLATES["resnet"],)


def test_points_of_a_running_job_are_drawn_network_by_network(jobs):
    job = jobs.add(HessianSpec(), points=gallery_result("liu-table1").points[:2])
    app = open_page("hessian", job=job)
    (progress,) = bars(app)
    assert progress.startswith("2 of 24 points")
    assert [table.count('scope="row"') for table in tables(app)] == [2]
