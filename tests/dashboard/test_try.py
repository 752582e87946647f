"""What pages propose to try are links that work: a page, and settings that it can use as they are."""

from __future__ import annotations

from dashboard.views.navigation import PAGES
from dashboard.words.pages import VIEWS, try_links
from ntk_core.runs import EXPERIMENTS, PRESETS
from ntk_core.settings.fields import spec_from_texts

WITH_TRY = [entry.name for entry in PAGES if entry.name in EXPERIMENTS]


def test_every_page_of_an_experiment_proposes_two_or_three_links():
    assert len(WITH_TRY) >= 10
    assert {name: len(try_links(name)) for name in WITH_TRY if not 2 <= len(try_links(name)) <= 3} == {}
    labels = [link.label for name in WITH_TRY for link in try_links(name)]
    assert len(set(labels)) == len(labels)


def test_every_link_leads_to_a_page_with_settings_that_it_takes_as_they_are():
    names = {entry.name for entry in PAGES}
    tried = 0
    for link in (link for path in VIEWS.glob("*/words.md") for link in try_links(path.parent.name)):
        assert link.page in names, link
        if not link.query:
            continue
        preset = link.query.get("preset", EXPERIMENTS[link.page].presets[0].name)
        assert preset in [each.name for each in EXPERIMENTS[link.page].presets], link
        texts = {name: text for name, text in link.query.items() if name != "preset"}
        spec, problems = spec_from_texts(texts, PRESETS[preset].spec)
        assert problems == (), link
        assert texts == {} or spec != PRESETS[preset].spec, f"{link} changes nothing"
        tried += 1
    assert tried >= 15
