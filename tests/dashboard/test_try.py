"""Suggested links work: a page with valid settings; a short run starts immediately."""

from __future__ import annotations

import pytest

from linearity_lab.components.explain import TRIED
from linearity_lab.components.gallery import gallery_result_of
from linearity_lab.components.run_panel import SHORT_S
from linearity_lab.view_modules import VIEWS
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.pages import Link, try_links
from ntk_core.runs import EXPERIMENTS, PRESETS, Spec, estimate
from ntk_core.settings.grammar import spec_from_texts
from tests.dashboard.open_pages import checked, open_page

WITH_TRY = [entry.name for entry in PAGES if entry.name in EXPERIMENTS]
LINKS = [link for path in VIEWS.glob("*/words.md") for link in try_links(path.parent.name)]


def spec_of(link: Link) -> Spec:
    """Spec of a link to an experiment's page, whose settings are used unchanged."""
    preset = link.query.get("preset", EXPERIMENTS[link.page].presets[0].name)
    assert preset in [each.name for each in EXPERIMENTS[link.page].presets], link
    texts = {name: text for name, text in link.query.items() if name != "preset"}
    spec, problems = spec_from_texts(texts, PRESETS[preset].spec)
    assert problems == (), link
    assert texts == {} or spec != PRESETS[preset].spec, f"{link} changes nothing"
    return spec


def test_every_page_with_a_run_proposes_two_or_three_links():
    assert len(WITH_TRY) >= 11
    assert {name: len(try_links(name)) for name in WITH_TRY if not 2 <= len(try_links(name)) <= 3} == {}
    labels = [link.label for name in WITH_TRY for link in try_links(name)]
    assert len(set(labels)) == len(labels)


def test_every_link_leads_to_a_page_with_valid_settings():
    names = {entry.name for entry in PAGES}
    assert {link.page for link in LINKS} <= names
    tried = [link for link in LINKS if link.query]
    for link in tried:
        spec_of(link)
    assert len(tried) >= 18


def test_links_show_stored_or_short_runs():
    slow = [
        (link.label, seconds)
        for link in LINKS
        if link.query and link.page in EXPERIMENTS
        for spec in [spec_of(link)]
        if gallery_result_of(spec) is None and (seconds := estimate(spec).seconds) > SHORT_S
    ]
    assert slow == []


@pytest.fixture
def tried(jobs):
    """A page as a link of what to try opens it."""

    def opened(**query: str):
        app = open_page("kernel_change", opened=False)
        app.session_state[TRIED] = "kernel_change"
        app.query_params = {name.replace("__", "."): text for name, text in query.items()}
        return checked(app.run())

    return opened


def test_a_short_run_begins_at_once_and_only_once(jobs, tried):
    app = tried(widths="30,100", num_seeds="2")
    assert [spec.widths for spec in jobs.submitted] == [(30, 100)]
    checked(app.run())
    assert "job" in app.query_params
    app.query_params = {"widths": "30,100", "num_seeds": "3"}
    checked(app.run())
    assert len(jobs.submitted) == 1, "a URL alone starts nothing"


def test_neither_what_the_gallery_shows_nor_a_long_run_begins(jobs, tried):
    tried(preset="liu-fig2")
    tried(widths="1000,10000", architecture__depth="2")
    assert jobs.submitted == []
