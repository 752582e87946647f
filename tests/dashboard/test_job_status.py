"""API of a session's own jobs, Stop, polling intervals, and the tray on every page."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette

from linearity_lab.components import job_status
from linearity_lab.components.job_status import CROWD, EVERY_S, HEADER, WAITING_S
from linearity_lab.jobs import Jobs
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs.events import PointFinished
from ntk_core.runs.store import Store
from tests.dashboard.made_results import make_points
from tests.dashboard.open_pages import open_page
from tests.hosting.answer import Answer

SPEC = KernelChangeSpec(widths=(30, 100))


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Jobs without workers."""
    jobs = Jobs(Store(tmp_path / "s.sqlite"))
    monkeypatch.setattr(jobs, "warm_up", lambda: None)
    monkeypatch.setattr(job_status, "shared_jobs", lambda: jobs)
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
    for session in ("", "eve"):
        assert ask(stop, session, "POST")[0] == 404
    assert ask(stop, "ann")[0] == 405
    waiting.submit(SPEC, "bob")
    assert ask(stop, "bob", "POST")[1] == {"stopped": False}, "it is shared: only detached"
    assert (listed("bob"), len(listed("ann"))) == ([], 1)
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
        assert jobs.viewers / ask("/api/jobs", "ann")[1]["every_s"] <= CROWD / EVERY_S + 1e-9
    jobs.viewers = 1
    jobs.add(SPEC, status="queued", position=1)
    assert ask("/api/jobs", "ann")[1]["every_s"] == WAITING_S


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
    monkeypatch.setattr(job_status.st, "switch_page", lambda page, query_params: switched.append((page, query_params)))
    for opened in ("0" * 16, job_id):
        monkeypatch.setattr(job_status, "_mount", lambda opened=opened, **_: {"open": opened})
        job_status.tray({"kernel_change": ("Kernel", "pages/kernel_change.py")})
    assert switched == [("pages/kernel_change.py", {"job": job_id})]
