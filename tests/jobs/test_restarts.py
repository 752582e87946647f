"""Restarts: the next server takes over unfinished jobs, however the last one ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.jobs import Jobs
from ntk_core.runs import canonical_json, spec_digest
from ntk_core.runs.store import Store
from tests.jobs.conftest import ended

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import sys, time
from linearity_lab.jobs import Jobs
from ntk_core.runs import parse_spec
from ntk_core.runs.store import Store

jobs = Jobs(Store(sys.argv[1]), num_spare=0)
ids = [jobs.submit(parse_spec(text)) for text in sys.argv[2:]]
while not jobs.snapshot(ids[0]).points:
    time.sleep(0.01)
print("a point", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def served(tmp_path, long, tiny):
    """A server with a running job, one of whose points is finished, and a waiting job."""
    specs = (long(seed=60), tiny(seed=60))
    command = [sys.executable, "-c", SERVER, str(tmp_path / "s.sqlite"), *map(canonical_json, specs)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "a point\n"
        yield server, [spec_digest(spec)[:16] for spec in specs]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_the_next_server_resumes_all_jobs_of_a_killed_one(served, tmp_path, wait_for):
    server, (running, waiting) = served
    store = Store(tmp_path / "s.sqlite")
    kept = tuple(store.points(store.spec(running)).finished().values())
    assert len(kept) == 1
    server.send_signal(signal.SIGKILL)
    server.wait(timeout=30)

    later = Jobs(store, num_spare=0)
    try:
        later.warm_up()
        assert later.snapshot(waiting).status == "queued"
        resumed = wait_for(later, running, lambda s: s.status == "running" and "3,000" in s.message)
        assert resumed.points == kept
        later.stop(running)
        assert wait_for(later, waiting, ended).status == "completed"
    finally:
        later.shutdown()

    last = Jobs(Store(tmp_path / "s.sqlite"))
    try:
        last.warm_up()
        assert last.snapshot(running).status == "cancelled"  # stopped by a user
        assert last.snapshot(running).points == kept
    finally:
        last.shutdown()
