"""One attacker among visitors, through nginx as compose.yaml starts it.

The profile is ``hosted``. Visitors are alone for the first third of the time; then every kind of
attack of ``benchmarks.drills.attack`` runs from a separate address.
"""

import asyncio
import json
import subprocess
import sys

import cyclopts

from benchmarks.drills.report import STORE, conclude, own_data, spread
from benchmarks.drills.served_app import proxied, served_app
from benchmarks.drills.sessions import Seen, Visit, crowd, work
from benchmarks.measure import ROOT, Row, Watch
from linearity_lab.dashboard.jobs.profile import PROFILES

LIMIT_S = 1.0
UPLOAD_S = 30.0
LIMIT_MIB = 150
# The profile's cap of a job, and a quarter between two measurements of it.
WORKER_MIB = 1.25 * PROFILES["hosted"].max_memory_bytes / 2**20
NUM_RUNNING = 3
NUM_UPLOADING = 2
SWEEP = "widths=10&outputs=linear&num_seeds=1&training.max_steps=200"
VISIT = Visit(SWEEP, distinct=NUM_RUNNING, pause_s=(5.0, 10.0), page_share=0.5, every_s=60.0)


async def drill(
    address: str, seen: Seen, server_mib: list[float], num_visitors: int, minutes: float
) -> Row:
    """Visitors alone, then with the attacker: counts of the attack, and reactions."""

    async def attack() -> tuple[Row, int]:
        await asyncio.sleep(60 * minutes / 3)
        command = [sys.executable, "-m", "benchmarks.drills.attack", address, str(40 * minutes)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attacking:
            assert attacking.stdout is not None
            await asyncio.to_thread(attacking.stdout.readline)
            num_before = len(seen.reactions_s)
            server_mib[:] = server_mib[-1:]
            return json.loads(await asyncio.to_thread(attacking.stdout.readline)), num_before

    async with crowd(address, seen, num_visitors, NUM_RUNNING) as visitors:
        attacking = asyncio.create_task(attack())
        await work(visitors, seen, VISIT, NUM_RUNNING, NUM_UPLOADING, minutes)
        reported, num_before = await attacking
    before_s = seen.reactions_s[:num_before]
    during_s = seen.reactions_s[num_before:]
    return {"attack": reported, "reaction_before": spread(before_s), "reaction": spread(during_s)}


def main(*, visitors: int = 29, minutes: float = 4.0) -> None:
    """One attacker among visitors; runs shorter than two minutes are not saved."""
    server_mib = list[float]()
    workers_mib = list[float]()
    with (
        own_data() as folder,
        served_app(LINEARITY_LAB_PROFILE="hosted") as app,
        proxied(app.address) as address,
        app.watched(server_mib, workers_mib, 0.5),
    ):
        seen = Seen(folder / STORE)
        machine = Watch()
        found = asyncio.run(drill(address, seen, server_mib, visitors, minutes))
        busy = machine.note()["busy_by_others"]
    worker_mib = max(workers_mib)
    conditions = {
        "num_visitors": visitors,
        "minutes": minutes,
        "cores_busy_by_others": round(busy, 2),
    }
    memory = {"server_mib": [round(server_mib[0]), round(max(server_mib)), round(server_mib[-1])]}
    jobs = {"num_jobs": seen.num_jobs, "unfinished": seen.unfinished, "errors": seen.errors[:20]}
    measured = {
        "upload": spread(seen.uploads_s or [0.0]),
        **memory,
        "worker_mib": round(worker_mib),
        **jobs,
    }
    large = found["attack"]["large results"]
    claims = {
        f"pages of visitors react within {LIMIT_S:g} s (p95)": found["reaction"]["p95_s"]
        <= LIMIT_S,
        f"uploads of visitors are read within {UPLOAD_S:g} s": max(seen.uploads_s, default=0.0)
        <= UPLOAD_S,
        f"the server grows by {LIMIT_MIB} MiB at most": max(server_mib) - server_mib[0]
        <= LIMIT_MIB,
        f"no worker passes {WORKER_MIB:.0f} MiB": worker_mib <= WORKER_MIB,
        "no visitor sees an exception or data of another one": not seen.errors and not seen.leaks,
        "every job of a visitor is accepted and finishes": bool(seen.jobs) and not seen.unfinished,
        "runs with large results are refused, with their size in the alert": bool(
            large.get("refused in words")
        )
        and not large.get("done")
        and not large.get("unexplained"),
    }
    conclude("attacker", {**conditions, **found, **measured}, claims, is_kept=minutes >= 2)


if __name__ == "__main__":
    cyclopts.run(main)
