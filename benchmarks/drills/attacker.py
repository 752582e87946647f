"""One attacker does the most expensive things that a host allows, among visitors who look around and run things.

Run: ``python -m benchmarks.drills.attacker [--visitors 29 --minutes 5]``. The profile is ``hosted``; everybody comes
through a trusted proxy, the attacker from an address of its own for each thing that it does
(``benchmarks.drills.attack``). The visitors are there alone first, for the comparison. Claims: their pages react within
a second (p95), the server's memory grows by 150 MiB at most, their jobs are finished and their data are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.drills.attack import cleaned, table
from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import ROOT, conclude, own_data, percentile, spread
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.drills.sessions import IDLE_PAGES
from benchmarks.measure import Watch
from ntk_core.data.uploads import MissingUpload, keep_upload, upload_digest, upload_shapes
from ntk_core.runs.store import Store

LIMIT_S, LIMIT_MIB = 1.0, 150
PAUSE_S = (5.0, 10.0)  # between two things that one person does
ALONE = 0.3  # of the time, before the attack
WORK_EVERY_S = 60.0  # of a visitor who runs something
NUM_RUNNING, NUM_BRINGING = 3, 2
AFTERWARDS_S = 180.0  # for jobs that wait when the attack is over
SWEEP = "widths=10&outputs=linear&num_seeds=1&training.max_steps=200"


@dataclass
class Seen:
    """What the drill has noted."""

    alone_s: list[float] = field(default_factory=list)
    attacked_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    server_mib: list[float] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    is_attacked: bool = False
    busy: list[float] = field(default_factory=list)

    def reacted(self, seconds: float) -> None:
        """A page has answered somebody."""
        (self.attacked_s if self.is_attacked else self.alone_s).append(seconds)


async def visit(session: BrowserSession, seen: Seen, number: int, until: asyncio.Event) -> None:
    """Go from page to page and change choices, as people do; some run a sweep or bring data every minute."""
    draw = random.Random(number)
    work = _sweep if number < NUM_RUNNING else _bring if number < NUM_RUNNING + NUM_BRINGING else None
    due = time.monotonic() + draw.uniform(0, WORK_EVERY_S)
    while not until.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), draw.uniform(*PAUSE_S))
        own = sorted(key for key in session.options if ".preset" not in key and key.startswith(session.page))
        if work is not None and time.monotonic() > due:
            due += WORK_EVERY_S
            await work(session, seen, draw)
        elif own and draw.random() < 0.5:
            key = draw.choice(own)
            seen.reacted(await session.act({key: draw.choice(session.options[key])}))
        else:
            seen.reacted(await session.visit(draw.choice(IDLE_PAGES)))
        seen.errors += session.errors
        session.errors.clear()


async def _sweep(session: BrowserSession, seen: Seen, draw: random.Random) -> None:
    seen.reacted(await session.visit("kernel_change", f"{SWEEP}&seed={draw.randrange(10**6)}"))
    seen.reacted(await session.act({"kernel_change.run": CLICK}))
    _note_job(session, seen)


async def _bring(session: BrowserSession, seen: Seen, draw: random.Random) -> None:
    data = table(str(draw.randrange(10**9)))
    seen.reacted(await session.visit("own_data"))
    await session.upload("own_data.upload", "mine.csv", data)
    await session.act({"own_data.run": CLICK})
    seen.reacted(await session.act())  # the click's own run ends where the other page begins
    seen.kept.append(upload_digest(cleaned(data)))
    _note_job(session, seen)


def _note_job(session: BrowserSession, seen: Seen) -> None:
    if session.job_id:
        seen.jobs.add(session.job_id)
    else:
        seen.refused += session.alerts or ["no job"]


def watch(app: ServedApp, seen: Seen, end: threading.Event) -> None:
    """Note the server's own memory every second."""
    while not end.wait(1.0):
        seen.server_mib.append(app.resident_bytes()[0] / 2**20)


async def drill(app: ServedApp, num_visitors: int, minutes: float, seen: Seen) -> dict[str, Any]:
    """Visitors alone, then with the attacker beside them; what the attacker has tried."""
    until, alone_s = asyncio.Event(), 60 * minutes * ALONE
    async with AsyncExitStack() as stack:
        visitors = []
        for number in range(num_visitors):
            page, line = IDLE_PAGES[number % len(IDLE_PAGES)], f"192.0.2.{number + 1}"
            visitors.append(BrowserSession(f"ws://{app.address}", page, forwarded_for=line))
            await stack.enter_async_context(visitors[-1])
            await visitors[-1].act()
        tasks = [asyncio.create_task(visit(each, seen, number, until)) for number, each in enumerate(visitors)]
        command = [sys.executable, "-m", "benchmarks.drills.attack", app.address, str(60 * minutes - alone_s)]
        used, since = [app.server_s()], [time.monotonic()]

        def note() -> None:
            used.append(app.server_s())
            since.append(time.monotonic())

        await asyncio.sleep(alone_s)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attack:
            assert attack.stdout is not None
            await asyncio.to_thread(attack.stdout.readline)
            note()
            seen.is_attacked = True
            seen.server_mib[:] = seen.server_mib[-1:]
            told = await asyncio.to_thread(attack.stdout.readline)
            note()
        until.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        seen.errors += [repr(task.exception()) for task in tasks if task.done() and task.exception()]
    seen.busy = [(used[i + 1] - used[i]) / (since[i + 1] - since[i]) for i in range(2)]
    return json.loads(told)


def unfinished(file: Path, jobs: set[str]) -> list[str]:
    """The jobs that have not finished all their points a while after the attack."""
    store, deadline = Store(file), time.monotonic() + AFTERWARDS_S
    left = sorted(jobs)
    with contextlib.closing(store):
        while left and time.monotonic() < deadline:
            time.sleep(1.0)
            left = [each for each in left if not _is_finished(store, each)]
    return left


def _is_finished(store: Store, job_id: str) -> bool:
    spec = store.spec(job_id)
    return spec is not None and set(store.points(spec).finished()) == set(spec.point_keys())


def _is_kept(digest: str) -> bool:
    try:
        upload_shapes(digest)
    except MissingUpload:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=29)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    seen, end = Seen(), threading.Event()
    with own_data() as folder:
        seen.kept.append(keep_upload(cleaned(table("of others"))))  # of somebody who is not here now
        with served_app(LINEARITY_LAB_PROFILE="hosted", LINEARITY_LAB_TRUSTED_HOPS="1") as app:
            watching = threading.Thread(target=watch, args=(app, seen, end), daemon=True)
            watching.start()
            began, machine = time.monotonic(), Watch()
            told = asyncio.run(drill(app, options.visitors, options.minutes, seen))
            took_s, busy = time.monotonic() - began, machine.note()["busy_by_others"]
            end.set()
            watching.join()
            left = unfinished(folder / "linearity-lab" / "runs.sqlite", seen.jobs)
        lost = [digest for digest in seen.kept if not _is_kept(digest)]
    grown = max(seen.server_mib) - seen.server_mib[0]
    measured = {
        "num_visitors": options.visitors,
        "took_s": round(took_s, 1),
        "cores_busy_by_others": None if busy is None else round(busy, 2),
        "reaction": spread(seen.attacked_s),
        "reaction_before": spread(seen.alone_s),
        "server_busy_before_and_after": [round(each, 2) for each in seen.busy],
        "server_mib": [round(seen.server_mib[0]), round(max(seen.server_mib)), round(seen.server_mib[-1])],
        "num_jobs": len(seen.jobs),
        "unfinished": left,
        "refused_to_visitors": seen.refused[:20],
        "num_kept": len(seen.kept),
        "attack": told,
        "errors": seen.errors[:20],
    }
    claims = {
        f"pages of visitors react within {LIMIT_S:g} s (p95)": percentile(seen.attacked_s, 0.95) < LIMIT_S,
        f"the server grows by {LIMIT_MIB} MiB at most": grown <= LIMIT_MIB,
        "nobody sees an exception": not seen.errors,
        "every job of a visitor is taken and finished": bool(seen.jobs) and not left and not seen.refused,
        "data of others are kept, also those that the attacker keeps and forgets": not lost,
    }
    conclude("attacker", measured, claims)


if __name__ == "__main__":
    main()
