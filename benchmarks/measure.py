"""Fair timing: competitors take turns, medians come with their spread; how busy others kept the machine."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.peers.side import forget_peak, resident_bytes
from ntk_core.fits import fit_power_law

RESULTS = Path(__file__).parent / "results"
# Above this many cores kept busy by other programs, a number depends on them more than on this code.
MOST_BY_OTHERS = 0.3
_PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@dataclass(frozen=True)
class Settings:
    """How a part of the benchmarks is to be run.

    Attributes:
        quick: tiny sizes, to see that everything works; such numbers are never kept.
        interpreters: the Python of each peer's environment that is at hand, by its name; parts leave out the others.
    """

    quick: bool = False
    interpreters: Mapping[str, str] | None = None

    def interpreter(self, peer: str) -> str | None:
        return (self.interpreters or {}).get(peer)


@dataclass(frozen=True)
class Measured:
    """One call: its wall time, and by how much it raised the memory of its process at its peak."""

    seconds: float
    added_bytes: int | None = None


Competitor = Callable[[bool], Measured]


def environment(packages: tuple[str, ...] = ("jax", "jaxlib", "numpy")) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_at_start": os.getloadavg()[0],
        "packages": {name: metadata.version(name) for name in packages},
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def own(work: Callable[[], object]) -> Competitor:
    """A competitor in this process: a function whose JAX arrays are waited for."""

    def call(weigh: bool) -> Measured:
        import jax

        before = forget_peak() if weigh else None
        began = time.perf_counter()
        jax.block_until_ready(work())
        seconds = time.perf_counter() - began
        return Measured(seconds, None if before is None else max(0, resident_bytes("VmHWM") - before))

    return call


def alternate(
    competitors: Mapping[str, Competitor], *, repeats: int, budget_s: float = float("inf"), least: int = 3
) -> dict[str, dict[str, Any]]:
    """Times of each competitor, called in turn ``repeats`` times after one call that is listed apart.

    The first call includes tracing and compiling. The first call also records how much memory it added. A
    competitor whose calls in turn have taken ``budget_s`` seconds sits out, but not before ``least`` of them.
    """
    first = {name: call(False).seconds for name, call in competitors.items()}
    times: dict[str, list[float]] = {name: [] for name in competitors}
    added: dict[str, int | None] = {}
    for turn in range(repeats):
        for name, call in competitors.items():
            if turn < least or sum(times[name]) < budget_s:
                measured = call(turn == 0)
                times[name].append(measured.seconds)
                added.setdefault(name, measured.added_bytes)
    return {
        name: {"first_s": first[name], **spread(values), "added_bytes": added[name]} for name, values in times.items()
    }


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median, quartiles, extremes and number of times in seconds."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * [values[0]]
    return {
        "median_s": middle,
        "min_s": min(values),
        "q1_s": low,
        "q3_s": high,
        "max_s": max(values),
        "repeats": len(values),
    }


def ratio(rows: Mapping[str, Mapping[str, Any]], peer: str, ours: str) -> float:
    """How many times faster ``ours`` is than ``peer``, by medians."""
    return rows[peer]["median_s"] / rows[ours]["median_s"]


def fitted(sizes: Sequence[float], seconds: Sequence[float]) -> dict[str, Any] | None:
    """Exponent of a time in a size with the half-width of its 95 % interval (None for fewer than four sizes).

    None for fewer than three sizes.
    """
    law = fit_power_law(sizes, seconds)
    if law is None:
        return None
    interval = law.interval if math.isfinite(law.interval) else None
    return {"exponent": law.exponent, "interval": interval, "num_values": law.num_values}


def peak_of(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` in a process of its own and return the JSON of its last line."""
    output = subprocess.run(
        [sys.executable, "-m", module, *arguments], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(output.strip().splitlines()[-1])


class Watch:
    """How busy the machine was between now and ``note``, by us and by others."""

    def __init__(self) -> None:
        _adopt_orphans()
        self._load = os.getloadavg()[0]
        self._began, self._machine, self._ours = time.monotonic(), _machine_seconds(), _our_seconds()

    def note(self) -> dict[str, Any]:
        """Load averages, cores that others kept busy in the mean, and whether that was too much to trust the times."""
        elapsed = time.monotonic() - self._began
        machine = _machine_seconds()
        note: dict[str, Any] = {"at_start": self._load, "at_end": os.getloadavg()[0], "took_s": elapsed}
        if machine is None or self._machine is None:
            return {**note, "busy_by_others": None, "high": self._load > MOST_BY_OTHERS * (os.cpu_count() or 1)}
        others = max(0.0, machine - self._machine - (_our_seconds() - self._ours)) / max(elapsed, 1e-9)
        return {**note, "busy_by_others": others, "high": others > MOST_BY_OTHERS}


def _adopt_orphans() -> None:
    """Count as ours what a server or a browser of ours leaves behind when it ends: on Linux it becomes our child."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _machine_seconds() -> float | None:
    """Core seconds that every program of this machine has used, what its host took away included; None unless Linux."""
    try:
        user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _our_seconds() -> float:
    """Core seconds of this process and of everything that it has started, ended or not."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may have ended by now; then its parent has its time
            fields = entry.read_text().rpartition(")")[2].split()
            pid = int(entry.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(time for pid, time in used.items() if _descends(pid, parents)) / os.sysconf("SC_CLK_TCK")


def _descends(pid: int, parents: Mapping[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False
