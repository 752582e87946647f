"""The store keeps finished points despite failures and evicts the least recently used runs."""

from __future__ import annotations

import concurrent.futures
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from linearity_lab.experiments.kernel_change.point import KernelSnapshot
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import RunTooLarge, Store, UnfinishedJob, _store
from linearity_lab.runs.store._database import ARRAYS, POINTS
from linearity_lab.runs.store._entries import point_checksum
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import (
    BOTH,
    ROOT,
    SPEC,
    point,
    result,
    save_points,
    save_results,
    spec,
)


def test_a_computed_point_replaces_and_an_imported_one_does_not(store):
    points = store.points(SPEC)
    for change in (0.25, 0.75):
        points.save("width=10", point(10, change=change))
    store.save_result(result(), imported=True)
    assert points.finished() == {
        "width=10": point(10, change=0.75),
        "width=20": result().as_imported().points[1],
    }


@BOTH
def test_a_completed_result_stays_until_it_is_deleted(store):
    assert store.result(spec_digest(SPEC)) is None
    for given, kept in (
        ("cancelled", "cancelled"),
        ("completed", "completed"),
        ("cancelled", "completed"),
    ):
        store.save_result(result(given))
        assert store.result(spec_digest(SPEC)) == result(kept)
    assert [run.status for run in store.runs().runs] == ["completed"]
    points = store.points(SPEC)
    store.delete(spec_digest(SPEC))
    assert (store.spec(spec_digest(SPEC)), store.num_bytes(), points.finished()) == (None, 0, {})
    points.save("width=20", point(20))
    assert store.spec(spec_digest(SPEC)) == SPEC
    assert points.finished() == {"width=20": point(20)}


@BOTH
def test_damaged_point_is_dropped_and_replaced(store, change):
    points = store.points(SPEC)
    for damage in ("{}", "", "�\x01", '{"kind": "kernel_change", "width": 10}'):
        store.save_result(result())
        change("UPDATE lab_points SET json = :damage WHERE key = 'width=10'", damage=damage)
        assert points.finished() == {"width=20": point(20)}
        points.save("width=10", point(10))
        assert points.finished() == {"width=10": point(10), "width=20": point(20)}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lab_results SET ending = 'x'",
        "UPDATE lab_results SET ending = '{}'",
        "UPDATE lab_points SET json = '{}' WHERE key = 'width=10'",
        "DELETE FROM lab_points WHERE key = 'width=20'",
    ],
)
def test_damaged_result_is_none_until_it_is_computed_again(store, change, damage):
    store.save_result(result())
    change(damage)
    assert store.result(spec_digest(SPEC)) is None
    store.save_result(result())
    assert store.result(spec_digest(SPEC)) == result()


def test_damaged_spec_is_repaired_with_its_points(store, change):
    store.points(SPEC).save("width=10", point(10))
    for text in ("{", '{"schema_version": 0}', '{"widths":[7]}'):
        change("UPDATE lab_results SET spec = :text", text=text)
        assert store.spec(spec_digest(SPEC)) is None
        assert [run.spec for run in store.runs().runs] == [None]
        assert store.points(SPEC).finished() == {"width=10": point(10)}
        assert store.spec(spec_digest(SPEC)) == SPEC


def test_run_of_another_version_is_listed_without_its_settings(store, change):
    store.save_result(result("cancelled"))
    other = "0" * 64
    change("UPDATE lab_results SET digest = :other, spec = '{\"schema_version\": 1}'", other=other)
    assert store.result(other) is None
    (listed,) = store.runs().runs
    assert (listed.digest, listed.spec) == (other, None)
    store.delete(other)
    assert store.runs().total == 0


@BOTH
def test_a_short_prefix_finds_all_digests_that_begin_so(store):
    specs = [KernelChangeSpec(widths=(width,)) for width in range(1, 40)]
    for each in specs:
        store.save_spec(each)
    first = spec_digest(SPEC)[:1]
    assert set(store.find(first)) == {
        spec_digest(each) for each in specs if spec_digest(each).startswith(first)
    }
    for wrong in ("", "%", "xyz", "g" * 16, "' OR 1=1 --      ", "é" * 16, "a" * 65, "\0" * 16):
        assert store.find(wrong) == ()
        assert store.spec(wrong) is None
    assert store.spec(spec_digest(specs[0])[:15]) is None


@pytest.mark.parametrize(
    "location",
    [
        "/proc/none/x.sqlite",
        "nonsense://host/db",
        "sqlite:////proc/none/x",
        "://",
        "a\0b",
        "/usr",
        "postgresql://u:secret@/\0",
        "postgres://u:secret@/db?host=/nowhere/at/all",
    ],
)
def test_an_unusable_store_is_refused_in_one_sentence(location):
    with pytest.raises(InvalidInput) as caught:
        Store(location)
    assert caught.value.field == "LINEARITY_LAB_STORE"
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def full(location, num_bytes_of_a_run, monkeypatch):
    """A store with space for three and a half completed runs."""
    monkeypatch.setattr(_store, "TOUCH_S", 0.0)
    store = Store(location, max_bytes=int(3.5 * num_bytes_of_a_run))
    yield store
    store.close()


def kept(store: Store) -> set[int]:
    return {run.spec.dataset.seed for run in store.runs().runs}


@BOTH
def test_the_run_used_longest_ago_goes_first(full, num_bytes_of_a_run):
    for number in range(1000, 1003):
        full.save_result(result(spec=spec(number)))
    assert full.result(spec_digest(spec(1000))) is not None  # reading is using
    full.save_result(result(spec=spec(1003)))
    assert kept(full) == {1000, 1002, 1003}
    assert full.result(spec_digest(spec(1001))) is None
    assert full.points_of(spec_digest(spec(1001))) == {}
    assert full.num_bytes() == 3 * num_bytes_of_a_run


def test_run_with_an_unfinished_job_stays(full):
    full.write_jobs([UnfinishedJob(spec(1000), "ann", 1.0)])
    full.points(spec(1000)).save("width=10", point(10))
    for number in range(1001, 1009):
        full.save_result(result(spec=spec(number)))
    assert kept(full) == {1000, 1007, 1008}
    full.write_jobs([])
    for number in range(1009, 1012):
        full.save_result(result(spec=spec(number)))
    assert kept(full) == {1009, 1010, 1011}


def test_run_larger_than_its_share_is_refused_and_evicts_none(location):
    store = Store(location)
    store.save_result(result(spec=spec(0)))
    share = sum(store.stored_bytes(spec_digest(spec(0))).values())
    store.close()
    store = Store(location, max_bytes=2 * share - 2)
    with pytest.raises(RunTooLarge, match="half of the store"):
        store.save_result(result(spec=spec(1)))
    assert kept(store) == {0}
    store.close()


def test_heaviest_visitor_displaces_own_runs_first(location):
    store = Store(location)
    for number in range(6):
        store.save_result(result(spec=spec(number)))
        store.add_owner(spec_digest(spec(number)), "ann" if number < 2 else "eve")
    num_bytes = store.num_bytes()
    store.max_bytes = num_bytes - 1
    store.save_result(result(spec=spec(6)))
    store.add_owner(spec_digest(spec(6)), "eve")
    assert kept(store) == {0, 1, 4, 5, 6}, "the oldest runs are ann's"
    store.close()


def test_preview_is_listed_once_someone_asks_for_it(store):
    store.save_result(result(spec=spec(0)))
    store.save_preview(spec(0))  # it was a run before
    store.save_preview(spec(1))
    store.points(spec(1), of_job=True).save("width=10", point(10))
    assert kept(store) == {0}
    assert store.points_of(spec_digest(spec(1))) == {"width=10": point(10)}
    store.points(spec(1))  # as the command line does
    assert kept(store) == {0, 1}


def test_previews_leave_a_full_store_before_runs(location):
    store = Store(location)
    store.save_result(result(spec=spec(0)))
    for number in (1, 2):
        store.save_preview(spec(number))
        store.save_result(result(spec=spec(number)))
    store.max_bytes = store.num_bytes()
    store.save_result(result(spec=spec(3)))
    assert kept(store) == {0, 3}
    assert store.find(spec_digest(spec(1))) == ()
    assert store.find(spec_digest(spec(2))) == (spec_digest(spec(2)),)
    store.close()


def test_runs_are_listed_by_owner_and_leave_with_the_last_one(location):
    store = Store(location)
    mine, shared = spec_digest(spec(0)), spec_digest(spec(1))
    for number, owners in ((0, ("ann",)), (1, ("ann", "bob"))):
        store.save_result(result(spec=spec(number)))
        for owner in owners:
            store.add_owner(spec_digest(spec(number)), owner)
    assert {run.digest for run in store.runs(owner="ann").runs} == {mine, shared}
    assert {run.digest for run in store.runs(owner="bob").runs} == {shared}
    assert store.runs(owner="eve").total == 0
    assert store.owners(shared) == {"ann", "bob"}
    store.disown(shared, "ann")
    assert store.result(shared) is not None
    store.disown(shared, "bob")
    assert store.result(shared) is None
    assert store.runs().total == 1
    store.close()


def test_large_kernels_are_stored_beside_their_point(location, caplog):
    n = 100  # 2 · 100² · 8 bytes exceed what stays inside the JSON
    rows = np.random.default_rng(0).standard_normal((2, n, n)).tolist()
    snapshot = KernelSnapshot(
        output="linear",
        seed=0,
        initial=rows[0],
        final=rows[1],
        initial_eigenvalues=rows[0][0],
        final_eigenvalues=rows[1][0],
    )
    whole = point(10).model_copy(update={"snapshots": (snapshot,)})
    store, run = Store(location), spec_digest(SPEC)
    light: Any
    store.points(SPEC).save("width=10", whole)
    assert store.stored_bytes(run)["width=10"] < 10_000
    (light,) = store.points_of(run, arrays=False).values()
    assert light.snapshots[0].is_apart
    assert light.runs == whole.runs
    assert store.whole(run, light) == store.points_of(run)["width=10"] == whole
    assert next(iter(store.runs().runs)).num_bytes > 2 * 8 * n**2

    # Older versions stored kernels inside the JSON.
    text = whole.model_dump_json()
    old = {"seconds": 1.0, "bytes": len(text), "json": text}
    old["checksum"] = point_checksum(run, "width=10", 3, 1.0, text)
    store.do(lambda connection: connection.execute(sa.delete(ARRAYS)))
    store.do(lambda connection: connection.execute(sa.update(POINTS).values(old)))
    assert store.points_of(run)["width=10"] == whole
    for bounds in ({}, {"max_bytes": 10**7}):
        (light,) = store.points_of(run, arrays=False, **bounds).values()
        assert light.snapshots[0].is_apart
        assert store.whole(run, light) == whole
    assert store.points_of(run, max_bytes=old["bytes"] - 1) == {}

    for damaged in (b"", b"PK", pickle.dumps([1])):
        store.points(SPEC).save("width=10", whole)
        store.do(
            lambda connection, to=damaged: connection.execute(sa.update(ARRAYS).values(npz=to))
        )
        (light,) = store.points_of(run).values()
        assert light.snapshots[0].is_apart
        assert "kernels of point width=10" in caplog.text
    store.delete(run)
    assert store.do(lambda connection: connection.scalar(sa.select(ARRAYS.c.key))) is None
    store.close()


def started(work: str, location: str, max_bytes: int) -> subprocess.Popen[bytes]:
    """A process that begins this function of ``made_runs`` about now, with its own store."""
    script = (
        "import sys, tests.runs.store.made_runs as made; print(flush=True)\n"
        "getattr(made, sys.argv[1])(made.Store(sys.argv[2], max_bytes=int(sys.argv[3])), 0)"
    )
    called = [sys.executable, "-c", script, work, location, str(max_bytes)]
    process = subprocess.Popen(called, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


@pytest.mark.slow
@BOTH
def test_concurrent_writers_lose_no_point(location):
    with (
        started("save_points", location, 10**12) as process,
        concurrent.futures.ThreadPoolExecutor(3) as pool,
    ):
        store = Store(location)  # opened during creation by the other
        list(pool.map(lambda number: save_points(store, number), (1, 2, 3)))
    assert process.returncode == 0
    found = store.points(SPEC).finished()
    assert len(found) == 4 * 15 + 15
    assert [run.num_points for run in store.runs().runs] == [len(found)]
    store.close()


@pytest.mark.slow  # starts processes; concurrent writers remain
@BOTH
def test_concurrent_evictions_stay_within_the_limit(location, num_bytes_of_a_run):
    limit = 15 * num_bytes_of_a_run
    with started("save_results", location, limit) as process:
        one = Store(location, max_bytes=limit)
        save_results(one, 1)
    assert process.returncode == 0
    one.save_result(result(spec=spec(1999)))
    assert one.num_bytes() <= limit
    rows = one.runs(limit=1000).runs
    assert 8 < len(rows) <= 15
    for run in rows:  # stored rows are complete
        found = one.result(run.digest)
        assert found is not None
        assert (found.spec, found.status, spec_digest(found.spec)) == (
            run.spec,
            "completed",
            run.digest,
        )
    one.close()
