"""The page of Hessians through app.py."""

from __future__ import annotations

import re

import pytest

from ntk_core.experiments.hessian.network import TEMPLATES, templates
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import spec_from_texts
from tests.dashboard.made_hessians import make_hessian_points, make_hessian_result
from tests.dashboard.open_pages import bars, checked, chooser, form_sentences, open_page, words

PREFIX = "hessian."
CHOSEN, ALL, ONE = "hessian.networks.chosen", "hessian.networks.all.", "hessian.networks.one"
HESSIANS = {name: preset for name, preset in PRESETS.items() if preset.spec.experiment == "hessian"}
TABLE_1 = HessianSpec.model_validate(HESSIANS["liu-table1"].spec)


pytestmark = pytest.mark.usefixtures("gallery", "through_the_menu")


def tables(app) -> list[str]:
    return [element.proto.body for element in app.get("html") if "<table" in element.proto.body]


def test_precomputed_figures_are_beside_the_table(gallery):
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
    chooser(app, PREFIX + "view").set_value("√m ‖H‖")
    app.select_slider(key=PREFIX + "radius").set_value(2.0)
    assert "Ball of radius R = 2 around w₀" in words(checked(app.run()))
    chooser(app, PREFIX + "one").set_value(
        "fully-connected-swish"
    )  # the nonlinear output: neither layer quantities nor blocks
    assert len(checked(app.run()).get("plotly_chart")) == 5
    assert "above its lower bound in 12 of 12 runs" in words(app)


def test_relu_figures_report_what_the_hessian_misses(gallery):
    points = make_hessian_points()
    relu = tuple(
        point.model_copy(update={"network": point.network.model_copy(update={"activation": "relu"})})
        for point in points
    )
    gallery("liu-table1", make_hessian_result(relu))
    app = open_page("hessian")
    shown = words(app)
    assert "With ReLU, ‖H‖ is that of the almost-everywhere Hessian." in shown
    assert (
        shown.count("It misses the kinks, which contain the curvature within a layer, so ‖H‖R does not bound") >= 3
    )  # norms and both balls
    (table,) = tables(app)
    assert "yes (almost everywhere)" in table
    assert "Õ" not in table  # the paper's table is about smooth activations
    app.selectbox(key=ALL + "activation").set_value("relu")
    assert form_sentences(checked(app.run())) == []
    assert not app.button(key=PREFIX + "run").disabled


def spec_of(app) -> HessianSpec:
    """Spec of the page's URL."""
    texts = {name: text if isinstance(text, str) else text[0] for name, text in app.query_params.items()}
    spec, problems = spec_from_texts(texts, TABLE_1)
    assert problems == ()
    return spec


def test_networks_are_chosen_and_edited_together_or_singly():
    app = open_page("hessian")
    assert app.multiselect(key=CHOSEN).value == list(TABLE_1.lines())
    app.multiselect(key=CHOSEN).set_value(["bottleneck", "fully-connected-swish", "composed", "shallow"])
    checked(app.run())
    assert spec_of(app).networks == tuple(
        TEMPLATES[name] for name in ("bottleneck", "fully-connected-swish", "composed", "shallow")
    )
    app.number_input(key=ALL + "layers").set_value(3)
    checked(app.run())
    app.selectbox(key=ALL + "output").set_value("sigmoid")
    checked(app.run())
    shared = {"layers": 3, "output": "sigmoid"}
    assert spec_of(app).networks == templates("bottleneck", "fully-connected-swish", "composed", "shallow", **shared)
    app.selectbox(key=ONE).set_value(1)
    checked(app.run())
    app.number_input(key=PREFIX + "networks.1.depth").set_value(5)
    checked(app.run())
    assert [network.depth for network in spec_of(app).networks[:2]] == [4, 5]
    app.multiselect(key=CHOSEN).set_value([])
    (sentence,) = form_sentences(checked(app.run()))
    assert "1 to 12 groups of settings" in sentence
    app.multiselect(key=CHOSEN).set_value(["resnet"])
    assert form_sentences(checked(app.run())) == []
    assert spec_of(app).networks == (TEMPLATES["resnet"],)


def test_points_of_a_running_job_are_drawn_network_by_network(jobs):
    points = make_hessian_points(widths=(100,))[:2]
    app = open_page("hessian", job=jobs.add(HessianSpec(), points=points))
    (progress,) = bars(app)
    assert progress.startswith("2 of 24 points")
    assert [table.count('scope="row"') for table in tables(app)] == [2]
