"""SQLite files: damaged stores are set aside, files of other programs are refused unchanged."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sqlite3
import stat
import subprocess
import sys

import pytest

from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store, _database
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, point, result, spec


@pytest.fixture
def file(tmp_path):
    return tmp_path / "lab" / "results.sqlite"


FOREIGN = {"text": b"this is no database " * 500, "one byte": b"x", "database": b""}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_file_is_refused_untouched(file, kind):
    file.parent.mkdir()
    file.write_bytes(FOREIGN[kind])
    if kind == "database":
        with contextlib.closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("CREATE TABLE lab_results (kilometers)")
    before, listed = file.read_bytes(), sorted(file.parent.iterdir())
    with pytest.raises(InvalidInput, match=r"LINEARITY_LAB_STORE.*left as it is"):
        Store(file)
    assert file.read_bytes() == before
    assert sorted(file.parent.iterdir()) == listed


def test_other_processes_find_a_new_file_empty_or_marked(file, monkeypatch):
    seen: list[bytes] = []

    class Watched(sqlite3.Connection):
        def execute(self, *arguments):
            found = super().execute(*arguments)
            seen.append(file.read_bytes()[68:72] if file.exists() else b"")
            return found

    monkeypatch.setattr(
        _database.sqlite3, "connect", functools.partial(sqlite3.connect, factory=Watched)
    )
    Store(file).close()
    assert set(seen) == {b"", b"LLb4"}  # the application_id in the header


def test_damaged_file_in_use_is_set_aside(file, caplog):
    store = Store(file)
    points = store.points(SPEC)
    points.save("width=10", point(10))
    store.close()
    data = file.read_bytes()
    for part in file.parent.iterdir():
        part.unlink()
    damaged = data[:100] + b"overwritten " * 1000
    file.write_bytes(damaged)
    assert points.finished() == {}
    points.save("width=20", point(20))
    assert points.finished() == {"width=20": point(20)}
    store.close()
    (aside,) = (
        path for path in file.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm"))
    )
    assert aside.read_bytes() == damaged
    assert len(caplog.messages) == 1


def test_server_shares_its_file_with_commands(file):
    file.parent.mkdir()
    file.touch()  # an empty file becomes a store
    first, second = Store(file), Store(f"sqlite:///{file}")
    assert first.location == second.location
    first.lock_for_server()
    first.lock_for_server()
    second.save_result(result())
    assert first.result(spec_digest(SPEC)) == result()
    with pytest.raises(InvalidInput, match="no other running server"):
        second.lock_for_server()
    first.close()
    second.lock_for_server()
    second.close()


def test_a_text_that_is_no_utf_8_is_set_aside_alone(file):
    store = Store(file)
    store.save_result(result())
    store.save_result(result(spec=spec(7)))
    with sqlite3.connect(file) as connection:
        damage = "UPDATE {} SET {} = CAST(? AS TEXT) WHERE digest = ?"
        connection.execute(
            damage.format("lab_points", "json") + " AND key = 'width=10'",
            (b"\xff\xfe", spec_digest(SPEC)),
        )
        connection.execute(
            damage.format("lab_results", "ending"), (b"\xff\xfe", spec_digest(spec(7)))
        )
    connection.close()
    assert store.result(spec_digest(SPEC)) is None
    assert store.result(spec_digest(spec(7))) is None
    assert store.points(SPEC).finished() == {"width=20": point(20)}
    for each in (SPEC, spec(7)):
        store.save_result(result(spec=each))
        assert store.result(spec_digest(each)) == result(spec=each)
    store.close()


def test_the_default_store_is_private_to_the_user(tmp_path, monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = Store()
    assert store.location == str(tmp_path / "linearity-lab" / "runs.sqlite")
    assert stat.S_IMODE((tmp_path / "linearity-lab").stat().st_mode) == 0o700
    store.close()


@pytest.mark.slow
def test_file_with_any_damage_is_used_or_set_aside(tmp_path):
    """With some changed headers SQLite refuses the file as a later format or as read-only."""
    with contextlib.closing(Store(tmp_path / "good.sqlite")) as store:
        for seed in (1, 2):
            store.save_result(result(spec=spec(seed)))
    data, draw = (tmp_path / "good.sqlite").read_bytes(), random.Random(7)
    # Byte → value; 63: an earlier table layout.
    headers = {
        16: 0,
        18: 3,
        19: 3,
        44: 1,
        47: 255,
        63: 1,
        100: 0,
    }
    damages = [data[:at] + bytes([value]) + data[at + 1 :] for at, value in headers.items()]
    damages += [
        data.replace(word, b"x" * len(word))
        for word in (b"favorite", b"TABLE lab_points", b"json TEXT")
    ]
    damages += [data[:at] for at in (100, 4096, len(data) // 2, len(data) - 1)]
    for count in (1, 1, 30, 3000):
        noisy = bytearray(data)
        for _ in range(count):
            noisy[draw.randrange(100, len(data))] = draw.randrange(256)
        damages.append(bytes(noisy))
    for number, damaged in enumerate(damages):
        file = tmp_path / f"{number}" / "results.sqlite"
        file.parent.mkdir()
        file.write_bytes(damaged)
        with contextlib.closing(Store(file, busy_timeout_s=1.0)) as store:
            for _ in range(2):  # reading may detect the damage and start a new file
                store.save_result(result(spec=spec(9)))
                found = store.result(spec_digest(spec(9)))
            store.runs()
            store.points(spec(1)).finished()
        assert found == result(spec=spec(9)), number
        aside = [
            path
            for path in file.parent.glob("*.damaged-*")
            if not path.name.endswith(("-wal", "-shm"))
        ]
        assert len(aside) <= 1, number


def test_a_file_that_was_full_shrinks(file):
    store = Store(file)
    large = point(10).model_copy(update={"runs": point(10).runs * 5000})
    store.points(SPEC).save("width=10", large)
    store.close()
    before = file.stat().st_size
    store.delete(spec_digest(SPEC))
    store.close()
    assert file.stat().st_size < before / 4


def test_second_store_of_a_process_keeps_the_locks_of_the_first(file):
    """Otherwise a process that seems to close the file last deletes this process's log."""
    with contextlib.closing(Store(file)) as store:
        store.save_spec(SPEC)
        Store(file).close()
        script = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
            "c.execute('CREATE TABLE another (x)'); c.close()"
        )
        subprocess.run([sys.executable, "-c", script, str(file)], check=True)
        assert file.with_name(f"{file.name}-wal").exists()
        store.points(SPEC).save("width=10", point(10))
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM lab_points").fetchone() == (1,)


def test_a_file_that_may_not_be_written_is_not_damaged(file):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    Store(file).close()
    file.chmod(0o400)
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_STORE"):
        Store(file)
    assert not list(file.parent.glob("*.damaged-*"))
