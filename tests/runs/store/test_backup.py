"""Backups of a store in use."""

import sqlite3
import threading

import pytest

from linearity_lab.cli import main
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, point, result, spec


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "lab" / "results.sqlite"
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(path))
    return path


def test_backup_during_a_run_is_whole_and_current(file, tmp_path, capsys):
    store = Store(file)
    store.lock_for_server()
    store.save_result(result(spec=spec(7)))
    saved: list[int] = []
    is_enough = threading.Event()

    def save() -> None:
        points = Store(file).points(SPEC)
        while not is_enough.is_set():
            width = 10 + len(saved)
            points.save(f"width={width}", point(width))
            saved.append(width)

    writer = threading.Thread(target=save)
    writer.start()
    try:
        for number in range(5):
            seen = len(saved)
            copy = tmp_path / f"copy-{number}.sqlite"
            assert main(["backup", str(copy)]) == 0
            assert "runs copied to" in capsys.readouterr().out
            # Everything stored before the backup began is in it, although it is only in
            # the write-ahead log.
            backup = Store(copy)
            assert len(backup.points_of(spec_digest(SPEC))) >= seen
            assert backup.result(spec_digest(spec(7))) == result(spec=spec(7))
            backup.close()
    finally:
        is_enough.set()
        writer.join()
    assert len(store.points_of(spec_digest(SPEC))) == len(saved) > 5
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
    store.close()


def test_backup_contains_the_write_ahead_log(file, tmp_path):
    store = Store(file)
    store.save_result(result())
    assert file.with_name(f"{file.name}-wal").stat().st_size > 0
    assert store.back_up(tmp_path / "copy.sqlite") == 1
    header = (tmp_path / "copy.sqlite").read_bytes()[:100]
    assert set(header[18:20]) == {1}  # without a log of its own
    store.close()


def test_backup_overwrites_nothing(file, tmp_path, capsys):
    store = Store(file)
    store.save_result(result())
    other = tmp_path / "thesis.txt"
    other.write_text("chapter 1")
    for target in (file, other, tmp_path):
        assert main(["backup", str(target)]) == 2
        assert "nothing is overwritten" in capsys.readouterr().err
    assert other.read_text() == "chapter 1"
    assert store.result(spec_digest(SPEC)) == result()
    assert main(["backup", str(tmp_path / "missing" / "copy.sqlite")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    store.close()


def test_backup_of_postgres_names_its_own_tool():
    store = object.__new__(Store)
    store._file = None
    store._shown = "postgresql://host/lab"
    with pytest.raises(InvalidInput, match="pg_dump"):
        store.back_up(None)


def test_durability_settings_are_those_documented(file):
    store = Store(file)
    found = {}
    for name in ("journal_mode", "synchronous", "auto_vacuum"):
        found[name] = store.do(
            lambda connection, name=name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
        )
    assert found == {"journal_mode": "wal", "synchronous": 2, "auto_vacuum": 1}
    store.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"LLb4"),)
