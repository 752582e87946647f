"""Who is next: viewers take turns, jobs that nobody waits for come last. Without a process."""

from __future__ import annotations

import pytest

from linearity_lab.jobs._job import Job
from linearity_lab.jobs._limits import Limits, TooManyJobs
from linearity_lab.jobs._queue import FairQueue, waits


@pytest.fixture
def make_job(tiny):
    def make(owner: str, seed: int) -> Job:
        job = Job(tiny(seed=seed), f"{owner}{seed}")
        job.owner = job.address = owner
        job.wait()
        return job

    return make


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue(lambda job: job.num_viewers == 0)


def taken(queue: FairQueue) -> list[str]:
    return [queue.take().job_id for _ in range(len(queue))]


def test_viewers_take_turns_however_many_jobs_one_of_them_has(queue, make_job):
    for seed in range(4):
        queue.add(make_job("ann", seed))
    queue.add(make_job("bob", 0))
    queue.add(make_job("cid", 0))
    assert taken(queue) == ["ann0", "bob0", "cid0", "ann1", "ann2", "ann3"]


def test_a_viewer_who_was_served_just_now_lets_others_go_first(queue, make_job):
    for seed in range(10):
        queue.add(make_job("ann", seed))
    served = [queue.take().job_id]
    for seed in range(3):
        queue.add(make_job("bob", seed))
    assert served + taken(queue)[:6] == ["ann0", "bob0", "ann1", "bob1", "ann2", "bob2", "ann3"]


def test_positions_are_those_in_which_jobs_are_taken(queue, make_job):
    for owner, seed in (("ann", 0), ("ann", 1), ("bob", 0), ("ann", 2), ("cid", 0), ("bob", 1)):
        queue.add(make_job(owner, seed))
    foreseen = [job.job_id for job in queue.in_order()]
    assert taken(queue) == foreseen


def test_a_job_whose_viewers_have_all_left_waits_for_those_that_are_waited_for(queue, make_job):
    left, waited_for = make_job("ann", 0), make_job("bob", 0)
    left.see("eve", 0.0)
    left.leave("eve")
    waited_for.see("bob", 0.0)
    queue.add(left)
    queue.add(waited_for)
    assert queue.last_abandoned() is left
    assert [job.job_id for job in queue.in_order()] == ["bob0", "ann0"]
    left.see("dan", 1.0)  # the link was sent to somebody else
    assert queue.last_abandoned() is None
    assert [job.job_id for job in queue.in_order()] == ["ann0", "bob0"]


def test_a_job_of_nobody_by_name_is_not_abandoned(queue, make_job):
    queue.add(make_job("", 0))
    assert queue.last_abandoned() is None


@pytest.mark.parametrize(
    ("running_s", "num_workers", "ahead_s", "expected"),
    [
        ([], 1, [5.0], [0.0]),
        ([10.0], 1, [5.0, 7.0, 1.0], [10.0, 15.0, 22.0]),
        ([10.0, 4.0], 2, [5.0, 7.0, 1.0], [4.0, 9.0, 10.0]),
        ([10.0], 2, [3.0, 3.0, 9.0, 1.0], [0.0, 3.0, 6.0, 10.0]),
    ],
)
def test_a_job_waits_for_what_is_ahead_of_it(running_s, num_workers, ahead_s, expected):
    assert waits(running_s, num_workers, ahead_s) == expected


def test_a_limit_counts_unfinished_jobs_of_the_viewer_and_of_the_address(make_job):
    unfinished = [make_job("ann", 0), make_job("ann", 1), make_job("bob", 0)]
    limits = Limits(per_viewer=2, per_address=None)
    with pytest.raises(TooManyJobs, match="2 unfinished runs of yours cannot be taken; try again when one has ended"):
        limits.check(unfinished, "ann", "elsewhere")
    limits.check(unfinished, "bob", "ann")
    limits.check(unfinished, "", "")
    with pytest.raises(TooManyJobs, match="one more than 1 unfinished run of your network address"):
        Limits(per_address=1).check(unfinished, "cid", "bob")
    Limits().check(unfinished, "ann", "ann")


def test_a_running_job_takes_what_was_foreseen_until_something_is_measured(make_job):
    from ntk_core.runs.events import PointProgress

    job = make_job("ann", 0)
    job.expected_s = 80.0
    job.begin()
    assert job.left_s() == 80.0
    job.take(PointProgress(key="width=10", fraction=0.25, remaining_s=None, message="compiling"))
    assert job.left_s() == 60.0
    job.take(PointProgress(key="width=10", fraction=0.5, remaining_s=12.0, message="training"))
    assert 11.0 < job.left_s() <= 12.0
