"""A full disk: pages stay, runs end with a sentence, and work continues when there is space again.

Run: ``python -m benchmarks.drills.full_disk`` (as root on Linux: it mounts a file system of 48 MiB; a minute). Claims:
a page shows no exception, the server reports that it is not ready, finished points survive, and after some space is
made the same server finishes the run.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import STORE, conclude, finished_points, is_intact, own_data, unfinished
from benchmarks.drills.served_app import ServedApp, answer_of, served_app
from benchmarks.measure import Row

PAGE, SWEEP = "kernel_change", "widths=10,20&num_seeds=1&outputs=linear&training.max_steps=200"
PATIENCE_S = 150.0


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 48 MiB, more than twice what a store needs to count as writable."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as filling:
        try:
            while filling.write(bytes(2**16)):
                pass
        except OSError:
            os.fsync(filling.fileno())


def becomes(app: ServedApp, wanted: int) -> bool:
    """Whether the status of ``/api/ready`` becomes this within a while."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if answer_of(f"http://{app.address}/api/ready")[0] == wanted:
            return True
        time.sleep(0.5)
    return False


async def run(app: ServedApp, file: Path, seed: int, patience_s: float) -> tuple[str, bool, list[str], list[str]]:
    """Press Run; job id, whether it finished in time, alerts and exceptions of the page."""
    async with BrowserSession(f"ws://{app.address}", PAGE, f"{SWEEP}&seed={seed}") as session:
        await session.act()
        await session.act({f"{PAGE}.run": CLICK})
        alerts, job = list(session.alerts), session.job_id
        done = bool(job) and not await asyncio.to_thread(unfinished, file, [job], patience_s)
        await session.act()
        return job, done, [*alerts, *session.alerts], session.errors


def drill() -> Row:
    """A run with space, one without, and one with space again, on one server."""
    with small_disk() as disk, own_data():
        file = disk / STORE
        with served_app(LINEARITY_LAB_STORE=str(file)) as app:
            was_ready = becomes(app, 200)
            first, was_done, _, _ = asyncio.run(run(app, file, 1, PATIENCE_S))
            kept = finished_points(file, first)
            fill(disk / "filling")
            is_refused = becomes(app, 503)
            _, without_space, alerts, errors = asyncio.run(run(app, file, 2, 10.0))
            is_kept, is_whole = finished_points(file, first) == kept, is_intact(file)
            (disk / "filling").unlink()
            is_back = becomes(app, 200)
            _, again, _, more = asyncio.run(run(app, file, 3, PATIENCE_S))
            set_aside = [path.name for path in disk.glob("*.damaged*")]
    return {
        "ready_before": was_ready and was_done,
        "not_ready_when_full": is_refused,
        "finished_when_full": without_space,
        "alerts_when_full": alerts,
        "kept": is_kept and is_whole and not set_aside,
        "ready_again": is_back and again,
        "errors": errors + more,
    }


def main() -> None:
    """Fill the disk under a running server, and free it again."""
    found = drill()
    claims = {
        "a full disk makes the server not ready": found["ready_before"] and found["not_ready_when_full"],
        "a page reports it and shows no exception": any("cannot be" in each for each in found["alerts_when_full"])
        and not found["errors"],
        "finished points survive and the store is intact": found["kept"],
        "with room again the same server is ready and finishes a run": found["ready_again"],
    }
    conclude("full_disk", found, claims)


if __name__ == "__main__":
    cyclopts.run(main)
