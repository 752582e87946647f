"""Jobs ended by wall clock or memory: their points are kept and other jobs continue."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import parse_qsl

import pytest

from benchmarks.drills.attack import HUNGRY
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.jobs import Jobs, _jobs, worker
from linearity_lab.dashboard.jobs._job import Job
from linearity_lab.dashboard.jobs.profile import PROFILES
from linearity_lab.dashboard.jobs.worker import WorkerComputation, over_memory
from linearity_lab.runs import PRESETS, canonical_json, spec_digest
from linearity_lab.runs._this_process import cause_of, sentence
from linearity_lab.runs.events import (
    Cause,
    Ended,
    Event,
    PointFailed,
    PointFinished,
    PointProgress,
    parse_event,
)
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import spec_from_texts
from ntk_core.errors import InvalidInput
from tests.jobs.conftest import ended, has_a_point, worker_pid

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def make_jobs(tmp_path):
    made = []

    def make(profile="local", **limits) -> Jobs:
        made.append(
            Jobs(Store(tmp_path / "s.sqlite"), replace(PROFILES[profile], **limits), num_spare=0)
        )
        return made[-1]

    yield make
    for each in made:
        each.shutdown()


@pytest.mark.long  # starts two pools; a quick run below stops at its limit, too
@posix
def test_job_over_time_ends_with_its_points_kept(make_jobs, long, tiny, wait_for, caplog, tmp_path):
    jobs = make_jobs()
    job_id = jobs.submit(long(seed=70))
    wait_for(jobs, job_id, has_a_point)
    os.kill(worker_pid(jobs, job_id), signal.SIGSTOP)  # unresponsive to the request
    jobs._limits = replace(jobs._limits, max_job_s=0.1)
    found = wait_for(jobs, job_id, ended)
    assert (found.status, found.reason, len(found.points)) == (
        "stopped",
        "over time: under 1 s allowed",
        1,
    )
    assert any(
        record.facts.get("cause") == "over time"
        for record in caplog.records
        if hasattr(record, "facts")
    )
    jobs._limits = replace(jobs._limits, max_job_s=600.0)
    assert wait_for(jobs, jobs.submit(tiny(seed=70)), ended).status == "completed"
    jobs.shutdown()

    store = Store(tmp_path / "s.sqlite")
    assert {run.digest: run.status for run in store.runs().runs}[
        spec_digest(long(seed=70))
    ] == "stopped"
    assert store.unfinished_jobs() == ()
    again = make_jobs().snapshot(job_id)
    assert (again.status, again.result.status, again.points) == ("stopped", "stopped", found.points)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_job_over_memory_ends_and_others_go_on(make_jobs, long, tiny, wait_for, monkeypatch):
    """A 1, A 4: both take gibibytes despite far smaller estimates.

    The cap is the hosted profile's.
    """
    # It would refuse one of them.
    monkeypatch.setattr(_jobs, "check_limits", lambda spec, limits: None)
    jobs, cap = make_jobs("hosted", num_workers=2), PROFILES["hosted"].max_memory_bytes
    other = jobs.submit(long(seed=75), "ann")
    wait_for(jobs, other, has_a_point)
    pid = worker_pid(jobs, other)
    for experiment, preset in (("kernel_change", "liu-fig1-left"), ("early_time", "hu-fig1")):
        spec, wrong = spec_from_texts(dict(parse_qsl(HUNGRY[experiment])), PRESETS[preset].spec)
        assert not wrong
        greedy, most = jobs.submit(spec, "eve"), 0
        while jobs.snapshot(greedy).active:
            if computation := jobs._jobs[greedy].computation:
                most = max(most, computation.grown_bytes())
            time.sleep(0.02)
        found = jobs.snapshot(greedy)
        assert (found.status, found.reason) == ("stopped", over_memory(cap)), experiment
        assert most < cap + 2**29
        assert (jobs.snapshot(other).status, worker_pid(jobs, other)) == ("running", pid)
    assert wait_for(jobs, jobs.submit(tiny(seed=75), "eve"), ended).status == "completed"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit data")
def test_system_refuses_a_burst_beyond_the_budget():
    """XLA reports an error, and the worker survives."""
    script = (
        "import jax.numpy as jnp; from linearity_lab.dashboard.jobs._process import limit_memory\n"
        "jnp.ones(3).block_until_ready(); limit_memory(6e8)\n"
        "try:\n    jnp.ones(400_000_000).block_until_ready()\n"
        "except Exception as error:\n    print(str(error).splitlines()[0])\n"
        "print(float(jnp.ones(3).sum()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    refusal, after = done.stdout.splitlines()
    assert "RESOURCE_EXHAUSTED" in refusal
    assert after == "3.0"


def followed(spec, announced, monkeypatch):
    """Return what the worker passes on of a run that announces these events."""

    def announce(spec, *, on_event, **_):
        for event in announced:
            on_event(event)

    monkeypatch.setattr(worker, "run_to_end", announce)
    heard: list[Event] = []
    worker.follow(canonical_json(spec), 2**30, heard.append)
    return heard


def test_refused_memory_has_the_same_outcome(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    error = RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1600000000 bytes.")
    reason = sentence(error)
    failed = PointFailed(key="width=10", reason=reason, cause=cause_of(error))
    announced = [failed, Ended(status="failed", reason=reason)]
    events = followed(tiny(77), announced, monkeypatch)
    stopped = Ended(status="stopped", reason="over memory: 1 GiB allowed", cause=Cause.OVER_MEMORY)
    assert events == [failed, stopped]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (MemoryError(), Cause.OVER_MEMORY),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), Cause.OVER_MEMORY),
        (RuntimeError("the file contains RESOURCE_EXHAUSTED"), Cause.ERROR),
        (RuntimeError("my model ran out of memory cells"), Cause.ERROR),
        (InvalidInput("width", 0, "at least 1"), Cause.INVALID_INPUT),
    ],
)
def test_cause_is_independent_of_the_reason(error, cause):
    assert cause_of(error) is cause


def test_words_of_a_reason_do_not_end_a_job(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    failed = PointFailed(key="width=10", reason="the layer ran out of memory cells")
    ended = Ended(status="failed", reason=failed.reason)
    assert followed(tiny(78), [failed, ended], monkeypatch) == [failed, ended]


def finished_event(num_bytes: int) -> PointFinished:
    result = gallery_result("liu-fig1-left")
    point = result.points[0]
    longer = point.provenance or result.provenance
    longer = longer.model_copy(update={"device": "x" * num_bytes})
    return PointFinished(
        key=point.key, point=point.model_copy(update={"provenance": longer}), fraction=0.5
    )


def test_message_over_the_bound_ends_with_a_typed_outcome():
    small, large = finished_event(0), finished_event(200_000)
    sent: list[bytes] = []
    outbox = worker.Outbox(sent.append, 100_000)
    outbox.send(small)
    with pytest.raises(worker.EndsEarly) as refused:
        outbox.send(large)
    assert [parse_event(each) for each in sent] == [small]
    last = refused.value.event
    assert (last.status, last.result, last.cause) == ("stopped", None, Cause.OVER_SIZE)
    assert last.reason.startswith("over size: its result takes at least ")
    outbox.send(last)
    assert parse_event(sent[-1]) == last

    together = worker.Outbox(sent.append, 3.5 * len(sent[0]))
    for _ in range(3):
        together.send(small)
    with pytest.raises(worker.EndsEarly):
        together.send(small)

    partial = PointProgress(key=large.key, fraction=0.1, message="step 10", point=large.point)
    outbox.send(partial)
    assert parse_event(sent[-1]) == partial.model_copy(update={"point": None})


def test_too_large_result_ends_the_run_in_the_worker(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    small, large = finished_event(0), finished_event(200_000)
    sent: list[bytes] = []

    def announce(spec, *, on_event, **_):
        on_event(small)
        on_event(large)
        raise AssertionError("the run continues")

    monkeypatch.setattr(worker, "run_to_end", announce)
    worker.follow(canonical_json(tiny(79)), math.inf, worker.Outbox(sent.append, 100_000).send)
    first, last = map(parse_event, sent)
    assert first == small
    assert (last.status, last.cause) == ("stopped", Cause.OVER_SIZE)


def test_worker_without_a_listener_ends_its_run(tiny, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    listener, sender = multiprocessing.Pipe(duplex=False)
    listener.close()
    worker.compute(canonical_json(tiny(80)), sender, math.inf)
    assert sender.closed
    assert not caplog.records
    assert Store(tmp_path / "s.sqlite").points(tiny(80)).finished() == {}


def test_server_refuses_a_message_beyond_the_bound_unread(monkeypatch):
    pool = Mock()
    computation = WorkerComputation(pool, "{}", 2**30, max_result_bytes=1000)
    writer = pool.schedule.call_args.args[1][1]
    writer.send_bytes(b"1 1")
    assert computation.receive() is None
    computation.reader, sender = multiprocessing.Pipe(duplex=False)

    def send() -> None:
        with suppress(BrokenPipeError):  # the reader closes the pipe before it has read the message
            sender.send_bytes(b"x" * 1_000_000)

    sending = threading.Thread(target=send)
    sending.start()
    assert computation.receive() is None
    sending.join()
    assert computation.is_oversized
    assert computation.reader.closed


def test_last_message_repeats_no_point_and_the_job_joins_them():
    result = gallery_result("liu-fig1-left")
    events: list[Event] = [PointFinished(key=point.key, point=point) for point in result.points]
    events.append(Ended(status="completed", result=result))
    sent: list[bytes] = []
    outbox = worker.Outbox(sent.append, 10**9)
    for event in events:
        outbox.send(event)
    assert len(sent[-1]) < 10_000
    job = Job(result.spec)
    job.begin()
    for each in sent:
        job.take(parse_event(each))
    assert (job.status, job.now.result) == ("completed", result)


def test_stored_result_beyond_the_bound_is_shown_in_part(tmp_path):
    result = gallery_result("liu-fig1-left")
    store = Store(tmp_path / "s.sqlite")
    store.save_result(result)
    sizes = store.stored_bytes(spec_digest(result.spec))
    job = Job.recalled(store, result.spec, sum(sizes.values()) - 1)
    assert 0 < len(job.now.points) < len(result.points)
    assert job.status == "stopped"
    assert "can be shown here" in job.now.reason
    assert len(job.now.points) + job.now.num_unloaded == len(result.points)
    assert Job.recalled(store, result.spec, sum(sizes.values())).now.result == result
    store.close()


@pytest.mark.long  # waits for a worker and its first point
def test_a_quick_run_stops_at_its_limit_with_its_points(make_jobs, long, wait_for):
    jobs, spec = make_jobs(), long(seed=71)
    job_id = jobs.submit(spec, quick_s=600.0)
    wait_for(jobs, job_id, has_a_point)
    jobs._jobs[job_id].quick_s = 0.5
    found = wait_for(jobs, job_id, ended)
    assert (found.status, len(found.points)) == ("stopped", 1)
    assert found.reason == "the time of this quick run is over (under 1 s)"
    jobs.submit(spec)  # all of it
    assert jobs._jobs[job_id].quick_s == math.inf


def test_a_run_far_slower_than_estimated_says_so(tiny):
    job = Job(tiny(seed=72))
    job.begin()
    assert job.expected_s > 0
    for remaining_s, late_s in ((job.expected_s, 0.0), (1000.0, job.expected_s)):
        job.now = replace(job.now, remaining_s=remaining_s)
        assert job.late_s() == late_s
