"""Runs are ordered and evicted by use, also after the clock of the machine jumps."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store, _entries
from linearity_lab.runs.store._entries import evict, total_bytes
from tests.runs.store.made_runs import BOTH, result, spec

JUMPS_S = pytest.mark.parametrize("jump_s", [-30 * 24 * 3600.0, -1.0, 0.0, 30 * 24 * 3600.0])


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The machine's clock, which tests move; it shows the same time until then."""
    moved = SimpleNamespace(now=time.time())
    monkeypatch.setattr(_entries, "time", SimpleNamespace(time=lambda: moved.now))
    return moved


def seeds(store: Store) -> list[int]:
    return [run.spec.dataset.seed for run in store.runs().runs]


def save(store: Store, *numbers: int) -> None:
    for number in numbers:
        store.save_result(result(spec=spec(number)))


@BOTH
@JUMPS_S
def test_new_run_is_the_newest_after_a_clock_jump(store, clock, jump_s):
    save(store, 0, 1, 2)
    clock.now += jump_s
    save(store, 3, 4)
    assert seeds(store) == [4, 3, 2, 1, 0]


@JUMPS_S
def test_reading_makes_a_run_the_newest_after_a_clock_jump(store, clock, jump_s):
    save(store, 0, 1, 2)
    clock.now += jump_s
    assert store.result(spec_digest(spec(0))) is not None
    assert seeds(store) == [0, 2, 1]


@JUMPS_S
def test_eviction_spares_new_runs_after_a_clock_jump(store, clock, jump_s):
    save(store, 0, 1, 2)
    clock.now += jump_s
    save(store, 3)
    store.do(lambda connection: evict(connection, total_bytes(connection) - 1, spared=""))
    assert seeds(store) == [3, 2, 1]


def test_equal_readings_write_once_in_a_minute(store, clock, monkeypatch):
    marked = []
    monkeypatch.setattr(
        "linearity_lab.runs.store._store.mark_as_used", lambda _, run: marked.append(run)
    )
    save(store, 0, 1)
    first = spec_digest(spec(0))
    second = spec_digest(spec(1))
    for digest in (first, second, first, second):
        store.result(digest)
    assert marked == [first, second]
