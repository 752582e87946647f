"""Requirements on every page, each opened once with the shipped gallery."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.components.explain import ABOUT
from linearity_lab.components.exports import notebook, program
from linearity_lab.views.lazy.figures import KAPPA
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.pages import figure_words
from tests.dashboard.open_pages import checked, chooser, open_page, words

BY_NAME = {entry.name: entry for entry in PAGES}
WITHOUT_RESULT = {"overview", "live", "glossary", "own_data", "results"}
WITHOUT_FIGURE = {"glossary", "results", "live"}  # words only, a store with nothing computed, and a canvas
WITHOUT_EXPORT = {"overview", "live", "glossary"}
WITH_RESULT = [name for name in BY_NAME if name not in WITHOUT_RESULT]
WITH_PROGRAM = [name for name in WITH_RESULT if name != "linearity_report"]  # files of users are never stored
KEY = re.compile(r"^.*?ID-[0-9a-f]+-")  # before the name of a chart


@pytest.fixture(scope="module")
def exported() -> dict[str, dict[str, object]]:
    """Name of an export → its arguments."""
    return {}


@pytest.fixture(scope="module", params=BY_NAME)
def page(request, exported, module_jobs) -> Iterator[tuple[str, AppTest]]:
    """The name of a page, and the page as first opened."""
    from linearity_lab.components import export

    show = export.export_menu

    def spied(name, title, runs, charts, stored=None) -> None:
        exported[name] = {"runs": runs, "charts": dict(charts)}
        show(name, title, runs, charts, stored)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "export_menu", spied)
        exported.clear()
        yield request.param, open_page(request.param)


# Page → number of figures when opened, and a sentence beside them.
OPENED = {
    "architectures": (7, "What finite width changes."),
    "depth_width": (4, "bootstrap intervals"),
    "optimization": (4, "slope at least ρ = 0.2 everywhere"),
    "lazy": (5, "At ρ = 0.5: kernel change ΔK −0.01"),
    "generalization": (4, "Wilson's 95% intervals"),
    "dag": (2, "Precomputed figure"),  # ΔK, ‖H‖
}
# Page, preset, choices beside the figures → number of figures, and sentences.
CHOSEN = [
    ("optimization", "", {"output": "softmax"}, 4, "maps (1, …, 1) to 0"),
    ("lazy", "liu-lazy", {"measure": KAPPA.title, "output": "swish"}, 4, "at scale α = 1."),
    ("lazy", "", {"dialed": 0.25}, 5, "ρ = 0.25; expected exponent −0.25.", "At ρ = 0.25: kernel change ΔK −0.43"),
    ("generalization", "", {"dialed": 0.5}, 4, "Wilson's 95% intervals"),
]


def charts(app: AppTest) -> list:
    return [element.proto for element in app.get("plotly_chart")]


def test_first_visit_shows_the_figures_of_the_page(page):
    name, app = page
    assert ("Computed 20" in words(app)) == (name in WITH_RESULT)
    assert "Press Run: the points" not in words(app)
    assert app.get("plotly_chart") or app.get("image") or name in WITHOUT_FIGURE
    count, sentence = OPENED.get(name, (len(charts(app)), ""))
    assert len(charts(app)) == count
    assert sentence in words(app)


@pytest.mark.parametrize("chosen", CHOSEN, ids=lambda chosen: chosen[0])
def test_choices_redraw_the_figures(chosen):
    name, preset, choices, count, *sentences = chosen
    app = open_page(name, **({"preset": preset} if preset else {}))
    for key, value in choices.items():
        chooser(app, f"{name}.{key}").set_value(value)
    assert len(charts(checked(app.run()))) == count
    assert [sentence for sentence in sentences if sentence not in words(app)] == []


def test_export_appears_once_above_the_figures(page):
    """In a row of buttons; disabled while no runs are selected."""
    name, app = page
    menus = [block for block in app.get("popover") if block.proto.popover.label == "Export"]
    assert len(menus) == (name not in WITHOUT_EXPORT)
    if menus:
        assert menus[0].proto.popover.disabled == (name == "results")
        shown = list(app.main)  # each block precedes its elements
        assert any(is_row(block) and any(inside is menus[0] for inside in block) for block in shown)
        drawn = [index for index, element in enumerate(shown) if element.type == "plotly_chart"]
        results = [index for index in drawn if ".drawing" not in shown[index].proto.id]  # without drawings of the form
        assert next(index for index, each in enumerate(shown) if each is menus[0]) < min(results, default=len(shown))


def is_row(block) -> bool:
    container = block.proto.flex_container if block.type == "flex_container" else None
    return container is not None and container.direction == container.HORIZONTAL


@pytest.mark.parametrize("page", WITH_PROGRAM, indirect=True)
def test_everything_can_be_taken_along(page, exported):
    name, app = page
    labels = [button.proto.label for button in app.get("download_button")]
    for label in (
        "Figures, HTML", "Numbers, CSV", "Result, JSON", "Settings, JSON", "Program, Python", "Notebook, Jupyter",
    ):  # fmt: skip
        assert label in labels
    assert any(block.value.startswith("linearity-lab run ") for block in app.get("code"))
    (given,) = exported.values()
    for run in given["runs"]:
        assert compile(program(name, run.spec), name, "exec")
        assert json.loads(notebook(name, run.spec))["nbformat"] == 4


@pytest.mark.parametrize("page", WITH_RESULT, indirect=True)
def test_the_export_has_every_figure_of_the_results(page, exported):
    name, app = page
    keys = [KEY.sub("", chart.id) for chart in charts(app)]
    (given,) = exported.values()
    assert set(given["charts"]) == set(keys) != set(), name


def test_every_figure_has_its_takeaway_with_numbers_and_a_table(page):
    name, app = page
    sentences = [chart.alt for chart in charts(app)]
    sentences += [picture.alt for image in app.get("image") for picture in image.proto.imgs if picture.alt]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert any(character.isdigit() for character in sentence), (name, sentence)
        assert sentence.endswith("."), (name, sentence)
    tables = [popover for popover in app.get("popover") if popover.proto.popover.label == ABOUT]
    assert len(tables) >= len(charts(app))
    assert all(len(popover.dataframe) == 1 for popover in tables)
    for chart in charts(app):  # readable, and never sent to a cloud
        config = json.loads(chart.config)
        assert not config["showSendToCloud"]
        assert config["toImageButtonOptions"]["format"] in ("svg", "png")
        assert json.loads(chart.spec)["layout"]["height"] >= 180


def test_every_figure_and_interval_of_a_page_is_explained(page):
    """Figures have both answers and a visible formula; captions of fits name draws and runs."""
    name, app = page
    captions = [caption.value for caption in app.caption]
    for chart in charts(app):
        found = figure_words(key := KEY.sub("", chart.id))
        assert found.see.replace("\\", "") in words(app)
        assert found.finite_width.replace("\\", "") in words(app)
        assert not found.formula or found.formula in captions, f"{key} has no formula in sight"
    with_interval = sum(any(map(has_interval, json.loads(chart.spec)["data"])) for chart in charts(app))
    assert with_interval or name not in ("kernel_change", "architectures", "hessian", "lazy")
    lines = [line for caption in captions for line in caption.replace("\\", "").split("  \n")]
    over = tuple(f"95% confidence intervals over random initializations {each}" for each in ("(one", "and data"))
    reported = [line for line in lines if line.startswith(over)]
    assert len(reported) == with_interval
    assert all(re.search(r"(\d+ )?converged runs", line) for line in reported)


def has_interval(trace: dict) -> bool:
    in_name = "∝" in trace.get("name", "") and "±" in trace["name"]
    is_exponent = "exponent" in trace.get("hovertemplate", "")
    return in_name or (is_exponent and any(trace.get("error_y", {}).get("array", ())))
