"""The overview: a training network, questions, and a card for every page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from linearity_lab.charts.vector import letters
from linearity_lab.components.live import HOME_NAME, HOME_TOUR
from linearity_lab.views.navigation import PAGES
from linearity_lab.views.overview.page import STARTING_POINTS, page_thumbnail
from linearity_lab.words.pages import SHOWS, prose
from ntk_core.runs import PRESETS
from tests.dashboard.open_pages import open_page, words

BY_NAME = {page.name: page for page in PAGES}
DRAWN = [name for name in BY_NAME if name not in ("overview", "glossary", "results")]


def test_home_trains_two_outputs_at_the_widths_of_its_tour():
    found = (each.proto for each in open_page("overview").get("bidi_component"))
    (data,) = (json.loads(each.json) for each in found if each.component_name.endswith(HOME_NAME))
    assert (data["outputs"], tuple(data["tour"])) == (["linear", "swish"], HOME_TOUR)
    assert data["settings"]["width"] == HOME_TOUR[0]
    text = prose("overview", SHOWS)
    assert len(text.split()) <= 60
    assert "$" not in text
    assert "tangent kernel" in text


def test_three_starting_points_and_a_card_per_page_with_figures():
    assert tuple(STARTING_POINTS) == ("lecture", "kernel_change", "learning_rate")
    app = open_page("overview")
    links = [link.proto for link in app.get("page_link")]
    for purpose, query in STARTING_POINTS.values():
        (link,) = [each for each in links if each.label == f"**{purpose}**"]
        assert dict(part.split("=") for part in link.query_string.split("&") if part) == query
        assert query.get("preset", "liu-fig1-left") in PRESETS
        assert prose("overview", purpose) in words(app)
    cards = {link.label: link.help for link in links}
    for name in set(DRAWN) - set(STARTING_POINTS):
        assert cards[BY_NAME[name].title] == BY_NAME[name].question


@pytest.mark.parametrize("page", DRAWN)
def test_pictures_of_pages_are_drawn_from_the_gallery(page):
    svg = page_thumbnail(BY_NAME[page])
    assert svg != letters(BY_NAME[page].title)
    root = ET.fromstring(svg)
    assert len(list(root)) >= 3
    assert "nan" not in svg
    assert len(svg) < 15_000


def test_without_a_gallery_the_overview_still_leads_everywhere(gallery):
    app = open_page("overview")
    assert len(app.get("page_link")) == len(DRAWN)
    assert page_thumbnail(BY_NAME["kernel_change"]) == letters("Kernel")
