"""What every page owes to those who look at it: each page is opened once, with the gallery that ships."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.explain import ABOUT
from dashboard.views.navigation import PAGES
from tests.dashboard.open_pages import checked, open_page, words

BY_NAME = {entry.name: entry for entry in PAGES}
WITHOUT_RESULT = {"overview", "live", "glossary", "own_data", "results"}
WITH_RESULT = [name for name in BY_NAME if name not in WITHOUT_RESULT]


@pytest.fixture(scope="module")
def exported() -> dict[str, dict[str, object]]:
    """Name of an export → what it was given."""
    return {}


@pytest.fixture(scope="module", params=BY_NAME)
def page(request, exported, opening_through_the_menu) -> Iterator[tuple[str, AppTest]]:
    """The name of a page, and the page with what it shows at first."""
    from dashboard.components import export

    show = export.export_menu

    def spied(name, title, runs, figures) -> None:
        exported[name] = {"runs": runs, "figures": dict(figures)}
        show(name, title, runs, figures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "export_menu", spied)
        app = open_page(request.param)
        exported.clear()  # of the overview, through which every page is opened
        yield request.param, checked(app.run())


def charts(app: AppTest) -> list:
    return [element.proto for element in app.get("plotly_chart")]


def test_the_other_pages_show_a_result(page):
    name, app = page
    assert ("Computed 20" in words(app)) == (name in WITH_RESULT)


@pytest.mark.parametrize("page", WITH_RESULT, indirect=True)
def test_everything_can_be_taken_along(page, exported):
    name, app = page
    labels = [button.proto.label for button in app.get("download_button")]
    for label in ("Figures, HTML", "Numbers, CSV", "Result, JSON", "Settings, JSON"):
        assert label in labels
    codes = [block.value for block in app.get("code")]
    assert any(code.startswith("python -m ntk_core run ") for code in codes)
    assert any("ntk_core.run(spec)" in code and compile(code, name, "exec") for code in codes)
    assert exported


@pytest.mark.parametrize("page", WITH_RESULT, indirect=True)
def test_the_export_has_every_figure_of_the_results(page, exported):
    name, app = page
    drawings = sum(".drawing" in chart.id for chart in charts(app))
    assert sum(len(each["figures"]) for each in exported.values()) >= max(1, len(charts(app)) - drawings), name


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
    for popover in tables:
        assert len(popover.dataframe) == 1


def test_every_figure_is_readable_and_keeps_to_itself(page):
    _, app = page
    for chart in charts(app):
        config = json.loads(chart.config)
        assert not config["showSendToCloud"]
        assert config["toImageButtonOptions"]["format"] in ("svg", "png")
        layout = json.loads(chart.spec)["layout"]
        assert layout["height"] >= 180
