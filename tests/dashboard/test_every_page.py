"""Requirements on every page, each opened once with the shipped gallery."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.charts.chart import VEILED_KEY
from linearity_lab.charts.vector import letters
from linearity_lab.dashboard.explain import ABOUT
from linearity_lab.dashboard.export_formats import notebook, program
from linearity_lab.dashboard.live import HOME_NAME, HOME_TOUR
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.overview.page import STARTING_POINTS, page_thumbnail
from linearity_lab.experiments.lazy.sweep_figures import KAPPA
from linearity_lab.runs import PRESETS
from linearity_lab.words.pages import figure_words, veiled_words
from tests.dashboard.open_pages import checked, chooser, open_page, words

BY_NAME = {entry.name: entry for entry in PAGES}
WITHOUT_RESULT = {"overview", "live", "glossary", "own_data", "results"}
# Words only, a store with nothing computed, and a canvas.
WITHOUT_FIGURE = {
    "glossary",
    "results",
    "live",
}
WITHOUT_EXPORT = {"overview", "live", "glossary"}
WITH_RESULT = [name for name in BY_NAME if name not in WITHOUT_RESULT]
KEY = re.compile(r"^.*?ID-[0-9a-f]+-")  # before the name of a chart


@pytest.fixture(scope="module")
def exported() -> dict[str, dict[str, object]]:
    """Name of an export → its arguments."""
    return {}


@pytest.fixture(scope="module", params=BY_NAME)
def page(request, exported, module_jobs) -> Iterator[tuple[str, AppTest]]:
    """The name of a page, and the page as first opened."""
    from linearity_lab.dashboard import export_menu

    show = export_menu.export_menu

    def spied(name, title, runs, charts, stored=None) -> None:
        exported[name] = {"runs": runs, "charts": dict(charts)}
        show(name, title, runs, charts, stored)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_menu, "export_menu", spied)
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
CHOSEN = [
    ("lazy", "liu-lazy", {"measure": KAPPA.title, "output": "swish"}, 4, "at scale α = 1."),
    (
        "lazy",
        "",
        {"dialed": 0.25},
        5,
        "ρ = 0.25; expected exponent −0.25.",
        "At ρ = 0.25: kernel change ΔK −0.43",
    ),
    (
        "early_time",
        "",
        {"view": "residual", "quantity": "departure time"},
        3,
        "The test inputs span ",
    ),
    ("dynamics", "beyond-gradient-descent", {"method": "adam", "width": 30, "axis": "time"}, 4, ""),
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
    """Disabled while no runs are selected."""
    name, app = page
    menus = [block for block in app.get("popover") if block.proto.popover.label == "Export"]
    assert len(menus) == (name not in WITHOUT_EXPORT)
    if menus:
        assert menus[0].proto.popover.disabled == (name == "results")
        shown = list(app.main)  # each block precedes its elements
        # without drawings of the form
        figures = [
            at
            for at, each in enumerate(shown)
            if each.type == "plotly_chart" and ".drawing" not in each.proto.id
        ]
        assert next(at for at, each in enumerate(shown) if each is menus[0]) < min(
            figures, default=len(shown)
        )


@pytest.mark.parametrize("page", WITH_RESULT, indirect=True)
def test_everything_can_be_taken_along(page, exported):
    name, app = page
    (given,) = exported.values()
    assert set(given["charts"]) == {KEY.sub("", chart.id) for chart in charts(app)} != set()
    labels = {button.proto.label for button in app.get("download_button")}
    taken = {
        "Figures, HTML and PDF",
        "Numbers, CSV",
        "Result, JSON",
        "Settings, JSON",
        "Program, Python",
        "Notebook, Jupyter",
    }
    if name != "linearity_report":  # files of users are never stored
        assert labels >= taken
        assert any(block.value.startswith("linearity-lab run ") for block in app.get("code"))
        for run in given["runs"]:
            assert compile(program(name, run.spec), name, "exec")
            assert json.loads(notebook(name, run.spec))["nbformat"] == 4


def test_every_figure_has_its_takeaway_and_a_table(page):
    name, app = page
    sentences = [chart.alt for chart in charts(app)]
    sentences += [
        picture.alt for image in app.get("image") for picture in image.proto.imgs if picture.alt
    ]
    assert len(set(sentences)) == len(sentences)
    assert [
        each for each in sentences if not (each.endswith(".") and any(map(str.isdigit, each)))
    ] == [], name
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
        key = KEY.sub("", chart.id)
        is_veiled = key.endswith(VEILED_KEY)  # to be predicted first
        found = veiled_words(key.removesuffix(VEILED_KEY)) if is_veiled else figure_words(key)
        assert found.see.replace("\\", "") in words(app)
        assert found.finite_width.replace("\\", "") in words(app)
        assert not found.formula or found.formula in captions, f"{key} has no formula in sight"
    with_interval = sum(
        any(map(has_interval, json.loads(chart.spec)["data"])) for chart in charts(app)
    )
    assert with_interval or name not in ("kernel_change", "architectures", "hessian", "lazy")
    lines = [line for caption in captions for line in caption.replace("\\", "").split("  \n")]
    over = tuple(
        f"95% confidence intervals over random initializations {each}"
        for each in ("(one", "and data")
    )
    reported = [line for line in lines if line.startswith(over)]
    assert len(reported) == with_interval
    assert all(re.search(r"(\d+ )?converged runs", line) for line in reported)


def has_interval(trace: dict) -> bool:
    in_name = "∝" in trace.get("name", "") and "±" in trace["name"]
    is_exponent = "exponent" in trace.get("hovertemplate", "")
    return in_name or (is_exponent and any(trace.get("error_y", {}).get("array", ())))


DRAWN = [name for name in BY_NAME if name not in ("overview", "glossary", "results")]


def test_home_has_starting_points_and_a_card_per_page():
    app = open_page("overview")
    found = (each.proto for each in app.get("bidi_component"))
    (data,) = (json.loads(each.json) for each in found if each.component_name.endswith(HOME_NAME))
    assert (data["settings"]["width"], tuple(data["tour"])) == (HOME_TOUR[0], HOME_TOUR)
    links = [link.proto for link in app.get("page_link")]
    for purpose, query in STARTING_POINTS.values():
        (link,) = [each for each in links if each.label == f"**{purpose}**"]
        assert dict(part.split("=") for part in link.query_string.split("&") if part) == query
        assert query.get("preset", "liu-fig1-left") in PRESETS
    cards = {link.label: link.help for link in links}
    for name in set(DRAWN) - set(STARTING_POINTS):
        assert cards[BY_NAME[name].title] == BY_NAME[name].question


def test_pictures_of_pages_are_drawn_from_the_gallery():
    for page in DRAWN:
        svg = page_thumbnail(BY_NAME[page])
        assert svg != letters(BY_NAME[page].title)
        assert len(list(ET.fromstring(svg))) >= 2  # axes and a curve
        assert "nan" not in svg


def test_without_a_gallery_the_overview_still_leads_everywhere(gallery):
    app = open_page("overview")
    assert len(app.get("page_link")) == len(DRAWN)
    assert page_thumbnail(BY_NAME["kernel_change"]) == letters("Kernel")
