"""One attacker among visitors, through nginx as compose.yaml starts it.

Run: ``python -m benchmarks.drills.attacker [--minutes 4 --visitors 29]``. The profile is ``hosted``. Visitors are alone
for the first third of the time; then every kind of attack of ``benchmarks.drills.attack`` runs from an address of its
own. Claims: pages of visitors react within a second (p95), small uploads within 30 s, memory of server and workers
stays bounded, and every job of a visitor finishes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cyclopts

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.proxied import proxied
from benchmarks.drills.report import ROOT, STORE, conclude, own_data, spread, unfinished
from benchmarks.drills.served_app import served_app
from benchmarks.drills.sessions import IDLE_PAGES
from benchmarks.measure import Watch

LIMIT_S, UPLOAD_S, LIMIT_MIB = 1.0, 30.0, 150
WORKER_MIB = 1.25 * 1024 * 1.25  # the profile's cap of a job, and a quarter between two measurements of it
PAUSE_S = (5.0, 10.0)  # between two actions of one person
WORK_EVERY_S = 60.0  # of a visitor who runs something
NUM_RUNNING, NUM_UPLOADING = 3, 2
AFTERWARDS_S = 90.0  # for jobs that wait when the attack is over
SWEEP = "widths=10&outputs=linear&num_seeds=1&training.max_steps=200"


@dataclass
class Seen:
    """Observations of the visitors, before the attack and during it."""

    alone_s: list[float] = field(default_factory=list)
    attacked_s: list[float] = field(default_factory=list)
    uploads_s: list[float] = field(default_factory=list)
    server_mib: list[float] = field(default_factory=list)
    worker_mib: list[float] = field(default_factory=list)
    jobs: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    is_attacked: bool = False

    def reacted(self, seconds: float) -> None:
        """Note how long a page took."""
        (self.attacked_s if self.is_attacked else self.alone_s).append(seconds)


async def visit(session: BrowserSession, seen: Seen, number: int, until: asyncio.Event) -> None:
    """Go from page to page and change choices; some visitors run a sweep or upload data every minute."""
    draw = random.Random(number)
    work = run_sweep if number < NUM_RUNNING else upload_data if number < NUM_RUNNING + NUM_UPLOADING else None
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


async def run_sweep(session: BrowserSession, seen: Seen, draw: random.Random) -> None:
    seen.reacted(await session.visit("kernel_change", f"{SWEEP}&seed={draw.randrange(10**6)}"))
    await run_job(session, seen, "kernel_change")


async def upload_data(session: BrowserSession, seen: Seen, draw: random.Random) -> None:
    mark = draw.randrange(10**6)
    rows = (f"{each},{each * each % 17},{'ab'[each % 2]}{mark}" for each in range(80))
    seen.reacted(await session.visit("own_data"))
    table = ("first,second,kind\n" + "\n".join(rows)).encode()
    seen.uploads_s.append(await session.upload("own_data.upload", "mine.csv", table))
    await run_job(session, seen, "own_data")


async def run_job(session: BrowserSession, seen: Seen, page: str) -> None:
    await session.act({f"{page}.run": CLICK})
    seen.reacted(await session.act())  # a click's own run may end where another page begins
    if session.job_id:
        seen.jobs.add(session.job_id)
    else:
        seen.refused += session.alerts or ["no job"]


async def drill(
    file: Path, address: str, num_visitors: int, minutes: float, seen: Seen
) -> tuple[dict[str, Any], list[str]]:
    """Visitors alone, then with the attacker; counts of the attack, and jobs that did not finish."""
    until, alone_s = asyncio.Event(), 60 * minutes / 3
    async with AsyncExitStack() as stack:
        visitors = []
        for number in range(num_visitors):
            page, client = IDLE_PAGES[number % len(IDLE_PAGES)], f"192.0.2.{number + 1}"
            visitors.append(BrowserSession(f"ws://{address}", page, forwarded_for=client))
            await stack.enter_async_context(visitors[-1])
            await visitors[-1].act()
        tasks = [asyncio.create_task(visit(each, seen, number, until)) for number, each in enumerate(visitors)]
        await asyncio.sleep(alone_s)
        command = [sys.executable, "-m", "benchmarks.drills.attack", address, str(2 * alone_s)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attack:
            assert attack.stdout is not None
            await asyncio.to_thread(attack.stdout.readline)
            seen.is_attacked = True
            seen.server_mib[:] = seen.server_mib[-1:]
            reported = json.loads(await asyncio.to_thread(attack.stdout.readline))
        until.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        seen.errors += [repr(task.exception()) for task in tasks if task.done() and task.exception()]
        # Visitors stay: jobs whose visitors have left end.
        return dict(reported), await asyncio.to_thread(unfinished, file, sorted(seen.jobs), AFTERWARDS_S)


def main(*, visitors: int = 29, minutes: float = 4.0) -> None:
    """One attacker among visitors; runs shorter than two minutes are not saved."""
    seen = Seen()
    with (
        own_data() as folder,
        served_app(LINEARITY_LAB_PROFILE="hosted") as app,
        proxied(app.address) as address,
        app.watched(seen.server_mib, seen.worker_mib, 0.5),
    ):
        machine = Watch()
        reported, left = asyncio.run(drill(folder / STORE, address, visitors, minutes, seen))
        busy = machine.note()["busy_by_others"]
    reaction = spread(seen.attacked_s)
    measured = {
        "num_visitors": visitors,
        "minutes": minutes,
        "cores_busy_by_others": None if busy is None else round(busy, 2),
        "reaction": reaction,
        "reaction_before": spread(seen.alone_s),
        "upload": spread(seen.uploads_s or [0.0]),
        "server_mib": [round(seen.server_mib[0]), round(max(seen.server_mib)), round(seen.server_mib[-1])],
        "worker_mib": round(max(seen.worker_mib)),
        "num_jobs": len(seen.jobs),
        "unfinished": left,
        "refused_to_visitors": seen.refused[:20],
        "attack": reported,
        "errors": seen.errors[:20],
    }
    claims = {
        f"pages of visitors react within {LIMIT_S:g} s (p95)": reaction["p95_s"] <= LIMIT_S,
        f"uploads of visitors are read within {UPLOAD_S:g} s": max(seen.uploads_s, default=0.0) <= UPLOAD_S,
        f"the server grows by {LIMIT_MIB} MiB at most": max(seen.server_mib) - seen.server_mib[0] <= LIMIT_MIB,
        f"no worker passes {WORKER_MIB:.0f} MiB": max(seen.worker_mib) <= WORKER_MIB,
        "no visitor sees an exception": not seen.errors,
        "every job of a visitor is accepted and finishes": bool(seen.jobs) and not left and not seen.refused,
    }
    conclude("attacker", measured, claims, is_kept=minutes >= 2)


if __name__ == "__main__":
    cyclopts.run(main)
