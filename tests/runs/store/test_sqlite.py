"""What only a SQLite file can suffer: it is damaged as a whole, of the first layout, or another user's."""

from __future__ import annotations

import random
import sqlite3
import stat

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.runs import digest
from ntk_core.runs.store import Store
from tests.runs.store.made_runs import SPEC, point, result, spec


@pytest.fixture
def file(tmp_path):
    return tmp_path / "lab" / "results.sqlite"


@pytest.mark.parametrize(
    "junk", [b"this is no database " * 500, random.Random(0).randbytes(9000)], ids=["text", "noise"]
)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(file, junk):
    file.parent.mkdir()
    file.write_bytes(junk)
    store = Store(file)
    store.points(SPEC).save("width=10", point(10))
    assert set(store.points(SPEC).finished()) == {"width=10"}
    store.close()
    (aside,) = (path for path in file.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm")))
    assert aside.read_bytes() == junk


def test_a_file_that_is_damaged_while_in_use_does_not_stop_the_store(file):
    store = Store(file)
    points = store.points(SPEC)
    points.save("width=10", point(10))
    store.close()
    for part in file.parent.iterdir():
        if part != file:
            part.unlink()
    file.write_bytes(b"overwritten by something else " * 1000)
    assert points.finished() == {}
    points.save("width=20", point(20))
    assert points.finished() == {"width=20": point(20)}
    store.close()


def test_a_text_that_is_no_utf_8_is_set_aside_alone(file):
    store = Store(file)
    store.save_result(result())
    store.save_result(result(spec=spec(7)))
    with sqlite3.connect(file) as connection:
        damage = "UPDATE {} SET {} = CAST(? AS TEXT) WHERE digest = ?"
        connection.execute(damage.format("lab_points", "json") + " AND key = 'width=10'", (b"\xff\xfe", digest(SPEC)))
        connection.execute(damage.format("lab_runs", "ending"), (b"\xff\xfe", digest(spec(7))))
    connection.close()
    assert store.result(digest(SPEC)) is None
    assert store.result(digest(spec(7))) is None
    assert [run.status for run in store.runs().runs] == ["damaged", "damaged"]
    assert store.points(SPEC).finished() == {"width=20": point(20)}
    store.close()


def test_a_directory_is_not_a_store(tmp_path):
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_STORE"):
        Store(tmp_path)


def test_the_default_store_is_private_to_the_user(tmp_path, monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = Store()
    assert store.location == str(tmp_path / "linearity-lab" / "results.sqlite")
    assert stat.S_IMODE((tmp_path / "linearity-lab").stat().st_mode) == 0o700
    store.close()


def test_a_url_opens_the_same_store_as_a_path(file):
    store, other = Store(file), Store(f"sqlite:///{file}")
    store.save_spec(SPEC)
    assert other.location == store.location
    assert other.spec(digest(SPEC)) == SPEC
    store.close()
    other.close()


def test_another_programs_tables_of_the_same_names_are_left_alone(file):
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE runs (kilometers)")
        connection.execute("CREATE TABLE points (team)")
    Store(file).save_result(result())
    assert {name for (name,) in connection.execute("SELECT name FROM sqlite_master")} >= {"runs", "points", "lab_runs"}
    connection.close()
