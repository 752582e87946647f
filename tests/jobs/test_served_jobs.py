"""Jobs of a real server by sessions over web sockets.

Small versions of the drills, with the same claims.
"""

import asyncio
import os
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import requests

from benchmarks.drills import kills, sessions
from benchmarks.drills.browser_session import CLICK, BrowserSession, visitor_cookie
from benchmarks.drills.report import STORE, own_data
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.drills.sessions import Seen
from linearity_lab.runs.store import Store
from tests.jobs.conftest import eventually

PAGE = "kernel_change"
QUICK = "widths=5,10&num_seeds=1&outputs=linear&training.max_steps=20"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.timeout(300),
]


@pytest.mark.long
def test_sessions_share_equal_sweeps_and_restarts_resume_them():
    with own_data() as folder:
        # A local server lists the runs of all its sessions; a shared one keeps them apart.
        shared = {"LINEARITY_LAB_PROFILE": "classroom", "LINEARITY_LAB_WORKERS": "1"}
        with served_app(**shared) as app:
            visit, counts = (
                sessions.Visit(QUICK, distinct=2),
                {"num_sessions": 5, "num_running": 3, "num_uploading": 1},
            )
            found = asyncio.run(sessions.drill(app, folder / STORE, visit, **counts, idle_s=0.5))
            broken = {claim for claim, holds in sessions.claims(found).items() if not holds}
            # Claims about time need a quiet machine.
            assert {
                claim for claim in broken if "idle" not in claim and "grows" not in claim
            } == set(), found
            assert (found["num_runs"], found["num_uploads"], found["num_jobs"]) == (4, 1, 3)
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
        assert psutil.wait_procs(workers, timeout=20)[1] == []
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


@pytest.mark.long
def test_kills_lose_no_point_and_every_job_completes(monkeypatch):
    monkeypatch.setattr(kills, "NUM_ACTIVE", 2)
    monkeypatch.setenv("LINEARITY_LAB_WORKERS", "1")
    with own_data() as folder:
        # Instead of a random time before each kill.
        first_point = SimpleNamespace(
            sleep=lambda _: eventually(lambda: holds_a_point(folder / STORE))
        )
        monkeypatch.setattr(kills, "time", first_point)
        found = kills.drill(folder, num_kills=2, seed=9)
    assert found["num_points_before_last_kill"] >= 1
    with own_data() as folder:
        reference = kills.uninterrupted(folder, found["num_sweeps"])
    assert min(found["kills"].values()) >= 1
    claims = kills.claims(found, reference)
    assert claims == dict.fromkeys(claims, True), found


def holds_a_point(file: Path) -> bool:
    with closing(Store(file)) as store:
        return any(store.points_of(job.digest) for job in store.unfinished_jobs())


def test_texts_of_other_sessions_are_leaks():
    seen = Seen(Path("store"), owners={b"mine": 0, b"never sent": 0})
    seen.listen(0, b"\x00mine\xff")
    assert (seen.arrived, seen.leaks) == ({b"mine"}, [])
    seen.listen(1, b"a list with mine in it")
    assert seen.leaks == ["session 1 was sent mine of session 0"]


@pytest.mark.long
def test_runs_of_two_cookies_are_apart():
    with own_data(), served_app(LINEARITY_LAB_WORKERS="1", LINEARITY_LAB_PROFILE="hosted") as app:
        asyncio.run(follow_as_owner_and_stranger(app))


async def follow_as_owner_and_stranger(app: ServedApp) -> None:
    mine, theirs = (visitor_cookie(app.address) for _ in range(2))
    assert mine != theirs
    assert mine.startswith("linearity_lab_visitor=")
    url = f"ws://{app.address}"
    # Long enough to be stopped, and within the limits of the profile.
    slow = (
        "widths=300,1000&num_seeds=3&outputs=linear&training.max_steps=20000"
        "&training.learning_rate=1e-6&seed=11"
    )
    seen: list[bytes] = []
    async with BrowserSession(url, PAGE, slow, cookie=mine, listen=seen.append) as owner:
        await owner.act()
        await owner.press_run(PAGE)
        assert owner.job_id
        link = f"job={owner.job_id}"
        async with BrowserSession(url, PAGE, link, cookie=theirs) as stranger:
            await stranger.act()
            assert f"{PAGE}.leave" in stranger._ids
            assert f"{PAGE}.stop" not in stranger._ids
            stop = f"http://{app.address}/api/jobs/{owner.job_id}/stop"
            headers = {"X-Lab-Session": stranger._session_id, "Cookie": theirs}
            answer = await asyncio.to_thread(requests.post, stop, headers=headers, timeout=60)
            assert answer.status_code == 404
            assert owner.live
            await owner.act({f"{PAGE}.stop": CLICK})
            assert any(b"Stopped: " in message for message in seen), "a view keeps nothing running"
    for cookie, is_listed in ((mine, True), (theirs, False)):
        texts: list[str] = []
        async with BrowserSession(url, "results", cookie=cookie, read=texts.append) as session:
            await session.act()
            boxes = [key for key in session._ids if key.startswith("results.box.")]
            assert len(boxes) == is_listed
            assert any("No runs yet." in text for text in texts) != is_listed
            assert session.errors == []


@pytest.mark.long
def test_large_kernels_of_a_public_run_are_refused_by_name():
    query = (
        "keep_kernels=true&dataset.num_samples=1000&widths=10,11,12,13,14,15"
        "&outputs=linear,softmax,swish"
        "&training.max_steps=1"
    )
    with own_data(), served_app(LINEARITY_LAB_WORKERS="1", LINEARITY_LAB_PROFILE="hosted") as app:

        async def open_it() -> list[str]:
            async with BrowserSession(f"ws://{app.address}", PAGE, query) as session:
                await session.act()
                return session.alerts

        assert any(
            "keep_kernels" in text or "its result takes" in text for text in asyncio.run(open_it())
        )
