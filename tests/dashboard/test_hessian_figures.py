"""The figures of Hessians show exponents, bounds, balls and blocks of the points, and hide nothing that is unknown."""

from __future__ import annotations

import numpy as np
import pytest

from linearity_lab.charts.style import network_style
from linearity_lab.views.hessian import figures as figures
from linearity_lab.views.hessian import part_figures as parts
from ntk_core.experiments.hessian.network import TEMPLATES, named
from ntk_core.fits import PowerLaw, becomes_linear
from tests.dashboard.made_hessians import make_hessian_points, make_point
from tests.dashboard.test_figures import numbers, one, traces

LINEAR, NONLINEAR, CNN = "fully-connected", "fully-connected-swish", "convnet"


def line(chart, name) -> dict:
    return one(chart.figure, legendgroup=name, mode="lines+markers")


def test_lines_run_through_means_at_each_networks_width():
    drawn = figures.against_width(make_hessian_points())
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500, 1000])
    np.testing.assert_array_equal(numbers(line(drawn, CNN)["x"]), [8, 17, 42, 83])
    expected = np.array([100, 200, 500, 1000]) ** -0.5 * 1.05  # seeds are at 1, 1.05 and 1.1 of the law
    np.testing.assert_allclose(numbers(line(drawn, LINEAR)["y"]), expected, rtol=1e-12)
    assert line(drawn, LINEAR)["name"].startswith("linear output ∝ m<sup>−0.50 ± 0.0")
    assert "channels" in drawn.figure.layout.xaxis.title.text


def test_scaled_norm_is_flat_and_relative_view_divides_by_kernel():
    points = make_hessian_points((LINEAR,))
    scaled = numbers(line(figures.against_width(points, "√m ‖H‖"), LINEAR)["y"])
    np.testing.assert_allclose(scaled, 1.05, rtol=1e-12)
    plain = numbers(line(figures.against_width(points, "‖H‖"), LINEAR)["y"])
    relative = numbers(line(figures.against_width(points, "‖H‖ / ‖∇f‖²"), LINEAR)["y"])
    np.testing.assert_allclose(relative, plain / 0.7, rtol=1e-12)


def test_unconverged_norms_are_open_markers_in_no_mean_and_named():
    points = (*make_hessian_points((LINEAR,), (100, 300)), make_point(LINEAR, 1000, converged=False))
    drawn = figures.against_width(points)
    markers = one(drawn.figure, legendgroup=LINEAR, mode="markers")
    assert markers["marker"]["symbol"][-3:] == ["circle-open"] * 3
    assert "unconverged" in markers["customdata"][-1][1]
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 300])
    sentence, exponent, _ = drawn.caption
    assert exponent == "Linear output: exponent −0.50 over 6 converged runs."
    assert sentence.startswith("Excluded from the means: linear output has unconverged norms")
    assert "at m = 1,000 (seeds 0, 1, 2)" in sentence
    assert not figures.against_width(make_hessian_points(widths=(30, 100, 300, 1000))).caption


def test_kernel_change_shows_trained_seeds_only():
    points = (*make_hessian_points((LINEAR,), (100, 300)), make_point(LINEAR, 1000, outcome="over-budget"))
    drawn = figures.change_against_width(points)
    assert len(numbers(one(drawn.figure, legendgroup=LINEAR, mode="markers")["x"])) == 6  # two of three seeds
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 300])
    sentence, _, lacking = drawn.caption
    assert lacking == "Use at least 3 seeds and 4 widths to get a confidence interval."
    assert "linear output did not reach the loss threshold" in sentence
    assert "m = 1,000 (seeds 0, 1)" in sentence


def test_table_has_measured_exponents_and_verdicts():
    linear, nonlinear, cnn = figures.table_rows(make_hessian_points(widths=(30, 100, 300, 1000)))
    assert linear["‖H‖"].startswith("m^{−0.50 ")
    assert [row["Becomes linear?"] for row in (linear, nonlinear, cnn)] == ["yes", "no", "yes"]
    assert "m = 1,000" in linear["ΔK at the largest width"]
    assert "m = 83" in cnn["ΔK at the largest width"]
    three_widths = figures.table_rows(make_hessian_points(widths=(100, 300, 1000)))
    assert [row["Becomes linear?"] for row in three_widths] == ["undecided"] * 3
    assert three_widths[0]["‖H‖"] == "m^{−0.50}; no interval (needs 4 widths)"


@pytest.mark.parametrize(
    ("exponent", "interval", "verdict"),
    [(-0.5, 0.1, "yes"), (0.0, 0.1, "no"), (-0.3, 0.1, "undecided"), (-0.5, float("nan"), "undecided")],
)
def test_verdict_needs_the_whole_interval_on_one_side(exponent, interval, verdict):
    assert becomes_linear(PowerLaw(exponent, interval, 1.0, 0.95, 10, 0)) == verdict
    assert becomes_linear(None) == "undecided"


def test_measured_norm_is_between_its_bounds():
    points = make_hessian_points()
    above = parts.bounded(points, LINEAR)
    norm, bound = (numbers(line(above, name)["y"]) for name in ("norm", "bound"))
    np.testing.assert_allclose(bound, 8 * norm, rtol=1e-12)
    below = parts.bounded(points, NONLINEAR)
    assert np.all(numbers(line(below, "lower")["y"]) <= numbers(line(below, "norm")["y"]))
    assert parts.bounded(points, CNN) is None
    assert "8 to 8 times the norm" in above.takeaway
    assert "above its lower bound in 12 of 12 runs" in below.takeaway


def test_infinity_norm_falls_while_the_two_norm_stays():
    drawn = parts.quantities(make_hessian_points(), LINEAR)
    assert "∝ m<sup>−0.50" in line(drawn, "b_max")["name"]
    assert "∝ m<sup>0.00" in line(drawn, "b_norm")["name"]
    assert parts.quantities(make_hessian_points(), CNN) is None


@pytest.mark.parametrize("quantity", ["hessian", "kernel_change"])
def test_balls_show_the_bound_above_random_directions(quantity):
    points = make_hessian_points()
    assert parts.radii_of(points) == (0.5, 1.0, 2.0)
    small, large = (parts.ball(points, radius, quantity, 4) for radius in (0.5, 2.0))
    for drawn in (small, large):
        at_least = numbers(line(drawn, LINEAR)["y"])
        random = numbers(line(drawn, f"{LINEAR}_random")["y"])
        assert np.all(at_least > random)
        assert "at least" in line(drawn, LINEAR)["name"]
    assert np.all(numbers(line(large, LINEAR)["y"]) > numbers(line(small, LINEAR)["y"]))
    sentence, *_ = large.caption
    assert "lower bounds on the supremum" in sentence
    assert "4 starts" in sentence


def test_block_heatmap_has_the_norms_of_the_widest_point():
    width, blocks = parts.blocks_of(make_hessian_points(), LINEAR)
    assert width == 1000
    drawn = parts.blocks(make_hessian_points(), LINEAR)
    (heatmap,) = traces(drawn.figure)
    np.testing.assert_array_equal(
        heatmap["z"] if isinstance(heatmap["z"], list) else numbers(heatmap["z"]).reshape(2, 2), blocks.norms
    )
    assert heatmap["x"] == ["layer 1", "output"]
    assert "The largest is layer 1 × layer 1 with 0.3." in drawn.takeaway
    lost = blocks.model_copy(update={"converged": False})
    assert "may be larger" in parts.block_words(lost, "linear output", f"width m = {width}")


def test_no_two_networks_look_the_same():
    deeper = TEMPLATES["resnet"].model_copy(update={"depth": 3})
    networks = named((*TEMPLATES.values(), deeper))
    point = make_point(LINEAR, 100)
    points = [point.model_copy(update={"line": name, "network": each}) for name, each in networks.items()]
    styles = figures.styles(points)
    assert styles["resnet"].title == "ResNet, hidden layers L = 2"
    assert styles["resnet-2"].title == "ResNet, hidden layers L = 3"
    for kind in ("bottleneck", "densenet", "convnet", "mixed"):
        assert styles[kind] == network_style(kind)
    assert styles["resnet-swish"] == network_style("resnet", "swish")
    learning = [style for name, style in styles.items() if networks[name].input == "data"]
    assert len({(style.color, style.dash, style.symbol) for style in learning}) == len(learning)
    assert len({style.title for style in styles.values()}) == len(styles)


@pytest.mark.parametrize("points", [(), make_hessian_points((LINEAR,), (100,))])
def test_figures_of_no_or_one_point_can_be_drawn(points):
    for view in figures.VIEWS:
        assert figures.against_width(points, view).figure.layout.xaxis.type == "log"
        assert figures.against_width(points, view).takeaway
    assert len(figures.table_rows(points)) == len(points)
