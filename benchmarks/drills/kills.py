"""Random kill -9 of workers and of the server during sweeps.

After a kill the server is started again on the same store and resumes its jobs; a job whose worker
was killed fails and continues after Run.
"""

import asyncio
import random
import time
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import (
    STORE,
    conclude,
    finished_points,
    is_finished,
    is_intact,
    own_data,
    unfinished,
)
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.measure import Row

SERVER_SHARE = 0.4
LONGEST_S = 6.0
PATIENCE_S = 240.0
NUM_ACTIVE = 3
PAGE = "kernel_change"
SWEEP = (
    "widths=16,32,64,128&num_seeds=1&outputs=linear&training.max_steps=400&training.num_records=20"
)


async def submit(app: ServedApp, seed: int) -> str:
    """Run this seed's sweep from a page; return its job's id."""
    async with BrowserSession(f"ws://{app.address}", PAGE) as session:
        job = await session.run(PAGE, f"{SWEEP}&seed={seed}")
        assert job, session.alerts
        return job


def top_up(app: ServedApp, file: Path, jobs: list[str]) -> None:
    """Submit new sweeps until three are under way."""
    while sum(not is_finished(file, job) for job in jobs) < NUM_ACTIVE:
        jobs.append(asyncio.run(submit(app, len(jobs))))


def is_lost(file: Path, job: str, before: Row) -> bool:
    """Return whether a finished point is missing or has changed."""
    now = finished_points(file, job) or {}
    return any(now.get(key) != point for key, point in before.items())


def drill(folder: Path, num_kills: int, seed: int = 0, longest_s: float = LONGEST_S) -> Row:
    """Kill that often, then let all jobs complete; return their points."""
    draw = random.Random(seed)
    file = folder / STORE
    kills = {"server": 0, "worker": 0}
    jobs = list[str]()
    lost = list[str]()
    num_seen = 0
    is_whole = True
    while sum(kills.values()) < num_kills:
        with served_app() as app:
            while app.process.is_running() and sum(kills.values()) < num_kills:
                top_up(app, file, jobs)
                time.sleep(draw.uniform(0, longest_s))
                known = {job: finished_points(file, job) or {} for job in jobs}
                if kills["server"] < SERVER_SHARE * (sum(kills.values()) + 1):
                    app.kill()
                    kills["server"] += 1
                else:
                    kills["worker"] += app.kill_a_worker()
                num_seen = sum(map(len, known.values()))
                is_whole &= is_intact(file)
                lost += [job for job, points in known.items() if is_lost(file, job, points)]
    with served_app() as app:
        for number, job in enumerate(jobs):
            # Its worker may have been killed: the job has failed, and Run continues.
            if not is_finished(file, job):
                asyncio.run(submit(app, number))
        left = unfinished(file, jobs, PATIENCE_S)
    is_whole = is_whole and is_intact(file)
    counts = {"kills": kills, "num_sweeps": len(jobs), "num_points_before_last_kill": num_seen}
    store = {
        "lost": lost,
        "intact": is_whole,
        "set_aside": [path.name for path in folder.glob("*.damaged*")],
    }
    return {
        **counts,
        **store,
        "unfinished": left,
        "points": [finished_points(file, job) for job in jobs],
    }


def uninterrupted(folder: Path, num_sweeps: int) -> list[Row | None]:
    """Return the points of the same sweeps without a kill."""
    file = folder / STORE
    jobs = list[str]()
    with served_app() as app:
        while len(jobs) < num_sweeps:
            top_up(app, file, jobs)
        unfinished(file, jobs, PATIENCE_S)
    return [finished_points(file, job) for job in jobs[:num_sweeps]]


def claims(found: Row, reference: list[Row | None]) -> dict[str, bool]:
    """Return the claims of this drill."""
    is_complete = bool(found["num_sweeps"]) and not found["unfinished"]
    return {
        "every finished point is kept": not found["lost"],
        "the store is intact after every kill": found["intact"] and not found["set_aside"],
        "every job completes, after Run if its worker was killed": is_complete,
        "every point equals that of an uninterrupted run to the bit": found["points"] == reference,
    }


def main(*, kills: int = 20, seed: int = 0) -> None:
    """Kill workers and the server; fewer than ten kills are not saved."""
    began = time.monotonic()
    with own_data() as folder:
        found = drill(folder, kills, seed)
    with own_data() as folder:
        reference = uninterrupted(folder, found["num_sweeps"])
    verdict = claims(found, reference)
    del found["points"]
    conclude(
        "kills", {**found, "took_s": round(time.monotonic() - began)}, verdict, is_kept=kills >= 10
    )


if __name__ == "__main__":
    cyclopts.run(main)
