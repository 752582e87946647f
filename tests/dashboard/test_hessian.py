"""Figures of Hessians: exponents, bounds, balls, blocks, visible unknowns; choices of the page."""

import re

import numpy as np
import pytest

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.hessian import norm_figures as figures
from linearity_lab.experiments.hessian import part_figures
from linearity_lab.experiments.hessian.network import TEMPLATES, templates
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.runs import PRESETS
from linearity_lab.settings.grammar import spec_from_texts
from ntk_core.fits import PowerLaw, becomes_linear
from tests.dashboard.open_pages import address, checked, chooser, form_sentences, open_page, words
from tests.dashboard.test_figures import numbers, one

LINEAR, NONLINEAR, CNN = "fully-connected", "fully-connected-swish", "convnet"
TABLE = gallery_result("liu-table1").points
BOUNDS = gallery_result("liu-nonlinear-output").points
BALLS = gallery_result("liu-ball").points


def line(chart, name) -> dict:
    return one(chart.figure, legendgroup=name, mode="lines+markers")


def changed(points, width: int, **changes):
    """Change all runs of one width."""
    return [
        point.model_copy(
            update={"runs": tuple(run.model_copy(update=changes) for run in point.runs)}
        )
        if point.width == width
        else point
        for point in points
    ]


def test_lines_run_through_means_at_each_networks_width():
    drawn = figures.against_width(TABLE)
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500, 1000])
    np.testing.assert_array_equal(numbers(line(drawn, CNN)["x"]), [8, 17, 42, 83])
    assert "channels" in drawn.figure.layout.xaxis.title.text
    points = figures.of_line(TABLE, LINEAR)
    for view, of in (
        ("‖H‖", lambda point, run: run.norm),
        ("√m ‖H‖", lambda point, run: run.norm * point.width**0.5),
        ("‖H‖ / ‖∇f‖²", lambda point, run: run.norm / run.kernel),
    ):
        means = [np.mean([of(point, run) for run in point.runs]) for point in points]
        np.testing.assert_allclose(
            numbers(line(figures.against_width(TABLE, view), LINEAR)["y"]), means
        )


def test_unconverged_norms_are_open_markers_in_no_mean_and_named():
    drawn = figures.against_width(changed(TABLE, 1000, converged=False))
    markers = one(drawn.figure, legendgroup=LINEAR, mode="markers")
    assert markers["marker"]["symbol"][-12:] == ["circle-open"] * 12
    np.testing.assert_array_equal(numbers(line(drawn, LINEAR)["x"]), [100, 200, 500])
    (sentence,) = [
        each for each in drawn.caption if ": fully connected has unconverged norms" in each
    ]
    assert "at m = 1,000 (seeds 0, 1, 2" in sentence


def test_table_has_measured_exponents_and_verdicts():
    rows = {row["Network"]: row for row in figures.table_rows(TABLE)}
    assert rows["fully connected"]["‖H‖"].startswith("m^{−0.")
    assert [row["Becomes linear?"] for row in rows.values()] == [
        row["In the paper"] for row in rows.values()
    ]
    assert "m = 83" in rows["CNN"]["ΔK at the largest width"]
    three_widths = figures.table_rows([point for point in TABLE if point.width > 100])
    assert {row["Becomes linear?"] for row in three_widths} == {"undecided"}
    assert "no interval (needs 4 widths)" in three_widths[0]["‖H‖"]


def test_verdict_needs_the_whole_interval_on_one_side():
    for exponent, interval, verdict in (
        (-0.5, 0.1, "yes"),
        (0.0, 0.1, "no"),
        (-0.3, 0.1, "undecided"),
        (-0.5, float("nan"), "undecided"),
    ):
        assert becomes_linear(PowerLaw(exponent, interval, 1.0, 0.95, 10, 0)) == verdict


def test_measured_norm_is_between_its_bounds():
    above, below = (part_figures.bounded(BOUNDS, name) for name in (LINEAR, NONLINEAR))
    for chart, upper, lower in ((above, "bound", "norm"), (below, "norm", "lower")):
        high, low = (line(chart, name) for name in (upper, lower))
        # A logarithmic axis has no lower bound below 0.
        shared = np.isin(numbers(high["x"]), numbers(low["x"]))
        assert np.all(numbers(high["y"])[shared] > numbers(low["y"]))
    assert part_figures.bounded(TABLE, CNN) is None
    assert part_figures.quantities(TABLE, CNN) is None


@pytest.mark.parametrize("quantity", ["hessian", "kernel_change"])
def test_balls_show_the_bound_above_random_directions(quantity):
    assert part_figures.radii_of(BALLS) == (0.5, 1.0, 2.0, 4.0)
    small, large = (part_figures.ball(BALLS, radius, quantity, 4) for radius in (0.5, 2.0))
    for drawn in (small, large):
        assert np.all(
            numbers(line(drawn, LINEAR)["y"]) > numbers(line(drawn, f"{LINEAR}_random")["y"])
        )
        assert "at least" in line(drawn, LINEAR)["name"]
    assert np.all(numbers(line(large, LINEAR)["y"]) > numbers(line(small, LINEAR)["y"]))


CHOSEN, ALL = "hessian.networks.chosen", "hessian.networks.all."

TABLE_1 = HessianSpec.model_validate(PRESETS["liu-table1"].spec)


def tables(app) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<table" in element.proto.body]


def test_table_views_radii_and_networks_can_be_chosen():
    app = open_page("hessian")
    (table,) = tables(app)
    verdicts = re.findall(r'data-label="Becomes linear\?"><span>(\w+)', table)
    assert verdicts == re.findall(r'data-label="In the paper"><span>(\w+)', table) != []
    app.query_params = {"preset": "liu-ball"}
    checked(app.run())
    chooser(app, "hessian.view").set_value("√m ‖H‖")
    app.select_slider(key="hessian.radius").set_value(2.0)
    assert "Ball of radius R = 2 around w₀" in words(checked(app.run()))
    app.query_params = {"preset": "relu-and-tanh"}
    assert "With ReLU, ‖H‖ is that of the almost-everywhere Hessian." in words(checked(app.run()))
    assert "yes (almost everywhere)" in tables(app)[0]


def test_networks_are_chosen_and_edited_together_or_singly():
    def spec_of(app) -> HessianSpec:
        spec, problems = spec_from_texts(address(app), TABLE_1)
        assert problems == ()
        return spec

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
    app.selectbox(key="hessian.networks.one").set_value(1)
    checked(app.run()).number_input(key="hessian.networks.1.depth").set_value(5)
    checked(app.run())
    assert [network.depth for network in spec_of(app).networks[:2]] == [4, 5]
    app.multiselect(key=CHOSEN).set_value([])
    (sentence,) = form_sentences(checked(app.run()))
    assert "1 to 12 groups of settings" in sentence
