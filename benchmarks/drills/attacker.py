"""One attacker among visitors, through nginx as compose.yaml starts it.

Run: ``python -m benchmarks.drills.attacker [--minutes 4 --visitors 29]``. The profile is ``hosted``. Visitors are alone
for the first third of the time; then every kind of attack of ``benchmarks.drills.attack`` runs from an address of its
own. Claims: pages of visitors react within a second (p95), small uploads within 30 s, memory of server and workers
stays bounded, and every job of a visitor finishes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field

import cyclopts

from benchmarks.drills.report import ROOT, STORE, conclude, own_data, spread
from benchmarks.drills.served_app import proxied, served_app
from benchmarks.drills.sessions import Seen, Visit, crowd, work
from benchmarks.measure import Row, Watch

LIMIT_S, UPLOAD_S, LIMIT_MIB = 1.0, 30.0, 150
WORKER_MIB = 1.25 * 1024 * 1.25  # the profile's cap of a job, and a quarter between two measurements of it
NUM_RUNNING, NUM_UPLOADING = 3, 2
SWEEP = "widths=10&outputs=linear&num_seeds=1&training.max_steps=200"
VISIT = Visit(SWEEP, distinct=NUM_RUNNING, pause_s=(5.0, 10.0), page_share=0.5, every_s=60.0)


@dataclass
class Memory:
    """Of the server and its largest worker, in MiB."""

    server_mib: list[float] = field(default_factory=list)
    worker_mib: list[float] = field(default_factory=list)


async def drill(address: str, seen: Seen, memory: Memory, num_visitors: int, minutes: float) -> Row:
    """Visitors alone, then with the attacker; counts of the attack, and how many reactions came before it."""

    async def attack() -> tuple[Row, int]:
        await asyncio.sleep(60 * minutes / 3)
        command = [sys.executable, "-m", "benchmarks.drills.attack", address, str(40 * minutes)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attacking:
            assert attacking.stdout is not None
            await asyncio.to_thread(attacking.stdout.readline)
            num_before = len(seen.reactions_s)
            memory.server_mib[:] = memory.server_mib[-1:]
            return json.loads(await asyncio.to_thread(attacking.stdout.readline)), num_before

    async with crowd(address, seen, num_visitors, NUM_RUNNING) as visitors:
        attacking = asyncio.create_task(attack())
        await work(visitors, seen, VISIT, NUM_RUNNING, NUM_UPLOADING, minutes)
        reported, num_before = await attacking
    before_s, during_s = seen.reactions_s[:num_before], seen.reactions_s[num_before:]
    return {"attack": reported, "reaction_before": spread(before_s), "reaction": spread(during_s)}


def main(*, visitors: int = 29, minutes: float = 4.0) -> None:
    """One attacker among visitors; runs shorter than two minutes are not saved."""
    memory = Memory()
    with (
        own_data() as folder,
        served_app(LINEARITY_LAB_PROFILE="hosted") as app,
        proxied(app.address) as address,
        app.watched(memory.server_mib, memory.worker_mib, 0.5),
    ):
        seen, machine = Seen(folder / STORE), Watch()
        found = asyncio.run(drill(address, seen, memory, visitors, minutes))
        busy = machine.note()["busy_by_others"]
    server_mib, worker_mib = memory.server_mib, max(memory.worker_mib)
    measured = {
        "num_visitors": visitors,
        "minutes": minutes,
        "cores_busy_by_others": None if busy is None else round(busy, 2),
        **found,
        "upload": spread(seen.uploads_s or [0.0]),
        "server_mib": [round(server_mib[0]), round(max(server_mib)), round(server_mib[-1])],
        "worker_mib": round(worker_mib),
        "num_jobs": seen.num_jobs,
        "unfinished": seen.unfinished,
        "errors": seen.errors[:20],
    }
    claims = {
        f"pages of visitors react within {LIMIT_S:g} s (p95)": found["reaction"]["p95_s"] <= LIMIT_S,
        f"uploads of visitors are read within {UPLOAD_S:g} s": max(seen.uploads_s, default=0.0) <= UPLOAD_S,
        f"the server grows by {LIMIT_MIB} MiB at most": max(server_mib) - server_mib[0] <= LIMIT_MIB,
        f"no worker passes {WORKER_MIB:.0f} MiB": worker_mib <= WORKER_MIB,
        "no visitor sees an exception or data of another one": not seen.errors and not seen.leaks,
        "every job of a visitor is accepted and finishes": bool(seen.jobs) and not seen.unfinished,
    }
    conclude("attacker", measured, claims, is_kept=minutes >= 2)


if __name__ == "__main__":
    cyclopts.run(main)
