"""Jobs through real worker processes: shared, stopped, resumed, found again."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from linearity_lab.dashboard.jobs import Jobs, Snapshot, _jobs
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store
from ntk_core.errors import InvalidInput
from tests.jobs.conftest import ended, eventually, has_a_point

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def seen(jobs, tiny) -> list[Snapshot]:
    """Snapshots of a job submitted by eight threads."""
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.append(jobs.submit(tiny(seed=4)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids == [spec_digest(tiny(seed=4))[:16]] * 8
    found = [jobs.snapshot(ids[0])]
    while found[-1].active:
        found.append(jobs.snapshot(ids[0]))
        time.sleep(0.001)
    return found


@pytest.mark.slow
def test_equal_specs_share_one_job_and_see_its_points_arrive(jobs, tiny, seen):
    counts = [len(snapshot.points) for snapshot in seen]
    assert set(counts) == {0, 1, 2}
    assert counts == sorted(counts)
    fractions = [snapshot.fraction for snapshot in seen]
    assert fractions == sorted(fractions)
    assert jobs.submit(tiny(seed=4)) == seen[-1].job_id
    assert jobs.snapshot(seen[-1].job_id) is seen[-1]


@pytest.mark.slow
def test_job_gives_what_run_gives(seen, tiny):
    # Equal to the last bit in another process, which compiles like the worker and not like tests.
    program = (
        "import sys; from linearity_lab.experiments import KernelChangeSpec, run; "
        "*_, last = run(KernelChangeSpec.model_validate_json(sys.argv[1])); "
        "print(last.result.model_dump_json())"
    )
    command = [sys.executable, "-c", program, tiny(seed=4).model_dump_json()]
    directly = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    last = KernelChangeResult.model_validate_json(directly.stdout.splitlines()[-1])
    snapshot = seen[-1]
    assert (snapshot.status, snapshot.fraction, snapshot.reason) == ("completed", 1.0, "")
    assert snapshot.result is not None
    assert snapshot.result.points == snapshot.points
    assert snapshot.result.rows() == last.rows()


def test_stop_keeps_points_and_submit_resumes(jobs, long, wait_for):
    spec = long(seed=5)
    job_id = jobs.submit(spec)
    kept = wait_for(jobs, job_id, has_a_point).points
    began = time.monotonic()
    assert jobs.stop(job_id)
    stopped = jobs.snapshot(job_id)
    assert time.monotonic() - began < 20  # the rest of the run takes minutes
    assert (stopped.status, stopped.points, stopped.reason) == ("cancelled", kept, "")
    assert (stopped.result.status, stopped.result.points) == ("cancelled", kept)
    assert stopped.result.provenance.data_sha256
    jobs.submit(spec)
    resumed = wait_for(jobs, job_id, lambda s: s.status == "running" and "3,000" in s.message)
    assert resumed.points == kept  # a second computation would have another runtime
    jobs.stop(job_id)
    assert jobs.snapshot(job_id).points == kept


@pytest.mark.long
def test_another_process_ends_a_job_and_the_next_one_runs(
    jobs, seen, shared_store_file, tiny, long, wait_for
):
    completed, running = seen[-1], wait_for(jobs, jobs.submit(long(seed=6)), has_a_point)
    later = Jobs(Store(shared_store_file))
    found = later.snapshot(completed.job_id)
    assert (found.status, found.spec, found.result) == ("completed", tiny(seed=4), completed.result)
    found = later.snapshot(running.job_id)
    assert (found.status, found.points) == ("cancelled", running.points)
    assert later.worker_pids() == []
    later.shutdown()

    second, third = jobs.submit(tiny(seed=7)), jobs.submit(tiny(seed=8))
    assert [jobs.snapshot(job).position for job in (running.job_id, second, third)] == [0, 1, 2]
    jobs.stop(second)
    assert jobs.snapshot(second).status == "cancelled"
    assert jobs.snapshot(third).position == 1
    operator = Store(shared_store_file)
    (digest,) = (job.digest for job in operator.unfinished_jobs() if job.spec == long(seed=6))
    operator.end_job(digest)
    found = wait_for(jobs, running.job_id, ended)
    assert (found.status, found.reason) == ("stopped", "stopped by the operator of the server")
    assert found.points == running.points
    assert wait_for(jobs, third, ended).status == "completed"
    eventually(lambda: not operator.unfinished_jobs())


def test_spec_that_does_not_fit_fails_with_a_sentence(jobs, tiny, wait_for, monkeypatch):
    # The worker repeats the check.
    monkeypatch.setattr(_jobs, "check_limits", lambda spec, limits: None)
    spec = tiny(seed=12, widths=(10_000_000,), dataset=DatasetSpec(num_samples=10_000))
    snapshot = wait_for(jobs, jobs.submit(spec), ended)
    assert snapshot.status == "failed"
    assert "GiB are available" in snapshot.reason
    assert "\n" not in snapshot.reason


@pytest.mark.parametrize(
    "job_id", ["", "nonsense", "0" * 16, "%" * 16, "../../etc/passwd", "0" * 5000, "é" * 16]
)
def test_unknown_job_is_none(jobs, job_id):
    assert jobs.snapshot(job_id) is None
    assert jobs.stop(job_id)


def test_unusable_store_is_refused(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_STORE", "/dev/null/results.sqlite")
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_STORE"):
        Jobs()
