"""Two versions of the lab with one file.

Neither renames it or loses a run while the other uses it.
"""

import shutil
import subprocess
import sys
import textwrap

import pytest
from filelock import FileLock

from linearity_lab.runs.store import Store
from linearity_lab.runs.store._database import LAYOUT
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, result
from tests.runs.store.test_released_stores import RELEASED, written_runs

# As a process of version 0.2.0 uses its file: an open connection, and the lock of a server.
EARLIER = """
    import sqlite3, sys
    from filelock import FileLock
    connection = sqlite3.connect(sys.argv[1])
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("SELECT count(*) FROM lab_results").fetchone()
    if sys.argv[2] == "server":
        lock = FileLock(sys.argv[1] + ".lock")
        lock.acquire()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "runs.sqlite"
    shutil.copy(RELEASED[0] / "runs.sqlite", path)
    return path


@pytest.mark.parametrize("kind", ["server", "command"])
def test_file_in_use_by_an_earlier_version_stays(file, kind):
    command = [sys.executable, "-c", textwrap.dedent(EARLIER), str(file), kind]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as earlier:
        assert earlier.stdout is not None
        assert earlier.stdout.readline() == "ready\n"
        before = file.stat()
        with pytest.raises(InvalidInput, match="end the server of the earlier version"):
            Store(file, busy_timeout_s=0.2)
        assert file.stat().st_ino == before.st_ino
        assert int.from_bytes(file.read_bytes()[60:64]) == 3
        assert not list(file.parent.glob("*.layout-*"))
        earlier.communicate("")
    store = Store(file)  # afterwards it is migrated, with all runs
    assert store.runs().total == len(written_runs(RELEASED[0]))
    store.close()


def test_newer_layout_is_refused_untouched_under_its_server(file):
    Store(file).close()
    content = bytearray(file.read_bytes())
    content[60:64] = (LAYOUT + 1).to_bytes(4)
    file.write_bytes(content)
    names = sorted(path.name for path in file.parent.iterdir())
    with (
        FileLock(f"{file}.lock"),
        pytest.raises(InvalidInput, match=f"newer version of the lab wrote layout {LAYOUT + 1}"),
    ):
        Store(file, busy_timeout_s=0.2)
    assert file.read_bytes() == content
    assert sorted(path.name for path in file.parent.iterdir()) == names


def test_layout_too_old_is_not_renamed_under_a_server(file):
    Store(file).close()
    content = bytearray(file.read_bytes())
    content[60:64] = (2).to_bytes(4)
    file.write_bytes(content)
    command = [sys.executable, "-c", textwrap.dedent(EARLIER), str(file), "server"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        with pytest.raises(InvalidInput, match="a running server uses it"):
            Store(file, busy_timeout_s=0.2)
        assert int.from_bytes(file.read_bytes()[60:64]) == 2
        assert not list(file.parent.glob("*.layout-2-*"))
        server.communicate("")
    store = Store(file)
    assert store.runs().total == 0
    assert len(list(file.parent.glob("*.layout-2-*"))) >= 1  # kept beside the new file
    store.close()


def test_runs_of_one_version_stay_while_the_other_reads(file):
    server = Store(file)
    server.lock_for_server()
    server.save_result(result())
    other = Store(file)
    assert other.runs().total == server.runs().total == len(written_runs(RELEASED[0])) + 1
    other.delete(other.find(server.runs().runs[-1].digest)[0])
    assert server.spec(server.runs().runs[0].digest) == SPEC
    assert server.runs().total == len(written_runs(RELEASED[0]))
    other.close()
    server.close()
