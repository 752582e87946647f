"""How long a run waits for a worker, simulated, and how many workers one run can use: ``python -m benchmarks.waits``.

Runs arrive at random (Poisson), each takes as long as one of the stored runs of the gallery took, and workers take them
in order; on a shared server a run that has had a minute gives way to whoever waits, and goes on later. Two tables in
docs/scale.md. Its test holds it against Erlang's formula (M/M/c), where that applies.
"""

from __future__ import annotations

import heapq
import json
import math
import re
import statistics
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.words import table
from ntk_core import presets
from ntk_core.runs import machine, work_of_points

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scale.md"
# One student asks for something every ten minutes, and every third time nobody has computed it yet; our assumption.
SECONDS_BETWEEN_NEW_RUNS = 3 * 600.0
CASES = (
    (30, 2),
    (30, 4),
    (100, 8),
    (100, 10),
    (100, 16),
    (1_000, 64),
    (1_000, 80),
    (1_000, 96),
)  # students at work, workers
TURN_S, LOOK_S = 60.0, 5.0  # what a run has before it gives way, and how often it then looks whether anybody waits
NUM_JOBS, SEEDS, WARM_UP = 8_000, (0, 1, 2, 3, 4), 0.1


def service_times() -> np.ndarray:
    """Seconds that the stored runs took, one worker each."""
    return np.array([json.loads(path.read_text())["runtime_s"] for path in sorted((ROOT / "gallery").glob("*.json"))])


def simulated(arrivals: np.ndarray, services: np.ndarray, workers: int, turn_s: float = math.inf) -> np.ndarray:
    """Seconds from the arrival of each run to its begin."""
    left, begun = services.astype(float).copy(), np.full(len(arrivals), np.nan)
    waiting: deque[int] = deque()
    running: list[tuple[float, int, float]] = []  # (when this stretch ends, run, its length)
    coming = 0
    while coming < len(arrivals) or running:
        if coming < len(arrivals) and (not running or arrivals[coming] <= running[0][0]):
            now = float(arrivals[coming])
            waiting.append(coming)
            coming += 1
        else:
            now, job, length = heapq.heappop(running)
            left[job] -= length
            if left[job] > 1e-9:
                if waiting:
                    waiting.append(job)
                else:
                    stretch = min(LOOK_S, left[job])
                    heapq.heappush(running, (now + stretch, job, stretch))
        while waiting and len(running) < workers:
            job = waiting.popleft()
            begun[job] = now if math.isnan(begun[job]) else begun[job]
            stretch = min(turn_s, left[job])
            heapq.heappush(running, (now + stretch, job, stretch))
    return begun - arrivals


def waits_of(rate: float, services: np.ndarray, workers: int, turn_s: float) -> list[np.ndarray]:
    """Waits of the runs of every seed, the first tenth left out, until there is a queue."""
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / rate, NUM_JOBS))
        found.append(simulated(arrivals, rng.choice(services, NUM_JOBS), workers, turn_s)[int(WARM_UP * NUM_JOBS) :])
    return found


def queue_table() -> str:
    """Median and 95th percentile of the wait, the latter with its standard error over the seeds."""
    services, rows = service_times(), []
    for students, workers in CASES:
        rate = students / SECONDS_BETWEEN_NEW_RUNS
        load = rate * float(services.mean())
        cells = [f"{students:,}", str(workers), f"{load / workers:.0%}"]
        for turn_s in (math.inf, TURN_S):
            if load >= workers:
                cells += ["grows without end"] * 2
                continue
            of_seeds = waits_of(rate, services, workers, turn_s)
            late = [float(np.quantile(each, 0.95)) for each in of_seeds]
            error = statistics.stdev(late) / math.sqrt(len(late))
            cells += [
                _seconds(float(np.median(np.concatenate(of_seeds)))),
                f"{_seconds(statistics.fmean(late))} ± {error:.0f}",
            ]
        rows.append(cells)
    head = [
        "students at work",
        "workers",
        "busy",
        "median",
        "1 in 20 waits longer",
        "median, in turns",
        "1 in 20, in turns",
    ]
    return table(head, rows)


def speedup_table() -> str:
    """By how much all presets could be sooner if every point had a machine: the whole over its longest point."""
    found: dict[str, list[float]] = {}
    for spec in presets().values():
        seconds = [machine().seconds(work) for work in work_of_points(spec).values()]
        found.setdefault(spec.experiment, []).append(sum(seconds) / max(seconds))
    rows = [
        [name, str(len(all_)), f"{statistics.median(all_):.1f} ×", f"{max(all_):.1f} ×"] for name, all_ in found.items()
    ]
    everything = [value for all_ in found.values() for value in all_]
    rows.append(["all", str(len(everything)), f"{statistics.median(everything):.1f} ×", f"{max(everything):.1f} ×"])
    return table(["experiment", "presets", "median", "largest"], rows)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def written(text: str, tables: Sequence[tuple[str, str]]) -> str:
    """The page with each table between its two marks."""
    for name, rows in tables:
        marks = f"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        text, count = re.subn(marks, f"{rows}\n".replace("\\", r"\\"), text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"docs/scale.md has no place for the table {name!r}")
    return text


if __name__ == "__main__":
    tables = [("waits", queue_table()), ("speedups", speedup_table())]
    PAGE.write_text(written(PAGE.read_text(), tables))
