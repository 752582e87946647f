"""Changes on disk: no changed number is returned as good.

What fails is dropped and recomputed alone.
"""

import json
import random
import sqlite3
from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store
from linearity_lab.runs.store._database import POINTS, RUNS
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, point, result, spec

NUM_CHANGES = 500


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results.sqlite"


def filled(file) -> dict[str, Any]:
    """Fill a store with three results and an unfinished run; return the results by digest."""
    store = Store(file)
    written: dict[str, Any] = {}
    for number in range(3):
        each = result(spec=spec(number))
        store.save_result(each)
        written[spec_digest(each.spec)] = each
    store.points(spec(7)).save("width=10", point(10, change=0.125))
    written[spec_digest(spec(7))] = None
    store.close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
    for other in file.parent.glob(f"{file.name}*lock"):
        other.unlink()
    return written


def everything(store: Store, written: dict[str, Any]) -> Counter[str]:
    """Read all runs; every number is as written, or absent."""
    outcomes: Counter[str] = Counter()
    expected = {
        run: {each.key: each for each in (found.points if found else [point(10, change=0.125)])}
        for run, found in written.items()
    }
    for entry in store.runs(limit=100).runs:
        outcomes[entry.reading] += 1
        if entry.spec is not None:
            assert spec_digest(entry.spec) in written
    for run, found in written.items():
        stored = store.result(run)
        assert stored is None or stored == found
        outcomes["result" if stored is not None else "no result"] += 1
        for key, each in store.points_of(run).items():
            assert each == expected[run][key]
            outcomes["point"] += 1
        known = store.known_run(run)
        if known is not None:
            for key, document in known.points.items():
                assert document == json.loads(expected[run][key].model_dump_json())
    return outcomes


@pytest.mark.long
def test_one_byte_changes_never_give_another_number(file):
    written = filled(file)
    original = file.read_bytes()
    outcomes: Counter[str] = Counter()
    drawn = random.Random(0)
    for number in range(NUM_CHANGES):
        position = drawn.randrange(len(original))
        value = drawn.choice([each for each in range(256) if each != original[position]])
        for other in file.parent.iterdir():
            other.unlink()
        changed = bytearray(original)
        changed[position] = value
        file.write_bytes(changed)
        try:
            store = Store(file)
        except InvalidInput:  # the mark of the lab or the layout has changed
            outcomes["refused"] += 1
            continue
        try:
            outcomes += everything(store, written)
        except AssertionError as error:
            raise AssertionError(f"byte {position} → {value}, change {number}") from error
        finally:
            store.close()
    assert outcomes["point"] > 6 * NUM_CHANGES / 2  # most changes damage little
    assert outcomes["no result"] > NUM_CHANGES  # the unfinished run has none


CHANGES = {
    "a digit": "UPDATE lab_points SET json = replace(json, '0.5', '0.6')",
    "the sign": "UPDATE lab_points SET json = replace(json, '0.5', '-0.5')",
    "not a number": "UPDATE lab_points SET json = replace(json, '0.5', '\"NaN\"')",
    "the run time": "UPDATE lab_points SET seconds = seconds + 1",
    "no checksum": "UPDATE lab_points SET checksum = NULL, version = NULL",
    "no text": "UPDATE lab_points SET json = ''",
    "a number for the text": "UPDATE lab_points SET json = 7",
    "bytes for the text": "UPDATE lab_points SET json = x'00ff'",
    "another version": "UPDATE lab_points SET version = 4",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_point_is_dropped_and_recomputed_alone(file, change, caplog):
    store = Store(file)
    store.save_result(result())
    run = spec_digest(SPEC)
    store.do(lambda connection: connection.exec_driver_sql(f"{change} WHERE key = 'width=10'"))
    assert store.points_of(run) == {"width=20": point(20)}
    assert store.points_of(run, max_bytes=10**6) == {"width=20": point(20)}
    assert store.result(run) is None
    assert "point width=10" in caplog.text
    assert "width=20" not in caplog.text
    store.points(SPEC).save("width=10", point(10))
    assert store.result(run) == result()
    store.close()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_import_replaces_a_changed_point(file, change):
    store = Store(file)
    store.save_result(result())
    store.do(lambda connection: connection.exec_driver_sql(f"{change} WHERE key = 'width=10'"))
    store.save_result(result(), imported=True)
    found = store.points_of(spec_digest(SPEC))
    assert found == {"width=10": result().as_imported().points[0], "width=20": point(20)}
    assert [run.imported for run in store.runs().runs] == [True]
    assert store.result(spec_digest(SPEC)).num_imported == 1
    store.close()


@pytest.mark.parametrize("is_same_run", [True, False])
def test_points_of_exchanged_rows_are_dropped(file, is_same_run):
    store = Store(file)
    other = SPEC if is_same_run else spec(7)
    store.save_result(result())
    store.save_result(result(spec=other))
    rows = [
        (spec_digest(SPEC), "width=10"),
        (spec_digest(other), "width=20" if is_same_run else "width=10"),
    ]

    def exchange(connection: sa.Connection) -> None:
        contents = []
        for digest, key in rows:
            chosen = (POINTS.c.digest == digest) & (POINTS.c.key == key)
            contents.append(connection.execute(sa.select(POINTS).where(chosen)).one())
        for (digest, key), content in zip(rows, reversed(contents), strict=True):
            chosen = (POINTS.c.digest == digest) & (POINTS.c.key == key)
            facts = {
                name: value
                for name, value in content._mapping.items()
                if name not in ("digest", "key")
            }
            connection.execute(sa.update(POINTS).where(chosen).values(facts))

    store.do(exchange)
    for digest, key in rows:
        assert key not in store.points_of(digest)
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        "status = 'failed'",
        "imported = 1",
        "ending = replace(ending, '1.0', '2.0')",
        "ending_checksum = NULL",
    ],
)
def test_changed_ending_is_dropped_and_points_remain(file, change):
    store = Store(file)
    store.save_result(result())
    store.do(lambda connection: connection.exec_driver_sql(f"UPDATE lab_results SET {change}"))
    assert store.result(spec_digest(SPEC)) is None
    assert [entry.status for entry in store.runs().runs] == ["started"]
    assert len(store.points_of(spec_digest(SPEC))) == 2
    store.save_result(result())
    assert store.result(spec_digest(SPEC)) == result()
    store.close()


def test_changed_visibility_of_a_run_is_damage(file):
    store = Store(file)
    store.save_result(result())
    store.do(lambda connection: connection.execute(sa.update(RUNS).values(private=True)))
    assert store.spec(spec_digest(SPEC)) is None
    store.close()
