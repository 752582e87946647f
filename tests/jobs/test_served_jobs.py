"""Jobs of a real server, by browser sessions over web sockets."""

import asyncio
import os
import time

import pytest

from benchmarks.drills import sessions
from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import STORE, own_data
from benchmarks.drills.served_app import ServedApp, served_app

PAGE = "kernel_change"
QUICK = "widths=5,10&num_seeds=1&outputs=linear&training.max_steps=20"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.timeout(300),
]


def test_sessions_share_equal_sweeps_while_others_look_around():
    with own_data() as folder, served_app(LINEARITY_LAB_WORKERS="1") as app:
        visit, counts = sessions.Visit(QUICK, distinct=2), {"num_sessions": 5, "num_running": 3, "num_uploading": 1}
        found = asyncio.run(sessions.drill(app, folder / STORE, visit, **counts, idle_s=0.5))
    broken = {claim for claim, holds in sessions.claims(found).items() if not holds}
    # Claims about time need a quiet machine.
    assert {claim for claim in broken if "idle" not in claim and "grows" not in claim} == set(), found
    assert (found["num_runs"], found["num_uploads"], found["num_jobs"]) == (4, 1, 3)


def test_restart_resumes_running_job_that_can_be_stopped():
    with own_data():
        with served_app(LINEARITY_LAB_WORKERS="1") as app:
            query = asyncio.run(begin_and_end_the_server(app))
            assert "job=" in query
        with served_app(LINEARITY_LAB_WORKERS="1") as app:
            asyncio.run(find_again_and_stop(app, query))


async def begin_and_end_the_server(app: ServedApp) -> str:
    # Not a gallery result, which would not be computed.
    async with BrowserSession(f"ws://{app.address}", PAGE, "seed=7") as session:
        await session.act()
        await session.act({f"{PAGE}.run": CLICK})
        assert session.live
        workers = app.workers()
        began = time.monotonic()
        app.process.terminate()
        await asyncio.to_thread(app.process.wait, 20)
        assert time.monotonic() - began < 20
        assert not any(worker.is_running() for worker in workers)
        return session.query


async def find_again_and_stop(app: ServedApp, query: str) -> None:
    seen: list[bytes] = []
    async with BrowserSession(f"ws://{app.address}", PAGE, query, listen=seen.append) as session:
        await session.act()
        goes_on = session.live
        assert not any(b"Stopped: " in message for message in seen)
        await session.act({f"{PAGE}.stop": CLICK})
        assert any(b"Stopped: " in message for message in seen)  # on the page after Stop
        assert (goes_on, session.live) == (True, False)
        assert session.errors == []
