"""Starting runs: long ones need confirmation, short ones start from a link, stored ones are reused."""

from __future__ import annotations

from typing import Any

import pytest

from linearity_lab.components.explain import TRIED
from linearity_lab.components.gallery import gallery_result_of
from linearity_lab.components.run_panel import ASK_S, SHORT_S
from linearity_lab.components.smaller_runs import quick
from linearity_lab.jobs import Jobs
from linearity_lab.view_modules import VIEWS
from linearity_lab.views.navigation import PAGES
from linearity_lab.words.pages import Link, try_links
from ntk_core.runs import EXPERIMENTS, PRESETS, Spec, estimate, spec_digest
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import differences, spec_from_texts, with_settings
from tests.dashboard.open_pages import checked, open_page, words

PAGE = "kernel_change"
PRESET = PRESETS["liu-fig1-left"].spec
LONG: Any = with_settings(PRESET, {"num_seeds": 100, "widths": (30, 100, 300, 1000, 3000, 10_000, 30_000)})
SHORT = with_settings(PRESET, {"num_seeds": 2, "widths": (3, 10)})


@pytest.fixture(autouse=True)
def _any_time(monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_PROFILE", raising=False)


def press(app, name):
    return checked(app.button(key=f"{PAGE}.{name}").click().run())


def names(app):
    return {button.key for button in app.button}


def test_long_run_starts_after_confirmation(jobs, gallery):
    assert estimate(LONG).seconds > ASK_S
    app = press(open_page(PAGE, **differences(LONG, PRESET)), "run")  # Ctrl+Enter is this button
    assert jobs.submitted == []
    assert "should take about" in words(app)
    app.number_input(key=f"{PAGE}.num_seeds").set_value(99)
    assert f"{PAGE}.run_long" not in names(checked(app.run())), "the question goes with its settings"
    app.number_input(key=f"{PAGE}.num_seeds").set_value(LONG.num_seeds)
    press(press(checked(app.run()), "run"), "run_long")
    assert jobs.submitted == [LONG]
    reason = "stopped by the server after 8 min, the longest that it may run"
    app.query_params["job"] = jobs.add(SHORT, status="stopped", reason=reason)
    assert "Stopped by the server after 8 min" in words(checked(app.run()))
    assert "0 of 2 widths are done and saved" in words(app)


def test_quick_run_keeps_both_ends_and_starts(jobs, gallery):
    app = press(press(open_page(PAGE, **differences(LONG, PRESET)), "run"), "shorter")
    (spec,) = jobs.submitted
    assert f"{PAGE}.run_long" not in names(app)
    assert app.query_params["job"] in (spec_digest(spec)[:16], [spec_digest(spec)[:16]]), "what runs is what is shown"
    assert estimate(spec).seconds <= SHORT_S
    assert (spec.widths[0], spec.widths[-1]) == (LONG.widths[0], LONG.widths[-1])
    assert set(spec.widths) <= set(LONG.widths)
    assert spec.num_seeds < LONG.num_seeds
    assert (spec.training, spec.dataset) == (LONG.training, LONG.dataset)


def test_quick_run_thins_seeds_first_and_values_last():
    base: Any = with_settings(PRESET, {"num_seeds": 5})
    whole, shares = estimate(base).seconds, (1.01, 0.7, 0.5, 0.3)
    found: list[Any] = [quick(base, whole * share) for share in shares]
    sizes = [len(spec.widths) * spec.num_seeds for spec in found]
    assert found[0] == base
    assert sizes == sorted(sizes, reverse=True)
    for share, spec in zip(shares, found, strict=True):
        assert estimate(spec).seconds <= whole * share
        assert (spec.widths[0], spec.widths[-1]) == (base.widths[0], base.widths[-1])


def test_what_the_gallery_holds_is_not_computed_again(jobs, monkeypatch, tmp_path):
    preset = PRESETS["liu-section5"].spec
    app = open_page("optimization")
    checked(app.button(key="optimization.run").click().run())
    assert jobs.submitted == [preset]
    assert [(each.spec, each.status) for each in jobs.adopted] == [(preset, "completed")]
    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    assert gallery_result_of(SHORT) is None
    real, result = Jobs(Store(tmp_path / "s.sqlite")), gallery_result_of(PRESET)
    real.adopt(result)
    snapshot = real.snapshot(real.submit(PRESET))
    assert (snapshot.status, snapshot.points) == ("completed", result.points)
    assert real.foreseen(PRESET) == (0, len(PRESET.point_keys()))
    assert real.foreseen(SHORT) == (pytest.approx(estimate(SHORT).seconds), 0)
    real.shutdown()


def test_unsuitable_preset_choice_keeps_the_rest_of_the_url(jobs):
    base: Any = PRESETS["liu-section5"].spec
    given = {"dataset.name": "sine", "widths": "20,30", "training.max_steps": "77"}
    spec, (problem,) = spec_from_texts(given, base)
    kept = ",".join(output for output in base.outputs if output != "softmax")
    assert differences(spec, base) == {**given, "outputs": kept}
    assert (problem.field, problem.given) == ("outputs", "softmax")
    app = open_page("optimization", **given)
    assert f"{kept} is used instead" in words(app)
    checked(app.button(key="optimization.run").click().run())
    assert jobs.submitted == [spec]  # as in the form
    base = with_settings(PRESETS["liu-true-and-linearized"].spec, {"outputs": ["softmax"]})
    spec, problems = spec_from_texts({"dataset.name": "sine", "num_seeds": "2"}, base)
    assert (spec.dataset.name, spec.outputs, spec.num_seeds) == ("sine", ("linear",), 2), "the first that fits"
    assert [each.field for each in problems] == ["outputs"]


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
    proposed = {name: try_links(name) for name in EXPERIMENTS}
    assert {name: len(links) for name, links in proposed.items() if len(links) not in (2, 3)} == {}
    labels = [link.label for links in proposed.values() for link in links]
    assert len(set(labels)) == len(labels)
    assert {link.page for link in LINKS} <= {entry.name for entry in PAGES}


def test_links_show_stored_or_short_runs_with_valid_settings():
    tried = [link for link in LINKS if link.query]
    assert len(tried) >= 18
    slow = [
        (link.label, seconds)
        for link in tried
        for spec in [spec_of(link)]
        if gallery_result_of(spec) is None and (seconds := estimate(spec).seconds) > SHORT_S
    ]
    assert slow == []


@pytest.fixture
def tried(jobs):
    """Open a page by one of its suggestions to try."""

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
