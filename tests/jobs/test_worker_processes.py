"""Worker processes: killed, orphaned, idle, warm, separate from the start script."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from linearity_lab.dashboard.jobs import _process, worker
from linearity_lab.runs import canonical_json
from linearity_lab.runs.compiled_code import compiled_code_directory
from linearity_lab.runs.events import parse_event
from tests.jobs.conftest import ended, eventually, has_a_point, worker_pid

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.long  # starts workers
def test_ended_preview_keeps_its_worker(jobs, long, tiny, wait_for):
    preview = jobs.submit(long(seed=31), is_preview=True)
    wait_for(jobs, preview, has_a_point)
    pid = worker_pid(jobs, preview)
    assert jobs.stop(preview)
    assert jobs.snapshot(preview).status == "cancelled"
    following = jobs.submit(tiny(seed=31), is_preview=True)
    assert wait_for(jobs, following, ended).status == "completed"
    assert pid in jobs.worker_pids()


def test_worker_that_does_not_end_is_killed(monkeypatch):
    pool = Mock()
    pool.schedule.return_value.done.return_value = False
    monkeypatch.setattr(worker, "GRACE_S", -1.0)
    computation = worker.WorkerComputation(pool, "{}", 1e9)
    computation.kill_if_late()
    computation.ask_to_end()  # before any worker has begun it
    assert pool.schedule.return_value.cancel.call_count == 1
    computation.pid = os.getpid()
    computation.kill_if_late()
    assert pool.schedule.return_value.cancel.call_count == 1
    computation.ask_to_end()
    assert computation._writer.recv_bytes() == b"end"
    computation.kill_if_late()
    assert pool.schedule.return_value.cancel.call_count == 2


@pytest.mark.long
@posix
def test_killed_workers_and_a_broken_pool_lose_no_point(jobs, long, tiny, wait_for):
    """A spare beside a running job, the job's worker, the pool (pebble abandons it),
    then all idle workers.
    """
    job_id = jobs.submit(long(seed=27))
    kept = wait_for(jobs, job_id, has_a_point).points
    pid = worker_pid(jobs, job_id)
    (spare,) = set(jobs.worker_pids()) - {pid}
    os.kill(spare, signal.SIGKILL)
    eventually(lambda: spare not in jobs.worker_pids() and len(jobs.worker_pids()) == 2)
    found = jobs.snapshot(job_id)
    assert (found.status, found.points, worker_pid(jobs, job_id)) == ("running", kept, pid)

    again = "run it again to continue from its finished points"
    waiting = jobs.submit(tiny(seed=27))
    os.kill(pid, signal.SIGKILL)
    failed = wait_for(jobs, job_id, ended)
    assert (failed.status, failed.points) == ("failed", kept)
    assert all(words in failed.reason for words in ("SIGKILL", "memory", again))
    assert wait_for(jobs, waiting, ended).status == "completed"
    jobs.submit(long(seed=27))
    assert wait_for(jobs, job_id, has_a_point).points == kept

    pid = worker_pid(jobs, job_id)
    jobs._workers._pool._pool_manager.handle_broken_pool(BrokenProcessPool("All workers expired"))
    failed = wait_for(jobs, job_id, ended)
    assert (failed.status, failed.points, failed.reason) == (
        "failed",
        kept,
        f"the worker process has ended; {again}",
    )
    eventually(lambda: len(jobs.worker_pids()) == 2 and pid not in jobs.worker_pids())
    before = jobs.worker_pids()
    for pid in before:
        with suppress(ProcessLookupError):  # the death of an idle worker ends the pool's others
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(jobs.worker_pids()) == 2 and set(jobs.worker_pids()).isdisjoint(before))
    done = wait_for(jobs, jobs.submit(tiny(seed=24)), ended)
    assert (done.status, done.reason) == ("completed", "")


@pytest.mark.slow  # starts processes
def test_a_broken_pool_that_never_ends_is_left_behind(monkeypatch):
    """Its threads do not end, and it forgets its work."""
    monkeypatch.setattr(_process, "ENDING_S", 0.1)
    pool = _process.LivePool(1, _process.prepare_child, ())
    lost = pool.schedule(time.sleep, (600,))
    eventually(pool.pids)
    (old,) = pool.pids()
    broken = pool._pool
    never = threading.Event()
    monkeypatch.setattr(broken, "join", never.wait)
    monkeypatch.setattr(broken._pool_manager.task_manager, "tasks_abort", lambda error: None)
    broken._pool_manager.handle_broken_pool(BrokenProcessPool("All workers expired"))
    assert not lost.done()
    assert pool.schedule(pow, (2, 3)).result(60) == 8
    assert isinstance(lost.exception(0), BrokenProcessPool)
    assert not psutil.pid_exists(old)
    assert old not in pool.pids()
    never.set()
    pool.close()
    assert pool.pids() == []


@pytest.mark.slow
@posix
def test_workers_die_with_a_killed_server(tmp_path):
    script = (
        "import sys, time; from linearity_lab.dashboard.jobs import Jobs; from "
        "linearity_lab.runs.store import Store\n"
        "jobs = Jobs(Store(sys.argv[1])); jobs.warm_up()\n"
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


def test_workers_alone_leave_out_the_start_script(tmp_path):
    """``multiprocessing`` would execute it: Streamlit's ``__main__`` is the script of the page.

    In a script of its own, since test processes have no start script.
    """
    script = tmp_path / "start.py"
    script.write_text(
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "seen = pathlib.Path(__file__).with_name('seen')\n"
        "seen.write_text(seen.read_text() + __name__ if seen.exists() else __name__)\n"
        "if __name__ == '__main__':\n"
        "    from linearity_lab.dashboard.jobs import _process\n"
        "    child = _process._NamedContext('pool').Process(target=print, args=('child',))\n"
        "    child.start(); child.join()\n"
        "    assert child.exitcode == 0 and sys.modules['__main__'].seen is seen\n"
        "    from multiprocessing import spawn\n"
        "    others = spawn.get_preparation_data('Process-1')\n"
        "    assert others['init_main_from_path'] == sys.argv[0]\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "child\n"
    assert (tmp_path / "seen").read_text() == "__main__"


@pytest.mark.slow
def test_idle_workers_use_little_processor_time(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=25)), ended)
    processes = [psutil.Process(), *map(psutil.Process, jobs.worker_pids())]

    def used() -> float:
        """Processor time of the busiest process within two seconds."""
        before = [sum(process.cpu_times()[:2]) for process in processes]
        time.sleep(2.0)
        return max(
            sum(process.cpu_times()[:2]) - start
            for process, start in zip(processes, before, strict=True)
        )

    # A worker may still be warming up; pebble's threads wake ten times a second.
    eventually(lambda: used() <= 0.1)


@pytest.mark.slow  # starts a pool
@posix
def test_workers_yield_to_pages_and_keep_compiled_code_private(jobs, tiny, wait_for):
    wait_for(jobs, jobs.submit(tiny(seed=25)), ended)
    assert max(psutil.Process(pid).nice() for pid in jobs.worker_pids()) > psutil.Process().nice()
    kept = compiled_code_directory()
    assert kept is not None
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert any(kept.glob("*-cache"))


@pytest.fixture
def sent(monkeypatch, tmp_path):
    """Messages of a worker, computed in this process."""
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    monkeypatch.setattr(worker, "limit_memory", lambda max_bytes: None)

    def send(spec_json: str) -> list[bytes]:
        reader, writer = Pipe()
        worker.compute(spec_json, writer, 2**40)
        found: list[bytes] = []
        with reader, suppress(EOFError):
            while reader.poll():
                found.append(reader.recv_bytes())
        return found

    return send


def test_worker_reports_its_process_and_names_errors(sent, tiny, monkeypatch):
    first, ended = sent('{"widths": [0]}')
    pid, resident = map(int, first.split())
    assert (pid, resident > 0) == (os.getpid(), True)
    event = parse_event(ended)
    assert (event.kind, event.status, event.reason[:8]) == ("ended", "failed", "widths: ")
    raised = ValueError("why\nand a second line")
    monkeypatch.setattr(worker, "run_to_end", Mock(side_effect=raised))
    event = parse_event(sent(canonical_json(tiny(27)))[-1])
    reason = "the computation failed (ValueError: why and a second line)"
    assert (event.status, event.reason) == ("failed", reason)


def test_jobs_load_neither_jax_nor_streamlit():
    script = (
        "import sys, linearity_lab.dashboard.jobs; sys.exit(bool({'jax', 'streamlit'} & "
        "set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
