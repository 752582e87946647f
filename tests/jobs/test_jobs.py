"""Jobs through real worker processes: shared, queued, stopped, resumed, found again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from linearity_lab.jobs import Jobs, QueueFull, TooManyJobs, _presence
from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.result import KernelChangeResult
from ntk_core.runs import digest
from ntk_core.runs.store import Store

ROOT = Path(__file__).resolve().parents[2]


def ended(snapshot):
    return not snapshot.active


def has_a_point(snapshot):
    return len(snapshot.points) > 0 and snapshot.status == "running"


@pytest.mark.slow
def test_a_job_gives_what_run_gives(jobs, tiny, wait_for):
    spec = tiny(seed=1)
    job_id = jobs.submit(spec)
    assert job_id == digest(spec)[:16]
    snapshot = wait_for(jobs, job_id, ended)
    # In a process of its own, which compiles as the worker does and not as tests do: to the last bit.
    program = (
        "import sys; from ntk_core import KernelChangeSpec, run; "
        "*_, last = run(KernelChangeSpec.model_validate_json(sys.argv[1])); "
        "print(last.result.model_dump_json())"
    )
    command = [sys.executable, "-c", program, spec.model_dump_json()]
    directly = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    last = KernelChangeResult.model_validate_json(directly.stdout.splitlines()[-1])
    assert (snapshot.status, snapshot.fraction, snapshot.reason) == ("completed", 1.0, "")
    assert snapshot.estimate is not None
    assert snapshot.result is not None
    assert snapshot.result.points == snapshot.points
    assert snapshot.result.rows() == last.rows()


def test_points_arrive_one_by_one_and_the_version_grows(jobs, tiny, wait_for):
    job_id = jobs.submit(tiny(seed=2))
    seen = [jobs.snapshot(job_id)]
    while seen[-1].active:
        if (latest := jobs.snapshot(job_id)).version != seen[-1].version:
            seen.append(latest)
        time.sleep(0.001)
    assert {len(snapshot.points) for snapshot in seen} == {0, 1, 2}
    versions = [snapshot.version for snapshot in seen]
    assert versions == sorted(set(versions))
    fractions = [snapshot.fraction for snapshot in seen]
    assert fractions == sorted(fractions)


def test_equal_specs_share_one_job(jobs, tiny, wait_for):
    spec = tiny(seed=3)
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(jobs.submit(tiny(seed=3)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(ids) == {digest(spec)[:16]}
    version = wait_for(jobs, ids[0], ended).version
    assert jobs.submit(spec) == ids[0]
    assert jobs.snapshot(ids[0]).version == version


def test_a_finished_job_is_found_after_a_restart_without_computing(jobs, shared_store_file, tiny, wait_for):
    spec = tiny(seed=4)
    before = wait_for(jobs, jobs.submit(spec), ended)
    later = Jobs(Store(shared_store_file), num_workers=1)
    found = later.snapshot(before.job_id)
    assert found is not None
    assert (found.status, found.spec, found.result) == ("completed", spec, before.result)
    assert later.worker_pids() == []
    later.shutdown()


def test_stop_keeps_the_points_and_the_next_submit_resumes(jobs, long, wait_for):
    spec = long(seed=5)
    job_id = jobs.submit(spec)
    kept = wait_for(jobs, job_id, has_a_point).points
    jobs.stop(job_id)
    stopped = wait_for(jobs, job_id, ended)
    assert (stopped.status, stopped.points, stopped.reason) == ("cancelled", kept, "")
    assert (stopped.result.status, stopped.result.points) == ("cancelled", kept)  # to take along, however it ended
    assert stopped.result.provenance.data_sha256
    jobs.submit(spec)
    resumed = wait_for(jobs, job_id, lambda s: s.status == "running" and "3,000" in s.message)
    assert resumed.points == kept  # the runtime would differ had it been computed again
    assert resumed.version > stopped.version
    jobs.stop(job_id)
    assert wait_for(jobs, job_id, ended).points == kept


def test_an_interrupted_job_is_found_after_a_restart_with_its_points(jobs, shared_store_file, long, wait_for):
    job_id = jobs.submit(long(seed=6))
    kept = wait_for(jobs, job_id, has_a_point).points
    later = Jobs(Store(shared_store_file), num_workers=1)
    found = later.snapshot(job_id)
    assert found is not None
    assert (found.status, found.points) == ("cancelled", kept)
    assert "run it again" in found.message
    later.shutdown()
    jobs.stop(job_id)
    wait_for(jobs, job_id, ended)


def test_jobs_wait_in_order_and_a_waiting_one_can_be_stopped(jobs, long, tiny, wait_for):
    first = jobs.submit(long(seed=7))
    wait_for(jobs, first, lambda s: s.status == "running")
    second, third = jobs.submit(tiny(seed=7)), jobs.submit(tiny(seed=8))
    assert [jobs.snapshot(job).position for job in (first, second, third)] == [0, 1, 2]
    before = jobs.snapshot(third)
    jobs.stop(second)
    assert jobs.snapshot(second).status == "cancelled"
    assert jobs.snapshot(third).position == 1
    assert jobs.snapshot(third).version > before.version
    jobs.stop(first)
    assert wait_for(jobs, third, ended).status == "completed"


def test_the_queue_is_bounded(unattended, long, tiny):
    jobs = unattended(max_waiting=1)
    jobs.submit(long(seed=9))
    jobs._next()
    waiting = jobs.submit(tiny(seed=109))
    with pytest.raises(QueueFull, match="waiting"):
        jobs.submit(tiny(seed=110))
    assert jobs.submit(tiny(seed=109)) == waiting  # attaching needs no place


def test_stop_only_detaches_while_somebody_else_looks(jobs, long, wait_for, monkeypatch):
    monkeypatch.setattr(_presence, "VIEWER_TIMEOUT_S", 1.0)
    job_id = jobs.submit(long(seed=10), viewer="ann")
    wait_for(jobs, job_id, has_a_point, viewer="ann")
    jobs.snapshot(job_id, viewer="bob")
    assert not jobs.stop(job_id, viewer="ann")
    time.sleep(0.5)
    assert jobs.snapshot(job_id, viewer="bob").status == "running"
    time.sleep(1.1)  # bob has closed his browser
    assert jobs.stop(job_id, viewer="ann")
    assert wait_for(jobs, job_id, ended).status == "cancelled"


def test_only_viewers_whose_browser_is_there_hold_a_job(unattended, long):
    jobs, connected = unattended(), {"ann", "reloaded"}
    jobs.ask_presence(connected.__contains__)
    job_id = jobs.submit(long(seed=13), viewer="ann")
    jobs.snapshot(job_id, viewer="reloaded")
    assert not jobs.stop(job_id, viewer="reloaded")
    assert not jobs.stop(job_id, viewer="a third one")  # ann is there, whenever she looked last
    jobs.snapshot(job_id, viewer="reloaded")
    connected.remove("ann")  # her page was loaded again: another session, at once
    assert jobs.stop(job_id, viewer="reloaded")
    assert jobs.snapshot(job_id).status == "cancelled"


def test_who_follows_another_job_does_not_hold_this_one(unattended, long):
    jobs = unattended()
    jobs.ask_presence(lambda viewer: True)
    job_id = jobs.submit(long(seed=14), viewer="ann")
    assert not jobs.stop(job_id, viewer="bob")
    jobs.leave(job_id, "ann")
    assert jobs.stop(job_id, viewer="bob")


def test_waiting_tells_when_a_job_begins_and_ends(jobs, long, tiny, wait_for):
    first = jobs.submit(long(seed=15))
    wait_for(jobs, first, lambda s: s.status == "running")
    second, third = jobs.submit(tiny(seed=15)), jobs.submit(tiny(seed=16))
    one, two = jobs.snapshot(second), jobs.snapshot(third)
    assert jobs.snapshot(first).starts_in_s is None
    assert 0 < one.starts_in_s < one.remaining_s == pytest.approx(two.starts_in_s, rel=0.05)
    assert two.remaining_s > two.starts_in_s
    for job_id in (third, second, first):
        jobs.stop(job_id, wait_s=1.0)
        assert jobs.snapshot(job_id).status == "cancelled"


def test_a_full_queue_gives_up_what_nobody_waits_for(unattended, long, tiny):
    jobs, connected = unattended(max_waiting=1, max_per_viewer=2), {"ann", "bob"}
    jobs.ask_presence(connected.__contains__)
    jobs.submit(long(seed=17), "ann")
    jobs._next()
    left = jobs.submit(tiny(seed=111), "ann")
    with pytest.raises(TooManyJobs):
        jobs.submit(tiny(seed=112), "ann")
    with pytest.raises(QueueFull):
        jobs.submit(tiny(seed=112), "bob")
    connected.remove("ann")
    assert jobs.snapshot(jobs.submit(tiny(seed=112), "bob")).position == 1
    assert jobs.snapshot(left).status == "cancelled"


def test_a_job_submitted_while_it_stops_starts_again(jobs, long, wait_for):
    spec = long(seed=11)
    job_id = jobs.submit(spec)
    kept = wait_for(jobs, job_id, has_a_point).points
    jobs.stop(job_id)
    jobs.submit(spec)
    wait_for(jobs, job_id, lambda s: s.status == "running" and "3,000" in s.message)
    assert jobs.snapshot(job_id).points == kept
    jobs.stop(job_id)
    wait_for(jobs, job_id, ended)


def test_a_spec_that_does_not_fit_fails_with_a_sentence(jobs, tiny, wait_for):
    spec = tiny(seed=12, widths=(10_000_000,), dataset=DatasetSpec(num_samples=10_000))
    snapshot = wait_for(jobs, jobs.submit(spec), ended)
    assert snapshot.status == "failed"
    assert "GiB are available" in snapshot.reason
    assert "\n" not in snapshot.reason


@pytest.mark.parametrize("job_id", ["", "nonsense", "0" * 16, "%" * 16, "../../etc/passwd", "0" * 5000, "é" * 16])
def test_an_unknown_job_is_none(jobs, job_id):
    assert jobs.snapshot(job_id) is None
    jobs.stop(job_id)


def test_an_unusable_store_is_refused(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_STORE", "/dev/null/results.sqlite")
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_STORE"):
        Jobs()
