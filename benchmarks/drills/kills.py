"""Kill -9 of workers and of the server at random moments while sweeps run.

Run: ``python -m benchmarks.drills.kills [--kills N]`` (50 kills: about eight minutes on two quiet cores). Claims: no
finished point is lost, the store is never corrupt, every job goes on by itself and completes, and every point equals
that of an uninterrupted run to the bit.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from benchmarks.drills.drilled_server import sweep
from benchmarks.drills.report import ROOT, conclude, own_data
from linearity_lab.jobs import Jobs
from ntk_core.runs import PointValue
from ntk_core.runs.store import Store

SERVER_SHARE = 0.4
LONGEST_S = 6.0


class DrilledServer:
    """A server process and what it has told so far."""

    def __init__(self, store: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.drills.drilled_server", str(store)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def told(self) -> Iterator[dict[str, Any]]:
        """What it has told since the last call."""
        while not self._lines.empty():
            yield self._lines.get()

    def kill(self) -> None:
        self._process.kill()
        self.wait(10)

    def kill_a_worker(self, draw: random.Random) -> bool:
        """Kill one of its workers, whichever; whether there was one."""
        try:
            draw.choice(psutil.Process(self._process.pid).children()).kill()
        except (IndexError, psutil.Error):
            return False
        return True

    def finish(self, patience_s: float) -> int:
        """Let it complete what it has; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"enough\n")
        self._process.stdin.flush()
        return self.wait(patience_s)

    def wait(self, patience_s: float) -> int:
        code = self._process.wait(patience_s)
        self._reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._lines.put(json.loads(line))
            except ValueError:  # cut off by the kill
                return


def drill(folder: Path, num_kills: int, seed: int = 0, longest_s: float = LONGEST_S) -> dict[str, Any]:
    """That many kills, then completion; everything that was seen."""
    draw = random.Random(seed)
    file = folder / "results.sqlite"
    server = DrilledServer(file)
    seen: list[dict[str, Any]] = []
    kills = {"server": 0, "worker": 0}
    intact = []
    while sum(kills.values()) < num_kills:
        time.sleep(draw.uniform(0, longest_s))
        if draw.random() < SERVER_SHARE:
            server.kill()
            seen += server.told()
            server = DrilledServer(file)
            kills["server"] += 1
        elif server.kill_a_worker(draw):
            kills["worker"] += 1
        seen += server.told()
        intact.append(_integrity(file) and _all_there(file, seen))
    code = server.finish(patience_s=1800)
    seen += server.told()
    store = Store(file)
    num_sweeps = seen[-1].get("completed", 0) if seen else 0
    found = {
        "kills": kills,
        "exit_code": code,
        "num_sweeps": num_sweeps,
        "num_told_points": len({(line["of"], line["point"]) for line in seen if "point" in line}),
        "intact": all([*intact, _integrity(file) and _all_there(file, seen)]),
        "not_resumed": not_resumed(seen),
        "run_again": [line for line in seen if "run_again" in line],
        "set_aside": [path.name for path in folder.glob("*.damaged-*")],
    }
    found["points"] = {index: _points(store, index) for index in range(num_sweeps)}
    store.close()
    return found


def not_resumed(seen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a server told of jobs that it did not go on with, though an earlier one had taken or found them."""
    promised: set[int] = set()
    lost = []
    for line in seen:
        if line.get("status") == "cancelled" and line.get("found") in promised:
            lost.append(line)
        promised |= {line[each] for each in ("taken", "found") if each in line and line.get("status") != "cancelled"}
    return lost


def uninterrupted(folder: Path, num_sweeps: int) -> dict[int, dict[str, Any]]:
    """The points of the same sweeps, computed without a kill."""
    jobs = Jobs(Store(folder / "reference.sqlite"), num_workers=2)
    store = Store(folder / "reference.sqlite")
    try:
        for index in range(num_sweeps):
            job_id = jobs.submit(sweep(index))
            while (now := jobs.snapshot(job_id)) is None or now.active:
                time.sleep(0.02)
        return {index: _points(store, index) for index in range(num_sweeps)}
    finally:
        jobs.shutdown()
        store.close()


def claims(found: dict[str, Any], reference: dict[int, dict[str, Any]]) -> dict[str, bool]:
    """What the drill is about."""
    return {
        "no finished point was lost and the store was intact after every kill": found["intact"]
        and not found["set_aside"],
        "every job went on by itself when a server was killed": not found["not_resumed"],
        "every job completed": found["exit_code"] == 0 and found["num_sweeps"] > 0,
        "every point equals that of an uninterrupted run to the bit": found["points"] == reference,
    }


def _points(store: Store, index: int) -> dict[str, Any]:
    return {key: _without_times(point) for key, point in store.points(sweep(index)).finished().items()}


def _without_times(point: PointValue) -> dict[str, Any]:
    values = point.model_dump(mode="json")
    assert values.pop("runtime_s") >= 0
    assert values["provenance"].pop("started_at")
    return values


def _integrity(file: Path) -> bool:
    """What SQLite itself says of the file."""
    if not file.exists():  # killed before anything was written
        return True
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")


def _all_there(file: Path, seen: list[dict[str, Any]]) -> bool:
    """Whether every point that was told is in the store, intact."""
    store = Store(file)
    try:
        told = {(line["of"], line["point"]) for line in seen if "point" in line}
        kept = {index: store.points(sweep(index)).finished() for index in {index for index, _ in told}}
        return all(key in kept[index] for index, key in told)
    finally:
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    with own_data() as folder:
        found = drill(folder, options.kills, options.seed)
        reference = uninterrupted(folder, found["num_sweeps"])
    verdict = claims(found, reference)
    del found["points"]
    conclude("kills", {**found, "took_s": round(time.monotonic() - began)}, verdict)


if __name__ == "__main__":
    main()
