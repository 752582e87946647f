"""Three servers on one host and one Postgres; one of them is killed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import own_data
from benchmarks.drills.served_app import ServedApp, answer_of, served_app
from linearity_lab.runs.store._claims import SILENT_S
from tests.compiler_flags import QUICK_ENVIRONMENT

PATIENCE_S = 500.0  # niced workers are slow on a busy machine
STEPS = "num_seeds=1&outputs=linear&training.learning_rate=1e-6&training.loss_threshold=1e-9"
SHORT = f"widths=3&training.max_steps=10&{STEPS}&seed=3"
# A quick point and one of some seconds.
KILLED = f"widths=3,1000&training.max_steps=3000&{STEPS}&seed=1"
# Minutes of work.
LONG = f"widths=3000&training.max_steps=1000000&{STEPS}&seed=2"
# Records every attempt to store a point, also of one that exists. A point that is computed twice
# has two run times.
AUDIT = """
CREATE TABLE attempts (digest TEXT, key TEXT, seconds FLOAT);
CREATE FUNCTION record() RETURNS TRIGGER AS $$
BEGIN
  INSERT INTO attempts VALUES (NEW.digest, NEW.key, NEW.seconds);
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER attempt BEFORE INSERT ON lab_points FOR EACH ROW EXECUTE FUNCTION record();
"""


@pytest.fixture
def servers(location) -> Iterator[list[ServedApp]]:
    """Three servers with two workers each; their workers end with them."""
    environment = {**QUICK_ENVIRONMENT, "LINEARITY_LAB_STORE": location}
    environment["LINEARITY_LAB_WORKERS"] = "2"
    with own_data(), ExitStack() as stack:
        yield [stack.enter_context(served_app(**environment)) for _ in range(3)]


@pytest.fixture
def query(location) -> Iterator[Callable[[str], list[Any]]]:
    """Run a query on the database of the servers."""
    engine = sa.create_engine(location)

    def run(statement: str) -> list[Any]:
        with engine.begin() as connection:
            found = connection.execute(sa.text(statement))
            return list(found.all()) if found.returns_rows else []

    yield run
    engine.dispose()


def until(condition: Callable[[], object]) -> float:
    """Wait until a condition is true; return the seconds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.2)
    return time.monotonic() - began


def load(server: ServedApp) -> dict[str, int]:
    """Return the numbers of jobs and workers of a server, also if it answers late."""
    while True:
        with suppress(TimeoutError):
            return json.loads(answer_of(f"http://{server.address}/api/ready")[2])


def press_run(server: ServedApp, settings: str) -> str:
    """Start a run as a visitor, who then leaves; return its id."""

    async def visit() -> str:
        async with BrowserSession(f"ws://{server.address}", "kernel_change", settings) as session:
            await session.act()
            return await session.press_run("kernel_change")

    return asyncio.run(visit())


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("location", ["postgres"], indirect=True)
def test_job_of_a_killed_server_is_continued_once(servers, query):
    for server in servers:
        until(lambda server=server: load(server)["ready"])
    query(AUDIT)
    killed, busy, idle = servers

    def holder(job: str) -> str:
        """Return the name of the server that has this job."""
        return query(f"SELECT server FROM lab_jobs WHERE digest LIKE '{job}%'")[0][0]

    short = press_run(idle, SHORT)
    names = {idle.address: holder(short)}
    until(lambda: load(idle)["running"] == 0)
    long = press_run(busy, LONG)
    names[busy.address] = holder(long)
    job = press_run(killed, KILLED)
    names[killed.address] = holder(job)
    assert len(set(names.values())) == 3, "each server of this host has its own name"

    of_job = f"digest LIKE '{job}%'"
    points = f"SELECT key, seconds, json FROM lab_points WHERE {of_job}"
    until(lambda: query(points))
    killed.kill()
    first = query(points)
    assert len(first) == 1
    waited_s = until(lambda: holder(job) != names[killed.address])
    # The last heartbeat may be ten seconds old when its server is killed.
    assert waited_s > SILENT_S - 15
    assert holder(job) in (names[busy.address], names[idle.address])
    # One survivor computes it, without a restart; the other run has not changed its server.
    until(lambda: load(busy)["running"] + load(idle)["running"] == 2)
    assert holder(long) == names[busy.address]
    until(lambda: query(f"SELECT 1 FROM lab_results WHERE {of_job} AND status = 'completed'"))
    until(lambda: not query(f"SELECT 1 FROM lab_jobs WHERE {of_job}"))
    stored = query(points)
    assert len(stored) == 2
    assert set(first) <= set(stored), "a finished point is kept as it was"
    attempts = query(f"SELECT DISTINCT key, seconds FROM attempts WHERE {of_job}")
    assert sorted(attempts) == sorted(point[:2] for point in stored), "no point is computed twice"
    assert (load(busy)["running"], load(idle)["running"]) == (1, 0)
