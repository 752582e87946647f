"""First in, first out; one running and one waiting job per session on shared servers. Without a process."""

from __future__ import annotations

import pytest

from linearity_lab.jobs import QueueFull, TooManyJobs
from ntk_core.runs.events import PointProgress


def test_jobs_begin_in_the_order_of_their_arrival(unattended, tiny):
    jobs = unattended()
    ids = [jobs.submit(tiny(seed), viewer) for seed, viewer in enumerate(["ann", "ann", "bob", "ann"])]
    assert [jobs.snapshot(job_id).position for job_id in ids] == [1, 2, 3, 4]
    assert [jobs._next().job_id for _ in ids] == ids


def test_places_change_the_version(unattended, tiny):
    jobs = unattended()
    first, second = jobs.submit(tiny(0)), jobs.submit(tiny(1))
    before = jobs.snapshot(second)
    assert jobs._next().job_id == first
    after = jobs.snapshot(second)
    assert (before.position, after.position) == (2, 1)
    assert after.version > before.version


def test_session_has_one_running_and_one_waiting_job(unattended, tiny):
    jobs = unattended(is_shared=True)
    running, waiting, other = jobs.submit(tiny(0), "ann"), jobs.submit(tiny(1), "ann"), jobs.submit(tiny(2), "bob")
    with pytest.raises(TooManyJobs, match="a third unfinished run of yours cannot be taken; try again when one has"):
        jobs.submit(tiny(3), "ann")
    assert jobs._next().job_id == running
    assert jobs._next().job_id == other  # a free worker is for another session
    assert jobs._first() is None
    jobs.stop(running, "ann")
    assert jobs._next().job_id == waiting


def test_attaching_needs_no_place_of_the_session(unattended, tiny):
    jobs = unattended(is_shared=True, max_waiting=3)
    theirs = jobs.submit(tiny(0), "bob")
    jobs.submit(tiny(1), "ann")
    jobs.submit(tiny(2), "ann")
    assert jobs.submit(tiny(0), "ann") == theirs


def test_one_person_may_queue_any_number_of_jobs(unattended, tiny):
    jobs = unattended(max_waiting=5)
    for seed in range(5):
        jobs.submit(tiny(seed), "ann")
    assert jobs.load().waiting == 5


def test_queue_is_bounded(unattended, tiny):
    jobs = unattended(max_waiting=1)
    jobs.submit(tiny(0))
    jobs._next()
    waiting = jobs.submit(tiny(1))
    assert not jobs.load().has_room
    with pytest.raises(QueueFull, match="waiting"):
        jobs.submit(tiny(2))
    assert jobs.submit(tiny(1)) == waiting


def test_full_queue_drops_a_job_whose_session_has_left(unattended, tiny):
    jobs, connected = unattended(max_waiting=1), {"ann", "bob"}
    jobs.ask_presence(connected.__contains__)
    left = jobs.submit(tiny(0), "ann")
    with pytest.raises(QueueFull):
        jobs.submit(tiny(1), "bob")
    connected.remove("ann")
    assert jobs.snapshot(jobs.submit(tiny(1), "bob")).position == 1
    assert jobs.snapshot(left).status == "cancelled"


def test_stop_only_detaches_while_another_session_follows(unattended, tiny):
    jobs, connected = unattended(), {"ann", "bob"}
    jobs.ask_presence(connected.__contains__)
    job_id = jobs.submit(tiny(0), "ann")
    jobs.snapshot(job_id, "bob")
    assert not jobs.stop(job_id, "ann")
    assert jobs.snapshot(job_id).status == "queued"
    jobs.snapshot(job_id, "ann")
    connected.remove("ann")  # her page was reloaded, which is another session
    assert jobs.stop(job_id, "bob")
    assert jobs.snapshot(job_id).status == "cancelled"


def test_session_sees_its_own_jobs_alone(unattended, tiny):
    jobs = unattended()
    first, theirs, second = jobs.submit(tiny(0), "ann"), jobs.submit(tiny(1), "bob"), jobs.submit(tiny(2), "ann")
    assert [each.job_id for each in jobs.followed("ann")] == [second, first]
    assert [each.job_id for each in jobs.followed("bob")] == [theirs]
    assert jobs.followed("eve") == jobs.followed("") == ()
    jobs.stop(first, "ann")
    assert [each.status for each in jobs.followed("ann")] == ["queued", "cancelled"]


@pytest.mark.parametrize(("num_workers", "waits_s"), [(1, [20.0, 60.0, 120.0]), (2, [0.0, 30.0, 60.0])])
def test_job_waits_for_those_ahead_of_it(unattended, tiny, num_workers, waits_s):
    jobs = unattended(num_workers=num_workers)
    ids = [jobs.submit(tiny(seed)) for seed in range(4)]
    jobs._next()
    for job_id, seconds in zip(ids, (20.0, 40.0, 60.0, 80.0), strict=True):
        jobs._jobs[job_id].expected_s = seconds
    assert jobs.snapshot(ids[0]).starts_in_s is None
    assert [jobs.snapshot(job_id).starts_in_s for job_id in ids[1:]] == waits_s
    assert jobs.snapshot(ids[1]).remaining_s == waits_s[0] + 40.0


def test_measured_time_replaces_the_expected_one(unattended, tiny):
    jobs = unattended()
    jobs.submit(tiny(0))
    job = jobs._next()
    job.expected_s = 80.0
    assert job.left_s() == 80.0
    job.take(PointProgress(key="width=10", fraction=0.25, remaining_s=None, message="compiling"))
    assert job.left_s() == 60.0
    job.take(PointProgress(key="width=10", fraction=0.5, remaining_s=12.0, message="training"))
    assert 11.0 < job.left_s() <= 12.0
