"""A class at one machine, while workers are killed.

Real web sockets against ``streamlit run app.py`` in the profile ``classroom``.
"""

import asyncio
import itertools
import random
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import STORE, conclude, is_finished, own_data, spread
from benchmarks.drills.served_app import ServedApp, repeated, served_app
from benchmarks.measure import Row

LIMIT_S = 0.5
LIMIT_MIB = 250
IDLE_PAGES = ("kernel_change", "hessian", "architectures", "dynamics", "dag", "early_time")
RUN_PAGE = "kernel_change"
RESULTS_PAGE = "results"
CHECK_S = 1.0  # between two checks of the store
# Notes every attempt to save a point, also of one that exists. A recomputed point took other
# seconds.
AUDIT = """
CREATE TABLE attempts (digest TEXT, key TEXT, seconds REAL, UNIQUE (digest, key, seconds));
CREATE TRIGGER attempt BEFORE INSERT ON lab_points
BEGIN INSERT OR IGNORE INTO attempts VALUES (new.digest, new.key, new.seconds); END;
"""


@dataclass(frozen=True)
class Visit:
    """Behavior and patience of the sessions."""

    query: str = "widths=30,100,300"  # settings of the sweeps, as in a link
    distinct: int = 7  # different sweeps at a time
    pause_s: tuple[float, float] = (3.0, 12.0)  # between changes
    page_share: float = 0.0  # of changes that lead to another page
    every_s: float = 0.0  # least time between two runs of one person
    patience_s: float = 240.0  # longest wait for one run


@dataclass
class Seen:
    """Observations of all sessions, and private texts with their owners."""

    store: Path
    until: float = 0.0
    reactions_s: list[float] = field(default_factory=list)
    sweeps_s: list[float] = field(default_factory=list)
    uploads_s: list[float] = field(default_factory=list)
    jobs: dict[str, set[str]] = field(default_factory=dict)  # settings → ids in the URL
    unfinished: list[str] = field(default_factory=list)
    owners: dict[bytes, int] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    arrived: set[bytes] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    num_kills: int = 0

    def listen(self, session: int, raw: bytes) -> None:
        """Find texts of other sessions in a message of the server."""
        for text, owner in self.owners.items():
            if text in raw and owner == session:
                self.arrived.add(text)
            elif text in raw:
                self.leaks.append(f"session {session} was sent {text.decode()} of session {owner}")

    @property
    def num_jobs(self) -> int:
        return len({job for ids in self.jobs.values() for job in ids})


async def browse(session: BrowserSession, seen: Seen, visit: Visit, draw: random.Random) -> None:
    """Change a choice or the page now and then."""
    while time.monotonic() < seen.until:
        await asyncio.sleep(draw.uniform(*visit.pause_s))
        own = sorted(
            key for key in session.options if ".preset" not in key and key.startswith(session.page)
        )
        if own and draw.random() >= visit.page_share:
            key = draw.choice(own)
            seen.reactions_s.append(await session.act({key: draw.choice(session.options[key])}))
        else:
            seen.reactions_s.append(await session.visit(draw.choice(IDLE_PAGES)))


async def run_job(
    session: BrowserSession, seen: Seen, page: str, settings: str, visit: Visit
) -> None:
    """Press Run, and again after kills, until all points are stored."""
    began = time.monotonic()
    await session.press_run(page)
    if not session.job_id:
        seen.unfinished.append(f"{settings} did not run: {session.alerts}")
        return
    seen.jobs.setdefault(settings, set()).add(session.job_id)
    while not await asyncio.to_thread(is_finished, seen.store, session.job_id):
        if time.monotonic() - began > visit.patience_s:
            seen.unfinished.append(f"{settings} after {visit.patience_s:.0f} s: {session.alerts}")
            return
        await asyncio.sleep(CHECK_S)
        if not session.live and not await asyncio.to_thread(
            is_finished, seen.store, session.job_id
        ):
            await session.act({session.run_key: CLICK})  # its worker was killed: Run continues
    seen.sweeps_s.append(time.monotonic() - began)
    await session.act()
    await asyncio.sleep(min(began + visit.every_s, seen.until) - time.monotonic())


async def run_sweeps(session: BrowserSession, seen: Seen, visit: Visit, own: int) -> None:
    """Run one sweep after another, at least one."""
    for seed in itertools.count(1 + own % visit.distinct, visit.distinct):
        await session.visit(RUN_PAGE, f"{visit.query}&seed={seed}")
        await run_job(session, seen, RUN_PAGE, f"seed {seed}", visit)
        if time.monotonic() > seen.until:
            return


async def upload_data(session: BrowserSession, seen: Seen, visit: Visit, own: int) -> None:
    """Upload files, run a network on each and list all results."""
    for count in itertools.count():
        mark = f"{own:03d}x{count:03d}"  # in every name that a page may show
        names = [f"first{mark}", f"second{mark}", f"kind{mark}", f"even{mark}", f"odd{mark}"]
        seen.owners |= {text.encode(): own for text in (*names, f"file{mark}")}
        rows = [f"{index % 7},{index % 3 + own},{names[3 + index % 2]}" for index in range(30)]
        table = "\n".join([",".join(names[:3]), *rows]).encode()
        await session.visit("own_data")
        seen.uploads_s.append(await session.upload("own_data.upload", f"file{mark}.csv", table))
        await run_job(session, seen, "own_data", f"upload {mark}", visit)
        if session.job_id:
            seen.owners[session.job_id.encode()] = own
        await session.visit(RESULTS_PAGE)
        if time.monotonic() > seen.until:
            return


@asynccontextmanager
async def crowd(
    address: str, seen: Seen, num_sessions: int, num_running: int
) -> AsyncIterator[list[BrowserSession]]:
    """Open sessions from separate addresses; note their errors at the end."""
    async with AsyncExitStack() as stack:
        sessions: list[BrowserSession] = []
        for index in range(num_sessions):
            page = RUN_PAGE if index < num_running else IDLE_PAGES[index % len(IDLE_PAGES)]
            client = f"192.0.2.{index + 1}"
            listen = partial(seen.listen, index)
            sessions.append(
                BrowserSession(f"ws://{address}", page, listen=listen, forwarded_for=client)
            )
            await stack.enter_async_context(sessions[-1])
            await sessions[-1].act()
        yield sessions
        seen.errors += [error for session in sessions for error in session.errors]


async def work(
    sessions: list[BrowserSession],
    seen: Seen,
    visit: Visit,
    num_running: int,
    num_uploading: int,
    minutes: float,
) -> None:
    """Let sessions run sweeps, upload data and browse."""
    draw = random.Random(0)
    num_busy = num_running + num_uploading
    seen.until = time.monotonic() + 60 * minutes
    await asyncio.gather(
        *(run_sweeps(sessions[own], seen, visit, own) for own in range(num_running)),
        *(upload_data(sessions[own], seen, visit, own) for own in range(num_running, num_busy)),
        *(browse(session, seen, visit, draw) for session in sessions[num_busy:]),
    )


async def drill(
    app: ServedApp,
    store: Path,
    visit: Visit,
    *,
    num_sessions: int,
    num_running: int,
    num_uploading: int,
    minutes: float = 0.0,
    kill_every_s: float = 0.0,
    idle_s: float = 10.0,
) -> Row:
    """Open the sessions, let them work, and read the store afterwards."""
    seen = Seen(store)

    def kill() -> None:
        seen.num_kills += app.kill_a_worker()

    async with crowd(app.address, seen, num_sessions, num_running) as sessions:
        await asyncio.sleep(idle_s)  # workers get ready
        before = app.processor_s()
        await asyncio.sleep(idle_s)
        idle_share = (app.processor_s() - before) / max(idle_s, 1e-9)
        with closing(sqlite3.connect(store, timeout=30)) as connection:
            connection.executescript(AUDIT)
        memory = app.resident_mib()
        with repeated(kill, kill_every_s or 1e9):
            await work(sessions, seen, visit, num_running, num_uploading, minutes)
        for session in sessions:
            await session.visit(RESULTS_PAGE)
        grown = app.resident_mib() - memory
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        count = "SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM lab_points)"
        attempts, points = connection.execute(count).fetchone()
    given = {"minutes": minutes, "num_sessions": num_sessions, "num_running": num_running}
    counts = {
        "num_runs": len(seen.sweeps_s),
        "num_jobs": seen.num_jobs,
        "num_uploads": len(seen.uploads_s),
    }
    waits = {"reaction": spread(seen.reactions_s or [0.0]), "sweep": spread(seen.sweeps_s or [0.0])}
    shared = {"ids_of_equal_sweeps": max(map(len, seen.jobs.values()), default=0)}
    stored = {"points": points, "points_computed": attempts}
    private = {
        "private_texts": len(seen.owners),
        "private_texts_seen_by_their_owner": len(seen.arrived),
    }
    server = {"idle_processor_share": round(idle_share, 4), "server_grown_mib": round(grown)}
    failures = {"leaks": seen.leaks[:20], "unfinished": seen.unfinished, "errors": seen.errors[:20]}
    found = {**given, **counts, "num_kills": seen.num_kills, **waits, **shared, **stored}
    return {"profile": "classroom", **found, **private, **server, **failures}


def claims(found: Row) -> dict[str, bool]:
    """Return the claims; kills may cost unsaved points, never saved ones."""
    is_shared = found["ids_of_equal_sweeps"] == 1 and found["points_computed"] == found["points"]
    return {
        f"idle sessions react within {LIMIT_S:g} s (p95)": found["reaction"]["p95_s"] <= LIMIT_S,
        "every sweep finishes": bool(found["num_runs"]) and not found["unfinished"],
        "equal sweeps are one job and computed once": is_shared,
        "no page shows an exception": not found["errors"],
        "no session gets data, or a run of data, of another one": not found["leaks"],
        "who uploads data sees them": found["private_texts_seen_by_their_owner"]
        >= 5 * found["num_uploads"],
        f"the server grows by {LIMIT_MIB} MiB at most": found["server_grown_mib"] <= LIMIT_MIB,
        "an idle server with its workers uses under 2 % of one core": found["idle_processor_share"]
        < 0.02,
    }


def main(
    *,
    minutes: float = 4.0,
    sessions: int = 30,
    running: int = 10,
    uploading: int = 4,
    kill_every_s: float = 30.0,
) -> None:
    """A class at one machine.

    Args:
        minutes: of new work; runs shorter than two are not saved.
        kill_every_s: seconds between two kills of a worker; 0: never.
    """
    numbers = {"num_sessions": sessions, "num_running": running, "num_uploading": uploading}
    with own_data() as folder, served_app(LINEARITY_LAB_PROFILE="classroom") as app:
        drilling = drill(
            app, folder / STORE, Visit(), **numbers, minutes=minutes, kill_every_s=kill_every_s
        )
        found = asyncio.run(drilling)
    conclude("sessions", found, claims(found), is_kept=minutes >= 2)


if __name__ == "__main__":
    cyclopts.run(main)
