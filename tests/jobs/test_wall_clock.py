"""Every job ends: by its wall clock or by an operator, whatever its worker does, and it is not taken up again."""

from __future__ import annotations

import math
import os
import signal
import time
from types import SimpleNamespace

import pytest

from linearity_lab.jobs import Jobs
from linearity_lab.jobs._job import TURN_S
from linearity_lab.jobs.limits import check_limits
from linearity_lab.jobs.profile import LEAST_ALLOWED_S, PROFILES
from ntk_core.errors import TooLarge
from ntk_core.runs import PRESETS, digest, estimate
from ntk_core.runs.store import Store, UnfinishedJob
from ntk_core.settings.grammar import with_settings
from tests.jobs.conftest import PATIENCE_S, worker_pid

ENDLESS = with_settings(
    PRESETS["liu-fig1-left"].spec,
    {
        "widths": (30, 100, 300, 1000),
        "training.learning_rate": 1e-6,
        "training.loss_threshold": 1e-6,
        "training.max_steps": 10_000_000,
    },
)


def ended(snapshot):
    return not snapshot.active


@pytest.mark.parametrize("name", ["classroom", "hosted"])
def test_ten_million_steps_are_refused_where_a_run_may_take_minutes(name):
    """Typical steps alone would take seconds."""
    assert estimate(ENDLESS).seconds < PROFILES[name].max_seconds
    with pytest.raises(TooLarge) as refused:
        check_limits(ENDLESS, PROFILES[name])
    assert refused.value.field == "training.max_steps"
    assert refused.value.nearest < 10_000_000


def test_a_job_may_run_twice_as_long_as_it_could_take_and_never_less_than_a_minute():
    for name in ("classroom", "hosted"):
        assert PROFILES[name].allowed_s(100.0) == 200.0
        assert PROFILES[name].allowed_s(1.0) == LEAST_ALLOWED_S
    assert PROFILES["local"].allowed_s(100.0) == math.inf


@pytest.fixture
def make_jobs(tmp_path):
    made = []

    def make(**settings) -> Jobs:
        made.append(Jobs(Store(tmp_path / "s.sqlite"), num_workers=1, num_spare=0, **settings))
        return made[-1]

    yield make
    for each in made:
        each.shutdown()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_that_does_not_answer_is_ended_with_its_points_kept(make_jobs, long, wait_for, caplog, tmp_path):
    jobs = make_jobs(allowed_s=lambda most_s: 1e6)
    job_id = jobs.submit(long(seed=70))
    wait_for(jobs, job_id, lambda s: s.points)
    os.kill(worker_pid(jobs, job_id), signal.SIGSTOP)  # it hears nothing any more
    jobs._jobs[job_id].allowed_s = 0.1
    found = wait_for(jobs, job_id, ended)
    assert found.status == "stopped"
    assert "stopped by the server" in found.reason
    assert len(found.points) == 1
    assert any("a job was stopped by the server" in record.message for record in caplog.records)
    jobs.shutdown()

    store = Store(tmp_path / "s.sqlite")
    assert store.listed(digest(long(seed=70))).status == "stopped"
    assert store.unfinished_jobs() == ()
    later = make_jobs()
    later._pool.warm_up = lambda: None  # there is nothing to compute
    later.warm_up()
    again = later.snapshot(job_id)
    assert again.status == "stopped"
    assert again.result.status == "stopped"
    assert again.points == found.points
    assert "stopped by the server" in again.reason


def test_a_job_stopped_before_its_first_point_is_known_as_such_to_the_next_server(unattended, tiny, tmp_path):
    jobs = unattended()
    job_id = jobs.submit(tiny(seed=71))
    jobs._end(jobs._jobs[job_id], "stopped by the server")
    assert jobs.snapshot(job_id).status == "stopped"
    jobs.shutdown()
    assert unattended().snapshot(job_id).status == "stopped"
    assert Store(tmp_path / "unattended.sqlite").listed(digest(tiny(seed=71))).status == "stopped"


def test_spent_time_outlives_the_server(unattended, long, tmp_path):
    store, spec = Store(tmp_path / "unattended.sqlite"), long(seed=72)
    store.write_jobs([UnfinishedJob(spec, "", 1.0, running=True, spent_s=500.0)])
    store.close()
    jobs = unattended(allowed_s=lambda most_s: 600.0)
    jobs._inherit()
    assert 500.0 <= jobs._jobs[digest(spec)[:16]].spent_s() < 600.0


def test_a_long_job_gives_way_to_waiting_jobs_of_others_and_goes_on_later(unattended, tiny):
    """Nobody can keep a worker for as long as the longest job that is admitted."""
    jobs, killed = unattended(allowed_s=lambda most_s: 1e6), []
    jobs.submit(tiny(seed=74), viewer="one")
    job = jobs._next()
    job.worker = SimpleNamespace(kill=lambda: killed.append(job.job_id))
    own = jobs.submit(tiny(seed=75), viewer="one")
    job._since -= TURN_S + 1
    jobs._take_turns()
    assert job.status == "running"  # nobody gives way to himself
    other = jobs.submit(tiny(seed=76), viewer="other")
    job.stopping = True
    jobs._take_turns()
    job.stopping = False
    assert job.status == "running"
    jobs._take_turns()
    assert (job.status, job.turn_s, job.worker, killed) == ("queued", 2 * TURN_S, None, [job.job_id])
    assert "0 of 2" in job.snapshot().interruption
    assert next(each.job_id for each in jobs._queue.in_order()) == other
    assert {jobs._next().job_id for _ in range(3)} == {own, other, job.job_id}
    assert job.spent_s() > TURN_S
    assert not job.had_its_turn
    job._since -= TURN_S + 1
    assert not job.had_its_turn  # each turn is twice as long as the one before


def test_a_job_that_may_run_for_any_time_gives_way_to_nobody(unattended, tiny):
    jobs = unattended()
    jobs.submit(tiny(seed=77), viewer="one")
    job = jobs._next()
    job.worker = SimpleNamespace()
    job._since -= 1e6
    jobs.submit(tiny(seed=78), viewer="other")
    jobs._take_turns()
    assert job.status == "running"
    job.worker = None


@pytest.mark.slow
def test_an_operator_ends_a_job_of_another_process(jobs, shared_store_file, long, wait_for):
    job_id = jobs.submit(long(seed=73))
    wait_for(jobs, job_id, lambda s: s.status == "running" and s.points)
    other = Store(shared_store_file)
    (listed,) = other.unfinished_jobs()
    assert (listed.digest[:16], listed.spec, listed.ending) == (job_id, long(seed=73), False)
    other.end_job(listed.digest)
    found = wait_for(jobs, job_id, ended)
    assert (found.status, found.reason) == ("stopped", "stopped by the operator of the server")
    assert len(found.points) == 1
    deadline = time.monotonic() + PATIENCE_S
    while other.unfinished_jobs():  # what has ended is written down a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stopped_job_can_be_run_again(jobs, long, tiny, wait_for):
    first, job_id = jobs.submit(long(seed=79)), jobs.submit(tiny(seed=74))
    jobs._end(jobs._jobs[job_id], "stopped by the server")
    assert jobs.snapshot(job_id).status == "stopped"
    jobs.stop(first)
    jobs.submit(tiny(seed=74))
    assert wait_for(jobs, job_id, ended).status == "completed"
