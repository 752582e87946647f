"""The page of Hessians through app.py."""

from __future__ import annotations

import re

from linearity_lab.components.gallery import gallery_result
from ntk_core.experiments.hessian.network import TEMPLATES, templates
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import spec_from_texts
from tests.dashboard.open_pages import address, bars, checked, chooser, form_sentences, open_page, words

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
