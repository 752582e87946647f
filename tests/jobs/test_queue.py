"""The queue without processes: first in, first out; one running and one waiting job per session."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

import linearity_lab.jobs
from linearity_lab.jobs import NoRoom, _jobs
from linearity_lab.jobs.limits import OverLimit
from linearity_lab.jobs.profile import profile
from ntk_core.runs import spec_digest


def test_jobs_begin_in_the_order_of_their_arrival(unattended, tiny):
    jobs = unattended()
    ids = [jobs.submit(tiny(seed), viewer) for seed, viewer in enumerate(["ann", "ann", "bob", "ann"])]
    assert [jobs.snapshot(job_id).position for job_id in ids] == [1, 2, 3, 4]
    assert [jobs._begun().now.job_id for _ in ids] == ids


def test_pages_do_not_wait_for_a_new_pool(unattended, tiny, monkeypatch):
    jobs = unattended()
    stopped, other = jobs.submit(tiny(0), "ann"), jobs.submit(tiny(1), "bob")

    def start_pool() -> None:
        reading = threading.Thread(target=jobs.snapshot, args=(other,), daemon=True)
        reading.start()
        reading.join(10.0)
        assert not reading.is_alive()
        jobs.stop(stopped, "ann")  # a job stopped before its start does not compute

    monkeypatch.setattr(jobs._workers, "warm_up", start_pool)
    job = jobs._begun()
    assert jobs._computation(job).is_over()
    assert (job.now.job_id, job.status, job.computation) == (stopped, "cancelled", None)
    assert jobs._begun().now.job_id == other


def test_session_has_one_running_and_one_waiting_job(unattended, tiny):
    jobs = unattended("classroom")
    running, waiting, other = jobs.submit(tiny(0), "ann"), jobs.submit(tiny(1), "ann"), jobs.submit(tiny(2), "bob")
    with pytest.raises(NoRoom, match="a third unfinished run of yours cannot be taken; try again when one has"):
        jobs.submit(tiny(3), "ann")
    assert jobs._begun().now.job_id == running
    assert jobs._begun().now.job_id == other  # the free worker is reserved for another session
    assert jobs._first() is None
    jobs.stop(running, "ann")
    assert jobs._begun().now.job_id == waiting


def test_queue_is_bounded_and_attaching_needs_no_place(unattended, tiny):
    jobs = unattended(max_waiting=3, max_width=1000)
    jobs.submit(tiny(0), "ann")
    jobs._begun()
    waiting = [jobs.submit(tiny(seed), "ann") for seed in (1, 2, 3)]  # any number of one person
    with pytest.raises(NoRoom, match="waiting"):
        jobs.submit(tiny(4), "bob")
    with pytest.raises(OverLimit):
        jobs.submit(tiny(0, widths=(1001,)), "bob")
    assert jobs.load()["waiting"] == 3
    assert jobs.submit(tiny(1), "bob") == waiting[0]


def test_jobs_have_the_limits_of_the_profile(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "classroom")
    monkeypatch.setattr(_jobs, "Jobs", lambda **given: SimpleNamespace(given=given, shutdown=lambda: None))
    made: Any = linearity_lab.jobs._shared.__wrapped__()
    assert made.given == {"limits": profile()}
    assert made.given["limits"].name == "classroom"


def test_jobs_of_one_address_are_limited_on_a_public_server(unattended, tiny):
    jobs = unattended("hosted")
    for seed in range(4):
        jobs.submit(tiny(seed), f"eve{seed}", "192.0.2.1")
    with pytest.raises(NoRoom, match="4 unfinished runs from your network address cannot be taken; try again when"):
        jobs.submit(tiny(4), "eve4", "192.0.2.1")
    jobs.submit(tiny(4), "ann", "192.0.2.2")
    jobs.stop(jobs.snapshot(spec_digest(tiny(0))[:16]).job_id, "eve0")
    jobs.submit(tiny(5), "eve5", "192.0.2.1")


@pytest.mark.parametrize(("profile", "address"), [("hosted", ""), ("classroom", "192.0.2.1"), ("local", "192.0.2.1")])
def test_sessions_behind_one_address_are_limited_apart(unattended, tiny, profile, address):
    jobs = unattended(profile)
    for seed in range(10):
        jobs.submit(tiny(seed), f"student{seed}", address)
    assert jobs.load()["waiting"] == 10


def test_stop_only_detaches_while_another_session_follows(unattended, tiny):
    jobs, connected = unattended(), {"ann", "bob"}
    job_id = jobs.submit(tiny(0), "ann")
    jobs.snapshot(job_id, "bob")
    assert not jobs.stop(job_id, "ann", connected.__contains__)
    assert jobs.snapshot(job_id).status == "queued"
    jobs.snapshot(job_id, "ann")
    connected.remove("ann")  # after a reload, as another session
    assert jobs.stop(job_id, "bob", connected.__contains__)
    assert jobs.snapshot(job_id).status == "cancelled"
