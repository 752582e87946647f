"""What happens to processes: killed, deaf, orphaned, idle."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from linearity_lab.jobs import Jobs
from ntk_core.runs.compiled_code import compiled_code_directory, is_supported
from ntk_core.runs.store import Store
from tests.jobs.conftest import PATIENCE_S, worker_pid

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def ended(snapshot):
    return not snapshot.active


def has_a_point(snapshot):
    return len(snapshot.points) > 0 and snapshot.status == "running"


@pytest.mark.slow
@posix
def test_a_job_whose_worker_dies_says_why_and_goes_on_by_itself_but_not_for_ever(jobs, long, tiny, wait_for):
    """At one point: a crash, then two kills from outside; after the third death the job fails and keeps its points."""
    job_id = jobs.submit(long(seed=20))

    def at_the_wide_point(snapshot) -> bool:
        return snapshot.status == "running" and "3,000" in snapshot.message and worker_pid(jobs, job_id) not in pids

    pids: list[int | None] = [None]
    kept = wait_for(jobs, job_id, has_a_point).points
    for number, name in ((signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL")):
        wait_for(jobs, job_id, at_the_wide_point)
        pids.append(worker_pid(jobs, job_id))
        os.kill(pids[-1], number)
        resumed = wait_for(jobs, job_id, lambda s: at_the_wide_point(s) and s.interruption)
        assert (resumed.points, resumed.reason) == (kept, "")
        assert name in resumed.interruption
        assert ("memory" in resumed.interruption) == (name == "SIGKILL")
        assert "width 3000" in resumed.interruption
        assert "\n" not in resumed.interruption
    os.kill(worker_pid(jobs, job_id), signal.SIGKILL)
    failed = wait_for(jobs, job_id, ended)
    assert (failed.status, failed.points) == ("failed", kept)
    assert "SIGKILL" in failed.reason
    assert "3 times at width 3000" in failed.reason
    assert wait_for(jobs, jobs.submit(tiny(seed=20)), ended).status == "completed"


@pytest.mark.slow
@posix
def test_a_worker_that_does_not_listen_is_killed_after_the_grace(tmp_path, long, tiny, wait_for):
    jobs = Jobs(Store(tmp_path / "own.sqlite"), num_workers=1, grace_s=0.5)
    try:
        job_id = jobs.submit(long(seed=22))
        kept = wait_for(jobs, job_id, has_a_point).points
        pid = worker_pid(jobs, job_id)
        os.kill(pid, signal.SIGSTOP)
        jobs.stop(job_id)
        began = time.monotonic()
        stopped = wait_for(jobs, job_id, ended)
        assert 0.4 < time.monotonic() - began < 5
        assert (stopped.status, stopped.points, stopped.reason) == ("cancelled", kept, "")
        assert wait_for(jobs, jobs.submit(tiny(seed=22)), ended).status == "completed"
        assert pid not in jobs.worker_pids()
    finally:
        jobs.shutdown()


@pytest.mark.slow
@posix
def test_workers_killed_while_idle_harm_no_job_and_are_replaced(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=23)), ended)
    before = jobs.worker_pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while not set(jobs.worker_pids()).isdisjoint(before):  # until the server has noticed
        assert time.monotonic() < deadline
        time.sleep(0.05)
    done = wait_for(jobs, jobs.submit(tiny(seed=24)), ended)
    assert (done.status, done.interruption) == ("completed", "")
    assert set(jobs.worker_pids()).isdisjoint(before)


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "value"), [("MAX_JOBS", 1), ("MAX_GROWN_BYTES", -1)])
def test_a_worker_is_replaced_after_so_many_jobs_or_so_much_memory(jobs, tiny, wait_for, monkeypatch, bound, value):
    monkeypatch.setattr(f"linearity_lab.jobs._pool.{bound}", value)
    job_id = jobs.submit(tiny(seed=1_600 + value))
    seen = set()

    def done(snapshot) -> bool:
        seen.add(worker_pid(jobs, job_id))
        return ended(snapshot)

    assert wait_for(jobs, job_id, done).status == "completed"
    (worker,) = seen - {None}
    deadline = time.monotonic() + PATIENCE_S
    while worker in jobs.worker_pids():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    monkeypatch.undo()
    assert wait_for(jobs, jobs.submit(tiny(seed=1_700 + value)), ended).status == "completed"


@pytest.mark.slow
@posix
def test_workers_die_with_a_killed_server(tmp_path):
    script = (
        "import sys, time; from linearity_lab.jobs import Jobs; from ntk_core.runs.store import Store\n"
        "jobs = Jobs(Store(sys.argv[1]), num_workers=2); jobs.warm_up()\n"
        "while len(jobs.worker_pids()) < 2: time.sleep(0.01)\n"
        "print(*jobs.worker_pids(), flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "s.sqlite")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in server.stdout.readline().split()]
        server.kill()
    assert len(workers) == 2
    assert psutil.wait_procs(workers, timeout=20)[1] == []


@pytest.mark.slow
def test_an_idle_worker_and_its_server_use_no_processor_time(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=25)), ended)
    processes = [psutil.Process(), psutil.Process(jobs.worker_pids()[0])]
    time.sleep(0.3)
    before = [sum(process.cpu_times()[:2]) for process in processes]
    time.sleep(1.5)
    used = [sum(process.cpu_times()[:2]) - start for process, start in zip(processes, before, strict=True)]
    assert max(used) <= 0.04  # of 1.5 s; the clock ticks every 0.01 s


@posix
def test_workers_yield_to_the_pages(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=25)), ended)
    jobs.warm_up()
    worker = jobs.worker_pids()[0]
    assert psutil.Process(worker).nice() > psutil.Process().nice()
    assert os.getsid(worker) == os.getsid(0)  # niceness counts within a session
    assert os.getpgid(worker) == worker  # Ctrl-C does not reach it


@posix
@pytest.mark.skipif(not is_supported(), reason="this jaxlib complains when it reads its own code: nothing is kept")
def test_compiled_code_is_kept_where_only_the_user_writes(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=26)), ended)
    kept = compiled_code_directory()
    assert kept is not None
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert any(kept.glob("*-cache"))


def test_a_stray_print_does_not_reach_the_server():
    script = (
        "import os, sys; from linearity_lab.jobs import worker\n"
        "out = worker._reserve_stdout(); print('stray', flush=True); os.write(1, b'stray too')\n"
        "worker._say(out, 'event')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"event\n"
    assert b"stray too" in done.stderr


def test_a_worker_that_is_sent_a_broken_spec_says_so_and_goes_on(tmp_path, tiny):
    environment = {**os.environ, "LINEARITY_LAB_STORE": str(tmp_path / "s.sqlite"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "linearity_lab.jobs.worker"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(b'{"run": {"widths": [0]}}\n')
        worker.stdin.write(json.dumps({"run": tiny(seed=27).model_dump(mode="json")}).encode() + b"\n")
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline()) == {"kind": "ready"}
        refused, accepted = (json.loads(worker.stdout.readline()) for _ in range(2))
        worker.stdin.close()
    assert (refused["kind"], refused["status"]) == ("ended", "failed")
    assert refused["reason"].startswith("widths: ")
    assert accepted["kind"] == "estimated"


def test_jobs_load_neither_jax_nor_streamlit():
    script = "import sys, linearity_lab.jobs; sys.exit(bool({'jax', 'streamlit'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
