"""Jobs without processes: the queue, limits of sessions and addresses, partial points."""

import threading

import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.jobs import NoRoom
from linearity_lab.jobs._job import Job
from linearity_lab.jobs.limits import OverLimit
from ntk_core.runs import PRESETS, spec_digest
from ntk_core.runs.events import (
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
    parse_event,
)


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
    running, waiting, other = (
        jobs.submit(tiny(seed), who) for seed, who in enumerate(("ann", "ann", "bob"))
    )
    assert [jobs.snapshot(job_id).position for job_id in (running, waiting, other)] == [1, 2, 3]
    with pytest.raises(
        NoRoom, match="a third unfinished run of yours cannot be taken; try again when one has"
    ):
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


def test_jobs_of_one_address_are_limited_on_a_public_server(unattended, tiny):
    jobs = unattended("hosted")
    for seed in range(4):
        jobs.submit(tiny(seed), f"eve{seed}", "192.0.2.1")
    with pytest.raises(
        NoRoom, match="4 unfinished runs from your network address cannot be taken; try again when"
    ):
        jobs.submit(tiny(4), "eve4", "192.0.2.1")
    jobs.submit(tiny(4), "ann", "192.0.2.2")
    jobs.stop(jobs.snapshot(spec_digest(tiny(0))[:16]).job_id, "eve0")
    jobs.submit(tiny(5), "eve5", "192.0.2.1")


@pytest.mark.parametrize(
    ("profile", "address"), [("hosted", ""), ("classroom", "192.0.2.1"), ("local", "192.0.2.1")]
)
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
    assert jobs.submit(tiny(0), "bob") == job_id
    assert (jobs.snapshot(job_id).status, jobs.snapshot(job_id).reason) == ("queued", "")


SPEC = PRESETS["hu-fig1"].spec
POINT, SECOND = gallery_result("hu-fig1").points[:2]


def progress(point=None, key=POINT.key) -> PointProgress:
    return PointProgress(key=key, fraction=0.1, remaining_s=None, message="step 10", point=point)


def test_growing_points_are_shown_until_they_finish_or_run_again():
    job = Job(SPEC)
    job.begin()
    job.take(PointStarted(key=POINT.key, index=0))
    assert job.now.growing == ()
    for point in (SECOND, POINT):
        job.take(parse_event(progress(point, point.key).model_dump_json()))
    job.take(progress())  # a stretch without a record keeps the partial curves
    assert (job.now.growing, job.now.points) == ((POINT, SECOND), ())  # in the order of the spec
    job.take(PointFinished(key=POINT.key, point=POINT, fraction=0.3, remaining_s=None))
    assert (job.now.growing, job.now.points) == ((SECOND,), (POINT,))
    for status in ("cancelled", "stopped", "failed"):
        job.end(status)
        assert (job.now.growing, job.now.points) == ((SECOND,), (POINT,))
    job.wait("ann")
    assert job.now.growing == ()
    job.begin()
    job.take(progress(SECOND, SECOND.key))
    job.take(PointFailed(key=SECOND.key, reason="why"))
    assert job.now.growing == ()
