"""What is unfinished survives the server, however it ends, and is taken over once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dashboard.jobs._ledger import Entry, Ledger

ROOT = Path(__file__).resolve().parents[2]
SPEC = {"experiment": "kernel_change"}


def entry(submitted_s: float = 1.0, **changes) -> Entry:
    return Entry(SPEC, "ann", submitted_s, **changes)


@pytest.fixture
def open_ledger() -> Iterator[Callable[[Path], Ledger]]:
    opened: list[Ledger] = []

    def open_one(directory: Path) -> Ledger:
        opened.append(Ledger(directory))
        return opened[-1]

    yield open_one
    for ledger in opened:
        ledger.close()


def test_what_was_not_struck_out_is_inherited_in_order(open_ledger, tmp_path):
    first = open_ledger(tmp_path)
    for job_id, submitted_s in (("b", 2.0), ("a", 3.0), ("c", 1.0), ("d", 4.0)):
        first.note(job_id, entry(submitted_s))
    first.strike("a")
    first.note("d", entry(4.0, num_servers=3))
    first.close()
    later = open_ledger(tmp_path)
    assert later.inherit() == {"c": entry(1.0), "b": entry(2.0), "d": entry(4.0, num_servers=3)}
    later.close()
    assert list(open_ledger(tmp_path).inherit()) == ["c", "b", "d"]


def test_a_server_that_lives_keeps_its_jobs(open_ledger, tmp_path):
    first, second = open_ledger(tmp_path), open_ledger(tmp_path)
    first.note("a", entry())
    assert second.inherit() == {}
    first.close()
    assert list(second.inherit()) == ["a"]
    assert open_ledger(tmp_path).inherit() == {}  # they belong to the second one


def test_nothing_is_left_behind_when_all_jobs_have_ended(open_ledger, tmp_path):
    ledger = open_ledger(tmp_path)
    ledger.note("a", entry())
    ledger.strike("a")
    ledger.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"spec": {}}', '{"other": 1}', "\x00"])
def test_a_file_that_cannot_be_read_is_left_out(open_ledger, tmp_path, text):
    ledger = open_ledger(tmp_path)
    for job_id in ("a", "b"):
        ledger.note(job_id, entry())
    next(tmp_path.glob("*/a.json")).write_text(text)
    ledger.close()
    assert list(open_ledger(tmp_path).inherit()) == ["b"]


def test_a_directory_that_cannot_be_written_only_forgets(open_ledger, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    ledger = open_ledger(tmp_path / "file" / "below")
    ledger.note("a", entry())
    ledger.strike("a")
    assert ledger.inherit() == {}
    ledger.close()
    assert "cannot be written down" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_server_leaves_its_jobs_although_its_children_live(open_ledger, tmp_path):
    script = (
        "import subprocess, sys, time; from pathlib import Path; from dashboard.jobs._ledger import Entry, Ledger\n"
        "ledger = Ledger(Path(sys.argv[1])); ledger.note('a', Entry({}, 'ann', 1.0))\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        child = int(server.stdout.readline())
        ledger = open_ledger(tmp_path)
        assert ledger.inherit() == {}
        server.kill()
    try:
        assert list(ledger.inherit()) == ["a"]
    finally:
        os.kill(child, signal.SIGKILL)
