"""A full disk: pages stay, and work continues with space again.

Runs as root on Linux, since it mounts a file system of 48 MiB; a minute.
"""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import (
    STORE,
    conclude,
    finished_points,
    is_intact,
    own_data,
    unfinished,
)
from benchmarks.drills.served_app import ServedApp, answer_of, served_app

PAGE = "kernel_change"
SWEEP = "widths=10,20&num_seeds=1&outputs=linear&training.max_steps=200"
PATIENCE_S = 150.0


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 48 MiB, twice a writable store's need."""
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
    """Wait for a status of ``/api/ready``; return whether it came."""
    deadline = time.monotonic() + PATIENCE_S
    while (
        found := answer_of(f"http://{app.address}/api/ready")[0]
    ) != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    return found == wanted


async def run(
    app: ServedApp, file: Path, seed: int, patience_s: float
) -> tuple[str, bool, list[str], list[str]]:
    """Press Run; return job, success, alerts and exceptions."""
    async with BrowserSession(f"ws://{app.address}", PAGE, f"{SWEEP}&seed={seed}") as session:
        await session.act()
        job = await session.press_run(PAGE)
        alerts = list(session.alerts)
        done = bool(job) and not await asyncio.to_thread(unfinished, file, [job], patience_s)
        await session.act()
        return job, done, [*alerts, *session.alerts], session.errors


def main() -> None:
    """Run with space, without, and with space again, on one server."""
    with small_disk() as disk, own_data():
        file = disk / STORE
        with served_app(LINEARITY_LAB_STORE=str(file)) as app:
            was_ready = becomes(app, 200)
            first, was_done, _, _ = asyncio.run(run(app, file, 1, PATIENCE_S))
            kept = finished_points(file, first)
            fill(disk / "filling")
            is_refused = becomes(app, 503)
            _, _, alerts, errors = asyncio.run(run(app, file, 2, 10.0))
            is_kept = finished_points(file, first) == kept and is_intact(file)
            (disk / "filling").unlink()
            is_back = becomes(app, 200)
            _, again, _, more = asyncio.run(run(app, file, 3, PATIENCE_S))
            is_kept = is_kept and not list(disk.glob("*.damaged*"))
    claims = {
        "a full disk makes the server not ready": was_ready and was_done and is_refused,
        "a page reports it and shows no exception": any("cannot be" in each for each in alerts)
        and not errors + more,
        "finished points survive and the store is intact": is_kept,
        "with room again the same server is ready and finishes a run": is_back and again,
    }
    conclude("full_disk", {"alerts_when_full": alerts, "errors": errors + more}, claims)


if __name__ == "__main__":
    cyclopts.run(main)
