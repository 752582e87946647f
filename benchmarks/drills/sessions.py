"""Many browser sessions at once: some run sweeps, equal ones among them, some bring data, the others look around.

Run: ``python -m benchmarks.drills.sessions [--sessions 30 --running 10 --uploading U --minutes M --kill-every-s S]``.
Real web sockets against ``streamlit run app.py``; what stands in LINEARITY_LAB_PROFILE and its like is used. All
sessions have one address, so on a host ``LINEARITY_LAB_MAX_JOBS_PER_ADDRESS`` has to let it have as many jobs. Claims:
idle sessions react within a second (p95), every sweep finishes, equal ones are computed once, nobody is sent another's
data, an idle server uses no processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sqlite3
import time
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import conclude, own_data, spread
from benchmarks.drills.secrets import Secrets
from benchmarks.drills.served_app import ServedApp, served_app
from linearity_lab.jobs.profile import profile
from ntk_core.runs.store import Store

LIMIT_S = 1.0
IDLE_PAGES = ("kernel_change", "hessian", "architectures", "dynamics", "dag", "early_time")
RUN_PAGE, RESULTS_PAGE = "kernel_change", "results"
QUERY = "widths=30,100,300"  # the settings of the sweeps, as a link has them
PAUSE_S = (3.0, 12.0)  # between two changes of one person who looks around
# Notes every attempt to save a point, also one that finds it there. A point that is computed twice is not the same to
# the bit: it says when it was computed and how long that took.
AUDIT = """
CREATE TABLE attempts (digest TEXT, key TEXT, sha TEXT, UNIQUE (digest, key, sha));
CREATE TRIGGER attempt BEFORE INSERT ON lab_points
BEGIN INSERT OR IGNORE INTO attempts VALUES (new.digest, new.key, new.sha); END;
"""


@dataclass
class Seen:
    """What the sessions have seen."""

    reactions_s: list[float] = field(default_factory=list)
    sweeps_s: list[float] = field(default_factory=list)
    jobs: dict[int, set[str]] = field(default_factory=dict)  # ids in the URL, by seed
    private: list[str] = field(default_factory=list)  # ids of the runs of uploaded data
    unfinished: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    uploads_s: list[float] = field(default_factory=list)
    secrets: Secrets = field(default_factory=Secrets)
    num_kills: int = 0


async def look_around(session: BrowserSession, seen: Seen, until: asyncio.Event, draw: random.Random) -> None:
    """Change a choice now and then."""
    while not until.is_set():
        await asyncio.sleep(draw.uniform(*PAUSE_S))
        own = sorted(key for key in session.options if ".preset" not in key)
        key = draw.choice(own)
        seen.reactions_s.append(await session.act({key: draw.choice(session.options[key])}))


async def run_sweeps(
    session: BrowserSession, seen: Seen, seeds: range, deadline: float, patience_s: float, query: str = QUERY
) -> None:
    """Run one sweep, and others until the deadline."""
    for seed in seeds:
        began = time.monotonic()
        await session.visit(RUN_PAGE, f"{query}&seed={seed}")  # its widget is in a panel that is closed at first
        await session.act({f"{RUN_PAGE}.run": CLICK})
        seen.jobs.setdefault(seed, set()).add(session.job_id)
        while session.live and time.monotonic() - began < patience_s:
            await asyncio.sleep(0.1)
        seen.sweeps_s.append(time.monotonic() - began)
        if session.live:
            seen.unfinished.append(f"seed {seed} after {patience_s:.0f} s: {session.alerts}")
        if time.monotonic() > deadline:
            return


async def bring_data(session: BrowserSession, seen: Seen, own: int, deadline: float, patience_s: float) -> None:
    """Bring one file and run a network on it, and others until the deadline; look at all results after each."""
    for count in itertools.count():
        mark = f"{own:03d}x{count:03d}"  # in every name that a page may show
        names = [f"first{mark}", f"second{mark}", f"kind{mark}", f"even{mark}", f"odd{mark}"]
        seen.secrets.add(own, [*names, f"file{mark}"])
        rows = [f"{index % 7},{index % 3 + own},{names[3 + index % 2]}" for index in range(30)]
        await session.visit("own_data")
        table = "\n".join([",".join(names[:3]), *rows]).encode()
        seen.uploads_s.append(await session.upload("own_data.upload", f"file{mark}.csv", table))
        began = time.monotonic()
        await session.act({"own_data.run": CLICK})
        await session.act()  # the click's own run ends where the other page begins
        if not session.job_id:
            seen.unfinished.append(f"upload {mark} did not run: {session.alerts}")
            return
        seen.secrets.add(own, [session.job_id])
        seen.private.append(session.job_id)
        while session.live and time.monotonic() - began < patience_s:
            await asyncio.sleep(0.1)
        if session.live:
            seen.unfinished.append(f"upload {mark} after {patience_s:.0f} s: {session.alerts}")
        await session.visit(RESULTS_PAGE)
        if time.monotonic() > deadline:
            return


async def kill_workers(app: ServedApp, seen: Seen, until: asyncio.Event, every_s: float, draw: random.Random) -> None:
    """Kill a worker now and then."""
    while not until.is_set():
        await asyncio.sleep(every_s)
        seen.num_kills += app.kill_a_worker(draw)


async def drill(
    app: ServedApp,
    store: Path,
    *,
    num_sessions: int,
    num_running: int,
    num_distinct: int,
    num_uploading: int = 0,
    minutes: float = 0.0,
    kill_every_s: float = 0.0,
    idle_s: float = 10.0,
    patience_s: float = 900.0,
    query: str = QUERY,
) -> dict[str, Any]:
    """Open the sessions, let them work, and look at what is in the store afterwards."""
    draw = random.Random(0)
    seen = Seen()
    url = f"ws://{app.address}"
    async with AsyncExitStack() as stack:
        sessions: list[BrowserSession] = []
        for index in range(num_sessions):
            runs_sweeps = index < num_running
            page = RUN_PAGE if runs_sweeps else IDLE_PAGES[index % len(IDLE_PAGES)]
            listen = seen.secrets.listener(index)
            session = BrowserSession(url, page, query if runs_sweeps else "", listen)
            sessions.append(await stack.enter_async_context(session))
            await sessions[-1].act()
        await asyncio.sleep(idle_s)  # workers get ready
        before = app.processor_s()
        await asyncio.sleep(idle_s)
        idle_share = (app.processor_s() - before) / max(idle_s, 1e-9)
        with closing(sqlite3.connect(store, timeout=30)) as connection:
            connection.executescript(AUDIT)
        memory = [app.resident_bytes()]
        over = asyncio.Event()
        num_busy = num_running + num_uploading
        watching = [look_around(session, seen, over, draw) for session in sessions[num_busy:]]
        if kill_every_s:
            watching.append(kill_workers(app, seen, over, kill_every_s, draw))
        tasks = [asyncio.create_task(work) for work in watching]
        deadline = time.monotonic() + 60 * minutes
        runs = [
            run_sweeps(session, seen, range(1 + index % num_distinct, 10**6, num_distinct), deadline, patience_s, query)
            for index, session in enumerate(sessions[:num_running])
        ]
        brings = [
            bring_data(sessions[index], seen, index, deadline, patience_s) for index in range(num_running, num_busy)
        ]
        await asyncio.gather(*runs, *brings)
        over.set()
        await asyncio.gather(*tasks)
        for session in sessions:
            await session.visit(RESULTS_PAGE)
        memory.append(app.resident_bytes())
        seen.errors = [error for session in sessions for error in session.errors]
        num_bytes = sum(session.num_bytes for session in sessions)
    return {
        "minutes": minutes,
        "num_sessions": num_sessions,
        "num_running": num_running,
        "num_uploads": len(seen.uploads_s),
        "num_kills": seen.num_kills,
        "idle_reaction": spread(seen.reactions_s),
        "sweep": spread(seen.sweeps_s),
        "upload": spread(seen.uploads_s) if seen.uploads_s else None,
        "private_texts": len(seen.secrets),
        "private_texts_seen_by_their_owner": seen.secrets.own,
        "leaks": seen.secrets.leaks,
        "idle_processor_share": round(idle_share, 4),
        "resident_mib": [[round(part / 2**20) for part in parts] for parts in memory],
        "sent_mib": round(num_bytes / 2**20, 1),
        "unfinished": seen.unfinished,
        "errors": seen.errors,
        **_in_store(store, seen),
    }


def _in_store(file: Path, seen: Seen) -> dict[str, Any]:
    """Which jobs were completed, and how often their points were computed."""
    store = Store(file)
    ids = sorted({job_id for ids in seen.jobs.values() for job_id in ids} | set(seen.private))
    incomplete: list[str] = []
    for job_id in ids:
        spec = store.spec(job_id)
        points = store.points(spec).finished() if spec is not None else {}
        if spec is None or set(points) != set(spec.point_keys()):
            incomplete.append(job_id)
    store.close()
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        attempts, points = connection.execute(
            "SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM lab_points)"
        ).fetchone()
    return {
        "num_runs_asked": len(seen.sweeps_s),
        "num_jobs": len(ids),
        "ids_of_equal_sweeps": max(len(ids) for ids in seen.jobs.values()),
        "incomplete": incomplete,
        "points_computed": attempts,
        "points_kept": points,
    }


def claims(found: dict[str, Any], limit_s: float = LIMIT_S) -> dict[str, bool]:
    """What the drill is about. A kill may cost a point that was computed and not yet saved, never one that was."""
    return {
        f"p95 of the reaction of idle sessions is at most {limit_s:g} s": found["idle_reaction"]["p95_s"] <= limit_s,
        "every sweep finished": not found["unfinished"] and not found["incomplete"],
        "equal sweeps were one job and computed once": found["ids_of_equal_sweeps"] == 1
        and found["points_computed"] == found["points_kept"],
        "no page showed an exception": not found["errors"],
        **(
            {
                "nobody was sent data, or a run of data, of another session": not found["leaks"],
                "whoever brought data was shown them": found["private_texts_seen_by_their_owner"]
                >= 5 * found["num_uploads"],
            }
            if found["num_uploads"]
            else {}
        ),
        "an idle server with its workers uses under 2 % of one core": found["idle_processor_share"] < 0.02,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--running", type=int, default=10)
    parser.add_argument("--distinct", type=int, default=7, help="different sweeps at a time; the others are equal ones")
    parser.add_argument("--uploading", type=int, default=0, help="sessions that bring data of their own and run them")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on with new sweeps for so long")
    parser.add_argument("--kill-every-s", type=float, default=0.0, help="kill a worker so often; 0: never")
    parser.add_argument("--name", default="sessions", help="of the file with the results")
    options = parser.parse_args()
    with own_data() as folder, served_app() as app:
        found = asyncio.run(
            drill(
                app,
                folder / "linearity-lab" / "runs.sqlite",
                num_sessions=options.sessions,
                num_running=options.running,
                num_distinct=options.distinct,
                num_uploading=options.uploading,
                minutes=options.minutes,
                kill_every_s=options.kill_every_s,
            )
        )
    conclude(options.name, {"profile": profile().name, **found}, claims(found))


if __name__ == "__main__":
    main()
