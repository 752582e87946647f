"""Runs from their start to their end.

Confirmation, links, stored and shared runs, the tray, Stop, polling.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from streamlit.testing.v1 import AppTest

from linearity_lab.dashboard import gallery, job_status, session
from linearity_lab.dashboard.explain import TRIED
from linearity_lab.dashboard.gallery import gallery_result_of
from linearity_lab.dashboard.job_status import HEADER, WAITING_S
from linearity_lab.dashboard.jobs import Jobs
from linearity_lab.dashboard.jobs._job import Ahead
from linearity_lab.dashboard.jobs.profile import CROWD, NEWS_S, PROFILES
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.run_panel import ASK_S, SHORT_S
from linearity_lab.dashboard.smaller_runs import quick
from linearity_lab.experiments.explore.pairs import pair
from linearity_lab.experiments.explore.spec import ExploreSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.page_modules import page_folders
from linearity_lab.runs import EXPERIMENTS, PRESETS, Spec, estimate, spec_digest
from linearity_lab.runs.events import PointFinished
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import differences, spec_from_texts, with_settings
from linearity_lab.words.pages import Link, try_links
from tests.dashboard.conftest import _put_in_place
from tests.dashboard.made_results import make_points
from tests.dashboard.open_pages import address, checked, open_page, words
from tests.hosting.answer import Answer

PAGE = "kernel_change"
PRESET = PRESETS["liu-fig1-left"].spec
LONG: Any = with_settings(
    PRESET, {"num_seeds": 100, "widths": (30, 100, 300, 1000, 3000, 10_000, 30_000)}
)
SHORT = with_settings(PRESET, {"num_seeds": 2, "widths": (3, 10)})


@pytest.fixture(autouse=True)
def _any_time(monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_PROFILE", raising=False)


def press(app, name):
    return checked(app.button(key=f"{PAGE}.{name}").click().run())


def test_long_run_starts_after_confirmation(jobs, gallery):
    assert estimate(LONG).seconds > ASK_S
    app = press(open_page(PAGE, **differences(LONG, PRESET)), "run")  # Ctrl+Enter is this button
    assert jobs.submitted == []
    labels = [app.button(key=f"{PAGE}.{name}").label for name in ("shorter", "run_long")]
    assert [each.partition(" (")[0] for each in labels] == ["Quick run", "Everything"]
    assert f"{PAGE}.run" not in {each.key for each in app.button}, "the choice is in its place"
    app.number_input(key=f"{PAGE}.num_seeds").set_value(99)
    keys = {button.key for button in checked(app.run()).button}
    assert f"{PAGE}.run_long" not in keys, "the question goes with its settings"
    app.number_input(key=f"{PAGE}.num_seeds").set_value(LONG.num_seeds)
    press(press(checked(app.run()), "run"), "run_long")
    assert jobs.submitted == [LONG]


def test_quick_run_keeps_both_ends_and_starts(jobs, gallery):
    app = press(press(open_page(PAGE, **differences(LONG, PRESET)), "run"), "shorter")
    (spec,) = jobs.submitted
    assert address(app)["job"] == spec_digest(spec)[:16], "what runs is what is shown"
    assert estimate(spec).seconds <= SHORT_S
    assert jobs.quick_s == SHORT_S, "it stops there"
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
    assert (snapshot.status, snapshot.points) == ("completed", result.as_imported().points)
    assert real.foreseen(PRESET) == (0, len(PRESET.point_keys()))
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


def spec_of(link: Link) -> Spec:
    """Spec of a link to an experiment's page, whose settings are used unchanged."""
    preset = link.query.get("preset", EXPERIMENTS[link.page].presets[0].name)
    assert preset in [each.name for each in EXPERIMENTS[link.page].presets], link
    texts = {name: text for name, text in link.query.items() if name != "preset"}
    spec, problems = spec_from_texts(texts, PRESETS[preset].spec)
    assert problems == (), link
    assert texts == {} or spec != PRESETS[preset].spec, f"{link} changes nothing"
    return spec


def test_links_show_stored_or_short_runs_with_valid_settings():
    written = [folder for folder in page_folders() if (folder / "words.md").exists()]
    links = [link for folder in written for link in try_links(folder.name)]
    assert {link.page for link in links} <= {entry.name for entry in PAGES}
    tried = {link.label: spec_of(link) for link in links if link.query}
    assert len(tried) >= 18
    for label, spec in tried.items():
        if isinstance(spec, ExploreSpec):  # whose page moves the other settings after its picks
            first = pair(spec.architecture.kind, spec.dataset.name)
            assert first is not None, label
            spec = first
        assert gallery_result_of(spec) or estimate(spec).seconds <= SHORT_S, label


def test_the_open_figure_is_not_suggested():
    app = open_page("learning_rate", opened=False)
    app.query_params = {"preset": "edge-of-stability"}
    labels = [button.label for button in checked(app.run()).button]
    assert "One catapult, step by step" in labels
    assert "How narrow for the edge of stability?" not in labels


def test_a_short_run_begins_at_once_and_only_once(jobs):
    """A suggestion to try starts its run, unless the gallery has it or it is long."""

    def tried(**query: str) -> AppTest:
        app = open_page("kernel_change", opened=False)
        app.session_state[TRIED] = "kernel_change"
        app.query_params = {name.replace("__", "."): text for name, text in query.items()}
        return checked(app.run())

    app = tried(widths="30,100", num_seeds="2")
    assert [spec.widths for spec in jobs.submitted] == [(30, 100)]
    app.query_params = {"widths": "30,100", "num_seeds": "3"}
    checked(app.run())
    tried(preset="liu-fig2")
    tried(widths="1000,10000", architecture__depth="2")
    assert len(jobs.submitted) == 1, "a URL alone starts nothing"


SHARED = {"kernel_change": "liu-fig1-left", "hessian": "liu-ball"}  # a list of networks


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Callable[[], Store]]:
    """Restart the server on the same store, without workers."""
    running: list[Jobs] = []

    def start() -> Store:
        store = Store(tmp_path / "shared.sqlite")
        for jobs in running:
            jobs.shutdown()
        running.append(Jobs(store))
        _put_in_place(monkeypatch, running[-1])
        return store

    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    monkeypatch.setattr(Jobs, "submit", lambda *_: pytest.fail("a shared address must not compute"))
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


SPEC = KernelChangeSpec(widths=(30, 100))


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Jobs without workers."""
    jobs = Jobs(Store(tmp_path / "s.sqlite"), PROFILES["hosted"])
    monkeypatch.setattr(jobs, "warm_up", lambda: None)
    monkeypatch.setattr(job_status, "shared_jobs", lambda: jobs)
    monkeypatch.setattr(job_status, "profile", lambda: PROFILES["hosted"])
    yield jobs
    jobs.shutdown()


def ask(path: str, session: str = "", method: str = "GET") -> tuple[int, Any]:
    """Send a request of this session and return status and body."""
    app = Starlette(routes=job_status.routes())
    answer = Answer(app, path, method=method, headers={HEADER: session} if session else {})
    return answer.status, json.loads(answer.text) if answer.status != 405 else None


def listed(session: str) -> list[dict]:
    return ask("/api/jobs", session)[1]["jobs"]


def test_sessions_see_only_their_own_jobs(waiting):
    first, theirs, second = (
        waiting.submit(SPEC.model_copy(update={"seed": seed}), session)
        for seed, session in enumerate(("ann", "bob", "ann"))
    )
    assert [job["id"] for job in listed("ann")] == [second, first]
    assert [job["id"] for job in listed("bob")] == [theirs]
    assert listed("eve") == listed("") == []
    waiting.stop(first, "ann")
    assert [job["status"] for job in listed("ann")] == ["queued", "cancelled"]


def test_stop_needs_the_session_of_the_job(waiting):
    job_id = waiting.submit(SPEC, "ann")
    stop = f"/api/jobs/{job_id}/stop"
    waiting.snapshot(job_id, "eve")  # by the link
    assert [job["mine"] for job in listed("eve") + listed("ann")] == [False, True]
    for other in ("", "eve"):
        assert ask(stop, other, "POST")[0] == 404
    assert ask(stop, "ann")[0] == 405
    waiting.submit(SPEC, "bob")
    assert ask(stop, "bob", "POST")[1] == {"stopped": False}, "it is shared: only detached"
    assert (listed("bob"), len(listed("ann"))) == ([], 1), "the link alone keeps it nowhere"
    assert waiting.snapshot(job_id).status == "queued"
    assert ask(stop, "ann", "POST") == (200, {"stopped": True})
    assert waiting.snapshot(job_id).status == "cancelled"
    assert listed("ann")[0]["words"] == "stopped, 0 of 2 widths done"


def test_only_something_to_draw_is_news(waiting):
    job_id = waiting.submit(SPEC, "ann")
    before = listed("ann")[0]
    assert (before["status"], before["words"][:16]) == ("queued", "Waiting, place 1")
    job = waiting._begun()
    began = listed("ann")[0]
    assert (began["status"], began["seen"]) == ("running", before["seen"])
    (point,) = make_points((30,))
    job.take(PointFinished(key=point.key, point=point, fraction=0.5, remaining_s=None))
    grown = listed("ann")[0]
    assert (grown["fraction"], grown["seen"] != began["seen"]) == (0.5, True)
    waiting.stop(job_id, "ann")
    assert listed("ann")[0]["seen"] != grown["seen"]


def test_crowds_and_waiting_sessions_ask_less_often(jobs):
    jobs.add(SPEC)
    for jobs.viewers in (1, CROWD, 30, 300):
        assert jobs.viewers / ask("/api/jobs", "ann")[1]["every_s"] <= CROWD / NEWS_S + 1e-9
    jobs.viewers = 1
    jobs.add(SPEC, status="queued", position=1)
    assert ask("/api/jobs", "ann")[1]["every_s"] == WAITING_S
    jobs.add(SPEC, status="queued", position=1, is_preview=True)
    assert ask("/api/jobs", "ann")[1]["every_s"] == NEWS_S


def test_tray_of_every_page_lists_the_jobs(jobs):
    job_id = jobs.add(SPEC)
    for page in ("overview", "hessian"):
        components = [each.proto for each in open_page(page, opened=False).get("bidi_component")]
        mounts = [json.loads(each.json) for each in components if "_jobs" in each.component_name]
        (tray,) = [mount for mount in mounts if mount["kind"] == "tray"]
        assert [job["id"] for job in tray["jobs"]] == [job_id]
        assert tray["jobs"][0]["words"] == "0 of 2 widths, 42 s left · width 30: training"
        assert tray["titles"]["kernel_change"] == "Kernel"


def test_job_opened_in_the_tray_is_shown_on_its_page(jobs, monkeypatch):
    job_id, switched = jobs.add(SPEC), []
    monkeypatch.setattr(
        job_status.st,
        "switch_page",
        lambda page, query_params: switched.append((page, query_params)),
    )
    for opened in ("0" * 16, job_id):
        monkeypatch.setattr(job_status, "_mount", lambda opened=opened, **_: {"open": opened})
        job_status.tray({"kernel_change": ("Kernel", "pages/kernel_change.py")})
    assert switched == [("pages/kernel_change.py", {"job": job_id})]


def test_waiting_job_names_the_running_experiment_and_its_time(jobs, monkeypatch):
    ahead = (Ahead("kernel_change", 42.0, 280.0), Ahead("hessian", None, 120.0))
    jobs.add(SPEC, status="queued", position=2, ahead=ahead)
    on_time = "Waiting, place 2 · running: Kernel, 42 s left; Hessian, slower than estimated"
    assert listed("ann")[0]["words"] == on_time
    monkeypatch.setattr(job_status, "profile", lambda: PROFILES["hosted"])
    assert listed("ann")[0]["words"] == f"{on_time}, at most 2 min left"


def test_stranger_is_offered_leave_instead_of_stop(jobs, monkeypatch):
    job_id = jobs.add(SPEC, owners=frozenset({"bob"}))
    monkeypatch.setattr(job_status, "profile", lambda: PROFILES["hosted"])
    monkeypatch.setattr(session, "visitor", lambda: "ann")
    app = open_page("kernel_change", job=job_id)
    keys = [button.key for button in app.button]
    assert "kernel_change.stop" not in keys
    app.button(key="kernel_change.leave").click()
    checked(app.run())
    assert jobs.stopped == []
    assert "kernel_change.run" in [button.key for button in app.button]
    monkeypatch.setattr(session, "visitor", lambda: "bob")
    own = open_page("kernel_change", job=job_id)
    assert "kernel_change.stop" in [button.key for button in own.button]
