"""Jobs of servers: each belongs to one server,
and another one continues those of a silent server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store, UnfinishedJob
from linearity_lab.runs.store._claims import SILENT_S
from tests.runs.store.made_runs import BOTH, result, spec

SHARED = pytest.mark.parametrize("location", ["postgres"], indirect=True)


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(location, clock) -> Iterator[Callable[[], Store]]:
    """Start a server of one shared database; all of them use one moved clock."""
    stores = []

    def start() -> Store:
        store = Store(location)
        store._claims.clock = clock
        stores.append(store)
        return store

    yield start
    for store in stores:
        store.close()


def job(seed: int) -> UnfinishedJob:
    return UnfinishedJob(spec(seed), "ann", float(seed))


def digest(seed: int) -> str:
    return spec_digest(spec(seed))


def seeds(jobs) -> list[int]:
    return [each.spec.dataset.seed for each in jobs]


@BOTH
def test_released_jobs_are_claimed_without_a_wait(server):
    first = server()
    first.write_jobs([job(1), job(2)])
    first.release_jobs()
    second = server()
    assert seeds(second.claim_jobs()) == [1, 2]
    assert second.claim_jobs() == ()


def test_file_has_one_server_so_other_jobs_are_orphans(server):
    server().write_jobs([job(1)])  # killed: it released nothing
    assert seeds(server().claim_jobs()) == [1]


@pytest.mark.slow
@SHARED
def test_silent_server_loses_its_jobs_to_a_running_one(server, clock):
    silent = server()
    survivor = server()
    silent.write_jobs([job(1)])
    assert survivor.claim_jobs() == ()
    clock.now += SILENT_S / 2
    silent.write_jobs([job(1)])  # a heartbeat
    assert survivor.claim_jobs() == ()
    clock.now += SILENT_S - 1
    assert survivor.claim_jobs() == ()
    clock.now += 2
    assert seeds(survivor.claim_jobs()) == [1]


@pytest.mark.slow
@SHARED
def test_servers_of_one_host_leave_each_other_alone(server, clock):
    first = server()
    second = server()
    first.write_jobs([job(1)])
    second.write_jobs([job(2)])
    second.write_jobs([])
    assert seeds(first.unfinished_jobs()) == [1]
    # Both send heartbeats for longer than a silent server has.
    for _ in range(20):
        clock.now += SILENT_S / 4
        first.write_jobs([job(1)])
        second.write_jobs([job(2)])
        assert first.claim_jobs() == second.claim_jobs() == ()


@pytest.mark.slow
@SHARED
def test_clock_jump_of_the_machine_claims_nothing(server, monkeypatch):
    first = server()
    second = server()
    first.write_jobs([job(1)])
    assert second.claim_jobs() == ()
    for now in (0.0, 4e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        assert second.claim_jobs() == ()
        first.write_jobs([job(1)])
        assert second.claim_jobs() == ()


@pytest.mark.slow
@SHARED
@pytest.mark.parametrize("is_released", [False, True])
def test_one_of_several_survivors_gets_each_job(server, clock, is_released):
    ended = server()
    survivors = [server() for _ in range(4)]
    ended.write_jobs([job(seed) for seed in range(12)])
    for survivor in survivors:
        assert survivor.claim_jobs() == ()
    if is_released:
        ended.release_jobs()
    else:
        clock.now += SILENT_S + 1
    start = threading.Barrier(len(survivors))

    def race(store: Store) -> list[int]:
        start.wait()
        return seeds(store.claim_jobs())

    with ThreadPoolExecutor(len(survivors)) as pool:
        claimed = list(pool.map(race, survivors))
    found = [seed for seeds_of_one in claimed for seed in seeds_of_one]
    assert sorted(found) == list(range(12))


@pytest.mark.slow
@SHARED
def test_server_that_wakes_up_gives_up_its_claimed_jobs(server, clock):
    asleep = server()
    survivor = server()
    asleep.write_jobs([job(1), job(2)])
    assert survivor.claim_jobs() == ()
    clock.now += SILENT_S + 1
    assert seeds(survivor.claim_jobs()) == [1, 2]
    # The survivor has completed one of them, so its row is gone.
    survivor.save_result(result(spec=spec(1)))
    survivor.write_jobs([job(2)])
    assert asleep.write_jobs([job(1), job(2)]) == {digest(1), digest(2)}
    assert seeds(survivor.unfinished_jobs()) == [2]


@pytest.mark.slow
@SHARED
def test_job_of_two_servers_ends_when_the_last_one_does(server):
    first = server()
    second = server()
    first.write_jobs([job(1)])
    assert second.write_jobs([job(1)]) == frozenset()
    second.write_jobs([])
    assert seeds(first.unfinished_jobs()) == [1]
    second.write_jobs([job(1)])
    first.write_jobs([])
    second.write_jobs([job(1)])
    assert seeds(first.unfinished_jobs()) == [1]


def test_jobs_survive_the_replacement_of_a_damaged_file(server, change):
    store = server()
    store.write_jobs([job(1)])
    change("DELETE FROM lab_jobs")
    assert store.write_jobs([job(1)]) == frozenset()
    assert seeds(store.unfinished_jobs()) == [1]
