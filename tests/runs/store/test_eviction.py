"""Eviction from a full store: least recently used runs, none with an unfinished job."""

from __future__ import annotations

import time

import pytest

from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store, UnfinishedJob, _store
from tests.runs.store.made_runs import point, result, spec


@pytest.fixture
def full(location, num_bytes_of_a_run, monkeypatch):
    """A store with space for three and a half completed runs."""
    monkeypatch.setattr(_store, "TOUCH_S", 0.0)
    store = Store(location, max_bytes=int(3.5 * num_bytes_of_a_run))
    yield store
    store.close()


def kept(store: Store) -> set[int]:
    return {run.spec.seed for run in store.runs().runs}


def test_the_run_used_longest_ago_goes_first(full, num_bytes_of_a_run):
    for number in range(1000, 1003):
        full.save_result(result(spec=spec(number)))
    assert full.result(spec_digest(spec(1000))) is not None  # reading is using
    full.save_result(result(spec=spec(1003)))
    assert kept(full) == {1000, 1002, 1003}
    assert full.result(spec_digest(spec(1001))) is None
    assert full.points_of(spec_digest(spec(1001))) == {}
    assert full.num_bytes() == 3 * num_bytes_of_a_run
    full.save_result(result(spec=spec(1004)))
    assert kept(full) == {1000, 1003, 1004}


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


def test_run_just_written_is_kept_at_any_size(location):
    store = Store(location, max_bytes=10)
    for number in range(3):
        store.save_result(result(spec=spec(number)))
        assert kept(store) == {number}
    store.close()


def test_a_file_that_was_full_shrinks(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    large = point(10).model_copy(update={"runs": point(10).runs * 5000})
    for number in range(3):
        store.points(spec(number)).save("width=10", large)
    store.close()
    before = (tmp_path / "results.sqlite").stat().st_size
    for number in range(3):
        store.delete(spec_digest(spec(number)))
    store.close()
    assert (tmp_path / "results.sqlite").stat().st_size < before / 10


def test_looking_again_and_again_writes_once_a_minute(store, monkeypatch):
    store.save_result(result())
    first = store.runs().runs[0].used
    for _ in range(3):
        store.result(spec_digest(result().spec))
    assert store.runs().runs[0].used == first
    monkeypatch.setattr(time, "time", lambda: first + 61)
    store.result(spec_digest(result().spec))
    assert store.runs().runs[0].used == first + 61
