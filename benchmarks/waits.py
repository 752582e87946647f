"""Simulated waits for workers: ``python -m benchmarks.waits``.

Runs arrive at random (Poisson), each takes as long as a stored run of the gallery, and workers take
them first in, first out. Two tables in docs/scale.md. A test compares the waits with Erlang's
formula (M/M/c), where that applies.
"""

import heapq
import json
import math
import re
import statistics

import numpy as np

from benchmarks.measure import ROOT
from benchmarks.words import table
from linearity_lab import presets
from linearity_lab.runs import machine, work_of_points

PAGE = ROOT / "docs" / "scale.md"
# Each student makes a request every ten minutes, and one third need a computation; our assumption.
SECONDS_BETWEEN_NEW_RUNS = 3 * 600.0
# Students at work, workers.
CASES = ((30, 1), (30, 2), (100, 3), (100, 4), (100, 6), (1_000, 24), (1_000, 28), (1_000, 32))
NUM_JOBS = 8_000
SEEDS = (0, 1, 2, 3, 4)
WARM_UP = 0.1


def simulated(arrivals: np.ndarray, services: np.ndarray, workers: int) -> np.ndarray:
    """Return seconds from each arrival to its start, first in, first out."""
    free = [0.0] * workers  # time at which each worker is free
    waits = np.empty(len(arrivals))
    for index, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        begin = max(arrival, free[0])
        waits[index] = begin - arrival
        heapq.heapreplace(free, begin + service)
    return waits


def waits_of(rate: float, services: np.ndarray, workers: int) -> list[np.ndarray]:
    """Return waits for every seed, without the first tenth."""
    found = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / rate, NUM_JOBS))
        found.append(
            simulated(arrivals, rng.choice(services, NUM_JOBS), workers)[int(WARM_UP * NUM_JOBS) :]
        )
    return found


def queue_cells(rate: float, services: np.ndarray, workers: int) -> list[str]:
    """Return load, median and 95th percentile of the wait."""
    load = rate * float(services.mean())
    if load >= workers:
        return [f"{load / workers:.0%}", *["grows without end"] * 2]
    of_seeds = waits_of(rate, services, workers)
    late = [float(np.quantile(each, 0.95)) for each in of_seeds]
    error = statistics.stdev(late) / math.sqrt(len(late))
    median = float(np.median(np.concatenate(of_seeds)))
    return [
        f"{load / workers:.0%}",
        _seconds(median),
        f"{_seconds(statistics.fmean(late))} ± {error:.0f}",
    ]


def queue_table() -> str:
    """Return the table of waits."""
    stored = (json.loads(path.read_text()) for path in sorted((ROOT / "gallery").glob("*.json")))
    services = np.array([each["runtime_s"] for each in stored])
    rows = []
    for students, workers in CASES:
        cells = queue_cells(students / SECONDS_BETWEEN_NEW_RUNS, services, workers)
        rows.append([f"{students:,}", str(workers), *cells])
    return table(["students at work", "workers", "busy", "median", "1 in 20 waits longer"], rows)


def speedup_table() -> str:
    """Return the table of possible speedups: the whole over its longest point."""
    found: dict[str, list[float]] = {}
    for spec in presets().values():
        seconds = [machine().seconds(work) for work in work_of_points(spec).values()]
        found.setdefault(spec.experiment, []).append(sum(seconds) / max(seconds))
    found["all"] = [value for values in found.values() for value in values]
    rows = []
    for name, values in found.items():
        rows.append(
            [name, str(len(values)), f"{statistics.median(values):.1f} ×", f"{max(values):.1f} ×"]
        )
    return table(["experiment", "presets", "median", "largest"], rows)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def written(text: str, tables: dict[str, str]) -> str:
    """Return the page with each table between its two marks."""
    for name, rows in tables.items():
        marks = f"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        text, count = re.subn(marks, f"{rows}\n".replace("\\", r"\\"), text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"docs/scale.md has no place for the table {name!r}")
    return text


if __name__ == "__main__":
    PAGE.write_text(
        written(PAGE.read_text(), {"waits": queue_table(), "speedups": speedup_table()})
    )
