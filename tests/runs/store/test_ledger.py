"""What is unfinished survives the server, however it ends, and is taken over once: in SQLite and in Postgres."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from ntk_core.runs import digest
from ntk_core.runs.store import Ledger, Store, UnfinishedJob
from tests.runs.store.made_runs import ROOT, spec

SERVER = """
import subprocess, sys, time
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs.store import Store, UnfinishedJob
ledger = Store(sys.argv[1]).ledger()
ledger.note(UnfinishedJob(KernelChangeSpec(), 'ann', 1.0))
ledger.write()
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_data_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def open_ledger(location) -> Iterator[Callable[[], Ledger]]:
    opened: list[tuple[Store, Ledger]] = []

    def open_one() -> Ledger:
        store = Store(location)
        opened.append((store, store.ledger()))
        return opened[-1][1]

    yield open_one
    for store, ledger in opened:
        ledger.close()
        store.close()


def job(seed: int, submitted_s: float = 1.0, **changes: int) -> UnfinishedJob:
    return UnfinishedJob(spec(seed), "ann", submitted_s, **changes)


def test_what_was_not_struck_out_is_inherited_in_order(open_ledger):
    first = open_ledger()
    for seed, submitted_s in ((1, 2.0), (2, 3.0), (3, 1.0), (4, 4.0)):
        first.note(job(seed, submitted_s))
    first.write()
    first.strike(spec(2))
    first.note(job(4, 4.0, num_servers=3))
    first.close()
    later = open_ledger()
    assert later.inherit() == (job(3, 1.0), job(1, 2.0), job(4, 4.0, num_servers=3))
    later.close()
    assert open_ledger().inherit() == (job(3, 1.0), job(1, 2.0), job(4, 4.0, num_servers=3))


def test_a_server_that_lives_keeps_its_jobs(open_ledger):
    first, second = open_ledger(), open_ledger()
    first.note(job(1))
    first.write()
    assert second.inherit() == ()
    first.close()
    assert second.inherit() == (job(1),)
    assert open_ledger().inherit() == ()  # they belong to the second one


def test_two_servers_may_have_the_same_job(open_ledger):
    first, second = open_ledger(), open_ledger()
    for ledger in (first, second):
        ledger.note(job(1))
        ledger.write()
    second.strike(spec(1))
    second.close()
    first.close()
    assert open_ledger().inherit() == (job(1),)


def test_nothing_is_left_behind_when_all_jobs_have_ended(open_ledger, tmp_path):
    ledger = open_ledger()
    ledger.note(job(1))
    ledger.write()
    assert [file for file in (tmp_path / "data").rglob("*") if file.is_file()] != []
    ledger.strike(spec(1))
    ledger.close()
    assert [file for file in (tmp_path / "data").rglob("*") if file.is_file()] == []
    assert open_ledger().inherit() == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}', '{"other": 1}'])
def test_a_row_that_cannot_be_read_is_left_out_and_goes(open_ledger, change, text, caplog):
    ledger = open_ledger()
    for seed in (1, 2):
        ledger.note(job(seed))
    ledger.write()
    change("UPDATE lab_jobs SET spec = :text WHERE digest = :digest", text=text, digest=digest(spec(1)))
    ledger.close()
    later = open_ledger()
    assert later.inherit() == (job(2),)
    assert "is damaged or of an older version" in caplog.text
    later.close()
    caplog.clear()
    assert open_ledger().inherit() == (job(2),)
    assert caplog.text == ""


def test_what_an_older_version_wrote_down_is_ignored_with_a_sentence(open_ledger, tmp_path, caplog):
    older = tmp_path / "data" / "linearity-lab" / "jobs" / ("0" * 16) / ("1" * 32) / "a.json"
    older.parent.mkdir(parents=True)
    older.write_text("{}")
    assert open_ledger().inherit() == ()
    assert caplog.text.count("of an older version; they are ignored") == 1


def test_a_directory_that_cannot_be_written_only_forgets(open_ledger, tmp_path, monkeypatch, caplog):
    ledger = open_ledger()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "below"))
    ledger.note(job(1))
    ledger.write()
    assert ledger.inherit() == ()
    assert "cannot be written down" in caplog.text


def test_what_could_not_be_written_is_written_the_next_time(open_ledger, tmp_path, monkeypatch):
    ledger = open_ledger()
    (tmp_path / "file").write_text("")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "file" / "below"))
        ledger.note(job(1))
        ledger.note(job(2))
        ledger.write()
    ledger.strike(spec(2))
    ledger.close()
    assert open_ledger().inherit() == (job(1),)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_server_leaves_its_jobs_although_its_children_live(open_ledger, location):
    command = [sys.executable, "-c", SERVER, location]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        child = int(server.stdout.readline())
        ledger = open_ledger()
        assert ledger.inherit() == ()
        server.kill()
    try:
        assert [left.owner for left in ledger.inherit()] == ["ann"]
    finally:
        os.kill(child, signal.SIGKILL)
