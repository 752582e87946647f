"""Jobs without processes: the queue, limits of sessions and addresses, partial points."""

import math
import threading
import time
from dataclasses import replace

import pytest

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.jobs import NoRoom, _job
from linearity_lab.dashboard.jobs._job import LEAST_BYTES, Job
from linearity_lab.dashboard.jobs.limits import OverLimit
from linearity_lab.runs import PRESETS, spec_digest
from linearity_lab.runs.events import (
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

    monkeypatch.setattr(jobs._workers, "_start", start_pool)
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


@pytest.mark.first_cases(1)  # starts a pool
@pytest.mark.parametrize(
    ("profile", "address"), [("hosted", ""), ("classroom", "192.0.2.1"), ("local", "192.0.2.1")]
)
def test_sessions_behind_one_address_are_limited_apart(unattended, tiny, profile, address):
    jobs = unattended(profile)
    for seed in range(10):
        jobs.submit(tiny(seed), f"student{seed}", address)
    assert jobs.load()["waiting"] == 10


def test_view_of_a_stranger_changes_nothing(unattended, tiny):
    jobs = unattended("classroom")
    job_id = jobs.submit(tiny(0), "tab 1", visitor="ann")
    jobs.snapshot(job_id, "tab 2")
    assert not jobs.stop(job_id, "tab 2", "bob"), "only the owner stops"
    assert jobs.snapshot(job_id).status == "queued"
    assert jobs.snapshot(job_id).owners == {"ann"}
    assert jobs.stop(job_id, "tab 1", "ann"), "a view does not keep it from ending"
    assert jobs.snapshot(job_id).status == "cancelled"


def test_stop_only_detaches_while_another_owner_is_connected(unattended, tiny):
    jobs, connected = unattended("classroom"), {"tab 1", "tab 2"}
    jobs.is_connected = connected.__contains__
    job_id = jobs.submit(tiny(0), "tab 1", visitor="ann")
    assert jobs.submit(tiny(0), "tab 2", visitor="bob") == job_id
    assert not jobs.stop(job_id, "tab 1", "ann")
    assert jobs.snapshot(job_id).status == "queued"
    assert not jobs.stop(job_id, "tab 1", "ann"), "it has left the job to the other owner"
    assert jobs.submit(tiny(0), "tab 1", visitor="ann") == job_id
    connected.remove("tab 1")
    assert jobs.stop(job_id, "tab 2", "bob")
    assert jobs.snapshot(job_id).status == "cancelled"
    assert jobs.submit(tiny(0), "tab 2", visitor="bob") == job_id
    assert (jobs.snapshot(job_id).status, jobs.snapshot(job_id).reason) == ("queued", "")


def test_every_tab_of_a_local_server_may_stop(unattended, tiny):
    jobs = unattended()
    job_id = jobs.submit(tiny(0), "tab 1")
    jobs.snapshot(job_id, "tab 2")
    assert jobs.stop(job_id, "tab 2")


def test_started_runs_belong_to_their_visitor_after_restart(unattended, tiny):
    jobs = unattended("hosted")
    jobs.submit(tiny(0), "tab 1", visitor="ann")
    later = unattended("hosted")
    later.submit(tiny(1), "tab 2", visitor="bob")
    store = later._store
    assert [run.digest for run in store.runs(owner="ann").runs] == [spec_digest(tiny(0))]
    assert later.snapshot(spec_digest(tiny(0))[:16]).owners == {"ann"}
    assert not unattended("local")._store.runs(owner="eve").runs


@pytest.fixture
def minutes_later(monkeypatch):
    """Let each call of the returned function pass two minutes."""
    passed = [0.0]
    real = time.monotonic
    monkeypatch.setattr(_job.time, "monotonic", lambda: real() + passed[0])

    def wait() -> None:
        passed[0] += 120.0

    return wait


class Killed:
    """A computation that records its end."""

    def __init__(self):
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True


def test_abandoned_run_makes_way_and_continues_afterwards(unattended, tiny, minutes_later):
    jobs, connected = unattended("classroom", num_workers=1), {"tab 1", "tab 2"}
    jobs.is_connected = connected.__contains__
    left = jobs.submit(tiny(0), "tab 1", visitor="ann")
    running = jobs._begun()
    running.computation = computation = Killed()
    point = gallery_result("liu-fig1-left").points[0].model_copy(update={"width": 10})
    running.take(PointFinished(key=point.key, point=point, fraction=0.3, remaining_s=None))
    points = jobs.snapshot(left).points
    assert points == (point,)
    waiting = jobs.submit(tiny(1), "tab 2", visitor="bob")

    def check() -> None:
        for job in jobs._active():
            job.note_viewers(jobs.is_connected)
        jobs._make_way()

    check()
    minutes_later()
    check()
    assert jobs.snapshot(left).status == "running", "it is followed"
    connected.remove("tab 1")
    check()
    assert jobs.snapshot(left).status == "running", "its viewer left just now"
    minutes_later()
    check()
    assert computation.is_killed
    assert (jobs.snapshot(left).status, jobs.snapshot(left).points) == ("queued", points)
    assert [jobs.snapshot(each).position for each in (waiting, left)] == [1, 2]
    assert jobs._begun().now.job_id == waiting
    jobs.stop(waiting, "tab 2", "bob")
    again = jobs._begun()
    assert (again.now.job_id, again.now.points) == (left, points)
    later = jobs.submit(tiny(2), "tab 3", visitor="eve")
    jobs._jobs[later].left_s = again.left_s  # whose tab has closed too
    again.computation = Killed()
    check()
    assert jobs.snapshot(left).status == "running", "abandoned runs make way for followed ones only"


def test_waiting_visitor_sees_what_runs_and_how_long(unattended, tiny):
    jobs = unattended("classroom", num_workers=1)
    running = jobs.submit(tiny(0), "tab 1", visitor="ann")
    jobs._begun()
    waiting = jobs.submit(tiny(1), "tab 2", visitor="bob")
    (ahead,) = jobs.snapshot(waiting).ahead
    assert ahead.experiment == "kernel_change"
    assert 0 < ahead.left_s <= ahead.most_s <= jobs._limits.max_job_s
    jobs._jobs[running].take(
        PointProgress(key="width=10", fraction=0.5, remaining_s=42.0, message="step 10")
    )
    (ahead,) = jobs.snapshot(waiting).ahead
    assert (ahead.experiment, ahead.left_s) == ("kernel_change", 42.0)
    assert jobs.snapshot(running).ahead == ()


def test_ended_results_are_kept_by_bytes(unattended, tiny):
    jobs = unattended("classroom", max_kept_bytes=10 * LEAST_BYTES)
    for seed in range(12):
        jobs.submit(tiny(seed), "tab", visitor=f"visitor {seed}")
    for job in list(jobs._jobs.values()):
        job.point_bytes = {"width=10": LEAST_BYTES}
        job.end("cancelled")
    assert len(jobs._jobs) == 12
    found = jobs.snapshot(spec_digest(tiny(11))[:16])
    assert found.status == "cancelled"
    assert sum(job.num_bytes for job in jobs._jobs.values()) <= 10 * LEAST_BYTES
    assert spec_digest(tiny(11))[:16] in jobs._jobs, "the shown one stays"


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
    job.show_arrived()
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


def test_the_first_mark_is_shown_at_once_and_others_in_turn():
    job = Job(SPEC)
    job.begin()
    job.take(progress(POINT, POINT.key))
    assert (job.now.growing, job.now.grown) == ((POINT,), 1)
    job.take(progress(SECOND, SECOND.key))
    job.show_arrived(every_s=math.inf)
    assert (job.now.growing, job.now.grown) == ((POINT,), 1)
    job.show_arrived(every_s=0.0)
    assert (job.now.growing, job.now.grown) == ((POINT, SECOND), 2)
    job.show_arrived(every_s=0.0)  # nothing new
    assert job.now.grown == 2
    job.take(progress(SECOND, SECOND.key))
    job.end("stopped")  # shows what has arrived
    assert job.now.grown == 3


def test_previews_wait_behind_runs(unattended, tiny):
    jobs = unattended("classroom")
    preview = jobs.submit(tiny(0), "ann", is_preview=True)
    other = jobs.submit(tiny(1), "bob", is_preview=True)
    run = jobs.submit(tiny(2), "cem")
    assert jobs._begun().now.job_id == run
    assert jobs._begun().now.job_id == preview
    assert jobs._first() is None  # one preview at a time
    jobs.stop(preview, "ann")
    assert jobs._begun().now.job_id == other


def test_running_preview_makes_way_for_a_run(unattended, tiny):
    class Computed:
        was_asked = False

        def ask_to_end(self) -> None:
            self.was_asked = True

    jobs = unattended("classroom")
    preview = jobs.submit(tiny(0), "ann", is_preview=True)
    job = jobs._begun()
    job.computation = computation = Computed()
    jobs._make_way()
    assert jobs.snapshot(preview).status == "running"
    run = jobs.submit(tiny(1), "ann")  # of the same visitor, too
    jobs._make_way()
    assert computation.was_asked
    assert jobs.snapshot(preview).status == "queued"
    assert jobs._begun().now.job_id == run


def test_preview_with_a_mark_makes_way_for_one_without(unattended, tiny):
    class Computed:
        def ask_to_end(self) -> None:
            pass

    jobs = unattended("classroom")
    first, second = (jobs.submit(tiny(seed), "", is_preview=True) for seed in (0, 1))
    job = jobs._begun()
    job.computation = Computed()
    jobs._make_way()
    assert jobs.snapshot(first).status == "running", "it has no mark yet"
    job.now = replace(job.now, growing=(POINT,), grown=1)
    jobs._make_way()
    assert jobs.snapshot(first).status == "queued"
    assert jobs.snapshot(first).growing == (POINT,)
    other = jobs._begun()
    assert other.now.job_id == second
    other.computation = Computed()
    other.now = replace(other.now, growing=(POINT,), grown=1)
    jobs._make_way()
    assert jobs.snapshot(second).status == "running", "all have a mark"


def test_equal_previews_are_one_job_that_a_run_takes_over(unattended, tiny):
    jobs = unattended("classroom")
    preview = jobs.submit(tiny(0), "ann", is_preview=True)
    assert jobs.submit(tiny(0), "bob", is_preview=True) == preview
    assert jobs._jobs[preview].is_preview
    assert jobs.submit(tiny(0), "bob") == preview
    assert not jobs._jobs[preview].is_preview


@pytest.mark.parametrize("profile", ["local", "classroom"])
def test_preview_is_listed_after_run_is_pressed(unattended, tiny, profile):
    jobs = unattended(profile)
    jobs.submit(tiny(0), "ann", visitor="ann", is_preview=True)
    jobs.submit(tiny(1), "ann", visitor="ann")
    owner = "ann" if profile == "classroom" else None
    jobs._store.save_spec(tiny(1))  # as a worker does
    assert [run.spec for run in jobs._store.runs(owner=owner).runs] == [tiny(1)]
    jobs.submit(tiny(0), "ann", visitor="ann")
    assert jobs._store.runs(owner=owner).total == 2


def test_visitor_has_two_previews_beside_two_runs(unattended, tiny):
    jobs = unattended("classroom")
    for seed in range(2):
        jobs.submit(tiny(seed), "ann")
    for seed in range(2, 4):
        jobs.submit(tiny(seed), "ann", is_preview=True)
    with pytest.raises(NoRoom, match="preview"):
        jobs.submit(tiny(4), "ann", is_preview=True)
