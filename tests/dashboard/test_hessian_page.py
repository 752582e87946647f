"""The page of Hessians through app.py."""

from __future__ import annotations

import re

import pytest

from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.runs import PRESETS
from ntk_core.settings.fields import differences, text_of
from tests.dashboard.made_hessians import make_hessian_points, make_hessian_result, make_point
from tests.dashboard.open_pages import checked, open_page, words

PREFIX = "hessian."
HESSIANS = {name: preset for name, preset in PRESETS.items() if preset.spec.experiment == "hessian"}


@pytest.fixture(autouse=True)
def _no_workers_and_an_empty_gallery(jobs, gallery, through_the_menu):
    return


def tables(app) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<table" in element.proto.body]


def test_precomputed_figures_stand_beside_the_table_with_verdicts(gallery):
    gallery("liu-table1", make_hessian_result(make_hessian_points()))
    app = open_page("hessian")
    assert "Precomputed figure" in words(app)
    (table,) = tables(app)
    assert re.findall(r'data-label="Becomes linear\?"><span>(\w+)', table) == ["yes", "no", "yes"]
    assert "<sup>−0.50 ± " in table
    assert '<th scope="row">linear output</th>' in table
    # norms and kernel change, two balls, bounds, layer quantities, blocks
    assert len(app.get("plotly_chart")) == 7


def test_view_and_network_and_radius_can_be_chosen(gallery):
    gallery("liu-table1", make_hessian_result(make_hessian_points()))
    app = open_page("hessian")
    app.selectbox(key=PREFIX + "view").set_value("√m ‖H‖")
    app.select_slider(key=PREFIX + "radius").set_value(2.0)
    assert "Ball of radius R = 2 around w₀" in words(checked(app.run()))
    app.selectbox(key=PREFIX + "one").select_index(1)  # the nonlinear output: neither layer quantities nor blocks
    assert len(checked(app.run()).get("plotly_chart")) == 5
    assert "above its lower bound in 9 of 9 runs" in words(app)


def test_choosing_relu_explains_why_its_hessian_is_not_defined_and_offers_smooth_activations():
    app = open_page("hessian")
    app.selectbox(key=PREFIX + "activation").set_value("relu")
    (sentence,) = [each.value.replace("\\", "") for each in checked(app.run()).sidebar.error]
    assert sentence.startswith("Activation σ: relu cannot be used; use a smooth function (tanh, erf, ")
    assert "second derivative of ReLU is 0 almost everywhere" in sentence
    assert app.button(key=PREFIX + "run").disabled
    assert "Why not ReLU?" not in words(app)  # no figure, so its words are not there either
    app.selectbox(key=PREFIX + "activation").set_value("gelu")
    assert not checked(app.run()).sidebar.error
    assert not app.button(key=PREFIX + "run").disabled


def test_unconverged_norms_are_named_below_the_figure(jobs):
    points = (make_point("linear", 100), make_point("linear", 1000, converged=False))
    spec = HessianSpec(networks=("linear",), widths=(100, 1000))
    app = open_page("hessian", job=jobs.add(spec, status="completed", points=points))
    assert "may be larger: linear output at m = 1,000 (seed 0, 1, 2)" in words(app)


def test_points_of_a_running_job_are_drawn_network_by_network(jobs):
    points = make_hessian_points(widths=(100,))[:2]
    app = open_page("hessian", job=jobs.add(HessianSpec(), points=points))
    (progress,) = app.get("progress")
    assert progress.proto.text.startswith("2 of 18 points")
    assert [table.count('scope="row"') for table in tables(app)] == [2]


@pytest.mark.parametrize("preset", HESSIANS.values(), ids=list(HESSIANS))
def test_presets_and_their_paper_sizes_come_from_the_url(preset):
    query = {name.replace(".", "__"): text for name, text in differences(preset.paper_spec, preset.spec).items()}
    app = open_page("hessian", preset=preset.name, **query)
    assert app.text_input(key=PREFIX + "widths").value == text_of(preset.paper_spec.widths)
    assert not [*app.sidebar.error, *app.sidebar.warning]
