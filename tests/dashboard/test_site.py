"""Figures of the static site and single embedded figures against those of the app."""

import json
import re
from pathlib import Path

import pytest
import streamlit as st
from plotly.offline import get_plotlyjs_version
from streamlit.testing.v1 import AppTest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.site import DOCUMENTATION, MENU, PLOTLY, _page, gallery_figures
from linearity_lab.site._figures import lecture_figure
from linearity_lab.views.lecture.steps import STEPS
from ntk_core.cli import main
from ntk_core.runs import EXPERIMENTS
from tests.dashboard.open_pages import checked, form_sentences, open_page

ROOT = Path(__file__).resolve().parents[2]


WITH_SLIDER = {"hessian": "liu-ball", "lazy": "richness-dial"}  # above their figures


def read(script: str, name: str) -> dict:
    """Data of a figure in the script of its page."""
    found = re.fullmatch(r"lab\.take\((\".*?\"), (.*)\);\n", script, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == name
    return json.loads(found[2])


def bare(figure: dict) -> dict:
    """Traces and layout of a figure, without Plotly's template."""
    layout = {name: value for name, value in figure["layout"].items() if name != "template"}
    return {"data": figure["data"], "layout": layout, "frames": figure.get("frames", [])}


def written(figure) -> list[dict]:
    data = read(figure.script(), figure.name)
    return [bare(chart["figure"]) for chart in data["options"][data["start"]]["charts"]]


@pytest.mark.slow
@pytest.mark.parametrize("page", EXPERIMENTS)
def test_site_figures_equal_those_of_the_app(page):
    preset = WITH_SLIDER.get(page, EXPERIMENTS[page].presets[0].name)
    of_site = [drawn for figure in gallery_figures([preset]) for drawn in written(figure)]
    charts = open_page(page, opened=False, preset=preset).get("plotly_chart")
    in_app = [bare(json.loads(each.proto.spec)) for each in charts]
    assert [each for each in of_site if each not in in_app] == []
    assert len(in_app) - len(of_site) in (0, 1, 2), "networks are drawn, too"


def test_site_step_hides_its_answer_and_then_equals_the_app():
    step = STEPS[1]
    results = {name: gallery_result(name) for name in step.gallery}
    data = read(lecture_figure(step, "").script(), f"lecture.{step.name}")
    drawn = [step.draw(results, option, True) for option in step.control.options]
    options = [bare(each["charts"][0]["figure"]) for each in data["options"]]
    assert options == [bare(json.loads(each.figure.to_json())) for each in drawn]
    whole, veiled = (
        sum(len(trace.get("y") or ()) for trace in traces)
        for traces in (options[data["start"]]["data"], data["veiled"]["figure"]["data"])
    )
    assert veiled < whole


def test_plotly_of_the_site_is_of_the_version_that_draws_the_app():
    ours = re.search(r"plotly\.js \(cartesian - minified\) v(\d+)", PLOTLY.read_text(encoding="utf-8")[:200])
    assert ours is not None
    assert ours[1] == get_plotlyjs_version().partition(".")[0]


def test_formulas_and_tables_become_html():
    output = _page.html_of("At $m\\ge 10$ it **falls** like $$m^{-1/2}$$.")
    assert output.startswith("<p>At <math")
    assert output.count("<math") == 2
    assert "$" not in output
    table = _page.html_of("| Claim | Found |\n| --- | --- |\n| [one](../a.md) | <b> |", link=lambda _: None)
    assert '<td data-label="Claim">one</td><td data-label="Found">&lt;b&gt;</td>' in table.replace("\n", "")


def test_all_pages_share_one_menu():
    """Including the template for pages of the documentation; the menu marks the open page."""
    framed = _page.page("frame.html", MENU | DOCUMENTATION, title="Title", here="live.html", up="../")
    assert re.findall(r'<a href="\.\./([^"]+\.html)"[^>]*>\w', framed) == [*MENU, *DOCUMENTATION]
    assert "docs/" not in _page.page("frame.html", MENU, title="Title")
    template = (ROOT / "docs/_templates/page.html").read_text(encoding="utf-8")
    assert set(re.findall(r'"(docs/[^"]+)"', template)) == set(DOCUMENTATION)
    assert "site_menu.items()" in template


def test_a_folder_of_something_else_is_refused_in_one_sentence(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["site", "--out", str(tmp_path)]) == 2
    assert "a new or empty folder" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def embedded(**query: str) -> AppTest:
    app = AppTest.from_string("from linearity_lab.views.embed.page import show\nshow()", default_timeout=30)
    app.query_params.update(query)
    return checked(app.run())


def test_embedded_figure_keeps_its_own_choices():
    first = embedded(figure="liu-fig1-left")
    assert len(first.get("plotly_chart")) == 1
    assert not [*first.title, *first.button, *first.selectbox]
    along = embedded(figure="liu-fig1-left.along-training")
    (before,) = along.get("plotly_chart")
    along.selectbox(key="kernel_change.shown_width").select(30)
    (after,) = checked(along.run()).get("plotly_chart")
    assert after.proto.spec != before.proto.spec
    assert not [*along.button, *along.get("download_button")]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"figure": "liu-fig1-lefft"}, "such as liu-fig1-left"),
        ({}, "the name of a figure, such as"),
        ({"figure": "liu-fig1-left.training"}, "liu-fig1-left.along-training"),
        ({"figure": "<script>" * 500}, "the name of a figure, such as"),
        ({"figure": "liu-fig2", "theme": "dark"}, "only figure"),
    ],
)
def test_unknown_name_suggests_the_nearest(query, shown):
    app = embedded(**query)
    (sentence,) = form_sentences(app)
    assert shown in sentence
    assert len(sentence) < 400
    assert len(app.get("plotly_chart")) == ("theme" in query)


def test_embedded_page_shows_its_figure_alone(monkeypatch):
    monkeypatch.setattr(type(st.context), "is_embedded", property(lambda _: True))
    app = open_page("kernel_change", opened=False, preset="liu-fig1-left", tab="Along training")
    assert len(app.get("plotly_chart")) == 1
    assert [each.key for each in app.selectbox] == ["kernel_change.shown_width", "kernel_change.one_seed"]
    assert not [*app.title, *app.button, *app.get("download_button"), *app.get("popover")]
