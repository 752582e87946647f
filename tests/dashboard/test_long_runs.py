"""Starting runs: long ones need confirmation, short ones start from a link, stored ones are reused and shared."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.components import gallery
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
from tests.dashboard.conftest import _put_in_place
from tests.dashboard.open_pages import address, checked, open_page, words

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
    assert address(app)["job"] == spec_digest(spec)[:16], "what runs is what is shown"
    assert estimate(spec).seconds <= SHORT_S
    assert set(spec.widths) <= set(LONG.widths)
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
    spec, _ = spec_from_texts({"dataset.name": "sine", "num_seeds": "2"}, base)
    assert (spec.dataset.name, spec.outputs, spec.num_seeds) == ("sine", ("linear",), 2), "the first that fits"


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


def test_links_show_stored_or_short_runs_with_valid_settings():
    links = [link for path in VIEWS.glob("*/words.md") for link in try_links(path.parent.name)]
    assert {link.page for link in links} <= {entry.name for entry in PAGES}
    tried = {link.label: spec_of(link) for link in links if link.query}
    assert len(tried) >= 18
    assert all(gallery_result_of(spec) or estimate(spec).seconds <= SHORT_S for spec in tried.values())


def test_a_short_run_begins_at_once_and_only_once(jobs):
    """A suggestion to try starts its run, unless the gallery has it or it is long."""

    def tried(**query: str) -> AppTest:
        app = open_page("kernel_change", opened=False)
        app.session_state[TRIED] = "kernel_change"
        app.query_params = {name.replace("__", "."): text for name, text in query.items()}
        return checked(app.run())

    app = tried(widths="30,100", num_seeds="2")
    assert [spec.widths for spec in jobs.submitted] == [(30, 100)]
    assert "job" in checked(app.run()).query_params
    app.query_params = {"widths": "30,100", "num_seeds": "3"}
    checked(app.run())
    tried(preset="liu-fig2")
    tried(widths="1000,10000", architecture__depth="2")
    assert len(jobs.submitted) == 1, "a URL alone starts nothing"


# A graph, a list of networks, and points of two settings.
SHARED = {
    "kernel_change": "liu-fig1-left",
    "dag": "zhu-nonlinear-output",
    "hessian": "liu-ball",
    "depth_width": "depth-width",
}


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Callable[[], Store]]:
    """Restart the server on the same store, without workers."""
    running: list[Jobs] = []

    def refuse(*_) -> str:
        raise AssertionError("a shared address must not compute")

    def start() -> Store:
        store = Store(tmp_path / "shared.sqlite")
        for jobs in running:
            jobs.shutdown()
        running.append(Jobs(store))
        _put_in_place(monkeypatch, running[-1])
        return store

    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    monkeypatch.setattr(Jobs, "submit", refuse)
    yield start
    for jobs in running:
        jobs.shutdown()


def changed_copy(store: Store, name: str) -> Any:
    """Store a result with settings that are not in the gallery, and return its spec."""
    result = gallery.gallery_result(name)
    spec = with_settings(result.spec, {"seed": result.spec.seed + 123})
    store.save_result(result.model_copy(update={"spec": spec}))
    return spec


def assert_shows(app: AppTest, spec: Spec) -> None:
    """Assert that the page shows the stored run and its form the run's settings."""
    output = words(app)
    assert app.get("plotly_chart")
    assert spec_digest(spec)[:12] in output  # origin of the result, below the figures
    assert "other settings than the form" not in output
    assert "cannot be used" not in output
    assert "Precomputed figure" not in output


@pytest.mark.parametrize(("page", "preset"), SHARED.items())
def test_job_address_works_in_another_browser_and_after_restart(page, preset, server):
    spec = changed_copy(server(), preset)
    first = open_page(page, opened=False, job=spec_digest(spec)[:16])
    assert_shows(first, spec)
    copied = address(first)
    assert copied["seed"] == str(spec.seed)
    server()
    again = open_page(page, opened=False, **copied)
    assert_shows(again, spec)
    assert address(again) == copied


def test_address_of_a_deleted_run_keeps_its_settings(server):
    store = server()
    spec = changed_copy(store, SHARED["kernel_change"])
    copied = address(open_page("kernel_change", job=spec_digest(spec)[:16]))
    jobs, job_id = Jobs(store), spec_digest(spec)[:16]
    assert jobs.snapshot(job_id).status == "completed"
    store.delete(spec_digest(spec))
    assert jobs.forget(job_id)
    assert jobs.snapshot(job_id) is None
    jobs.shutdown()
    server()
    app = open_page("kernel_change", **copied)
    assert "Press Run to compute these settings" in words(app)
    assert app.number_input(key="kernel_change.seed").value == spec.seed
