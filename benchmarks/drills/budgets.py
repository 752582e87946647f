"""Two runs that would take gigabytes, on a hosted server behind nginx.

Run: ``python -m benchmarks.drills.budgets`` (two minutes at most). Claims: the one that was estimated at 179 MiB ends
as over memory at the profile's own cap, the other one is refused by name, a visitor's run continues and completes,
pages react, and the next run of the same client completes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cyclopts

from benchmarks.drills.attack import HUNGRY
from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.proxied import proxied
from benchmarks.drills.report import STORE, conclude, own_data, spread, unfinished
from benchmarks.drills.served_app import served_app
from linearity_lab.jobs.profile import PROFILES

LIMIT_S, PATIENCE_S, LOOK_S, PAUSE_S = 1.0, 90.0, 0.5, 1.0
CAP_BYTES = PROFILES["hosted"].max_memory_bytes
# Above the cap: what a worker holds when it is warm, and the burst between two measurements.
WORKER_MIB = CAP_BYTES / 2**20 + 1024
PAGE = "kernel_change"
# Most of a minute; then a second.
STEADY = "widths=30,100,300&outputs=linear&num_seeds=3&training.learning_rate=1e-6&training.loss_threshold=1e-9"
QUICK = "widths=10&outputs=linear&num_seeds=1&training.max_steps=200"


@dataclass
class Seen:
    """Observations during the drill."""

    ends: list[dict[str, Any]] = field(default_factory=list)
    reactions_s: list[float] = field(default_factory=list)
    server_mib: list[float] = field(default_factory=list)
    worker_mib: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


async def finishes(file: Path, job: str) -> bool:
    """Whether all points of a job are in the store within a while."""
    return bool(job) and not await asyncio.to_thread(unfinished, file, [job], PATIENCE_S)


async def be_greedy(session: BrowserSession, seen: Seen) -> None:
    """Run both, one after the other, and record the page's text at the end of each."""
    for page, query in HUNGRY.items():
        began = time.monotonic()
        await session.run(page, query)
        while session.live and time.monotonic() < began + PATIENCE_S:
            await asyncio.sleep(LOOK_S)
        await session.act()
        seen.ends.append(
            {
                "experiment": page,
                "took_s": round(time.monotonic() - began, 1),
                "alerts": [alert.replace("\\", "") for alert in session.alerts],
            }
        )


async def look_around(session: BrowserSession, seen: Seen) -> None:
    """Reload a page again and again."""
    while True:
        await asyncio.sleep(PAUSE_S)
        seen.reactions_s.append(await session.act())


async def drill(address: str, file: Path, seen: Seen) -> dict[str, Any]:
    """A steady run of a visitor, the two greedy ones meanwhile, and a quick one afterwards."""

    def session(client: int, page: str = PAGE) -> BrowserSession:
        return BrowserSession(f"ws://{address}", page, forwarded_for=f"192.0.2.{client}")

    async with session(1) as visitor, session(2) as greedy, session(3, "glossary") as reader:
        for each in (visitor, greedy, reader):
            await each.act()
        steady = await visitor.run(PAGE, STEADY)
        looking = asyncio.create_task(look_around(reader, seen))
        await be_greedy(greedy, seen)
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        is_undisturbed = await finishes(file, steady)
        quick = await greedy.run(PAGE, QUICK)
        seen.errors += [error for each in (visitor, greedy, reader) for error in each.errors]
        return {"steady_finished": is_undisturbed, "next_finished": await finishes(file, quick)}


def main() -> None:
    """Two runs that would take gigabytes, on a hosted server behind nginx."""
    seen, began = Seen(), time.monotonic()
    with (
        own_data() as folder,
        served_app(LINEARITY_LAB_PROFILE="hosted", LINEARITY_LAB_WORKERS="2") as app,
        proxied(app.address) as address,
        app.watched(seen.server_mib, seen.worker_mib, 0.1),
    ):
        found = asyncio.run(drill(address, folder / STORE, seen))
    cap = f"{CAP_BYTES / 2**30:.1f} GiB"
    convolutional, teacher = (" ".join(each["alerts"]) for each in seen.ends)
    claims = {
        f"the convolutional network ends with “Over memory: {cap} allowed”": f"Over memory: {cap} allowed"
        in convolutional,
        f"the teacher ends so, or is refused since “{cap} are available”": f"{cap} a" in teacher,
        f"no worker passes {WORKER_MIB:.0f} MiB": max(seen.worker_mib) <= WORKER_MIB,
        "a visitor's run continues and completes": found["steady_finished"],
        "the next run of the same client completes": found["next_finished"],
        f"pages react within {LIMIT_S:g} s (p95)": spread(seen.reactions_s or [9e9])["p95_s"] <= LIMIT_S,
        "no page shows an exception": not seen.errors,
    }
    measured = {
        "cap_mib": round(CAP_BYTES / 2**20),
        "ends": seen.ends,
        "worker_mib": round(max(seen.worker_mib)),
        "reaction": spread(seen.reactions_s or [0.0]),
        "errors": seen.errors[:20],
        "took_s": round(time.monotonic() - began),
        **found,
    }
    conclude("budgets", measured, claims)


if __name__ == "__main__":
    cyclopts.run(main)
