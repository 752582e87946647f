"""Parallel writes to one store from several processes, one of which is killed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sqlite3
import subprocess
import sys

from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store
from tests.runs.store.made_runs import ROOT, SPEC, point, result, spec

BEGIN = (
    "import os, signal, sys, tests.runs.store.made_runs as made\n"
    "from ntk_core.runs.store import Store\n"
    "store = Store(sys.argv[1], max_bytes=int(sys.argv[2])); number = int(sys.argv[3])\n"
)
SAVE = "points = store.points(made.SPEC)\n" + (
    "for i in range(15): points.save(f'{number}-{i}', made.point(10)); points.save(f'shared-{i}', made.point(10))\n"
)
FILL = (
    "for i in range(10):\n"
    "    store.points(made.spec(1000 + i)).save('width=10', made.point(10))\n"
    "    store.save_result(made.result(spec=made.spec(1000 + i)))\n"
    "    store.save_result(made.result(spec=made.spec(1000 * (number + 2) + i)))\n"
)
NO_LIMIT = 10**12


def start(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BEGIN + script, *map(str, arguments)], cwd=ROOT)


CLOSE = (
    "import sqlite3, sys\n"
    "connection = sqlite3.connect(sys.argv[1])\n"
    "connection.execute('CREATE TABLE another (x)'); connection.close()\n"
)


def test_second_store_of_a_process_keeps_the_locks_of_the_first(tmp_path):
    """Otherwise a process that seems to close the file last deletes this process's log."""
    file = tmp_path / "s.sqlite"
    with contextlib.closing(Store(file)) as store:
        store.save_spec(SPEC)
        Store(file).close()
        subprocess.run([sys.executable, "-c", CLOSE, str(file)], check=True)
        assert file.with_name("s.sqlite-wal").exists()
        store.points(SPEC).save("width=10", point(10))
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM lab_points").fetchone() == (1,)


def test_concurrent_writers_lose_no_point(location):
    processes = [start(SAVE, location, NO_LIMIT, number) for number in range(3)]
    store = Store(location)  # opened during creation by the others

    def write(thread: int) -> None:
        for i in range(10):
            store.points(SPEC).save(f"thread{thread}-{i}", point(10))

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    assert [process.wait() for process in processes] == [0] * 3
    found = store.points(SPEC).finished()
    assert len(found) == 3 * 15 + 15 + 3 * 10
    assert [run.num_points for run in store.runs().runs] == [len(found)]
    store.close()


def test_concurrent_evictions_stay_within_the_limit(location, num_bytes_of_a_run):
    limit = 15 * num_bytes_of_a_run
    processes = [start(FILL, location, limit, number) for number in range(3)]
    assert [process.wait() for process in processes] == [0] * 3
    one = Store(location, max_bytes=limit)
    one.save_result(result(spec=spec(1999)))
    assert one.num_bytes() <= limit
    rows = one.runs(limit=1000).runs
    assert 8 < len(rows) <= 15
    for run in rows:  # stored rows are complete
        found = one.result(run.digest)
        assert found is not None
        assert (found.spec, found.status, spec_digest(found.spec)) == (run.spec, "completed", run.digest)
    one.close()
