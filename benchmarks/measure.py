"""Fair timing: competitors alternate, and medians come with their spread."""

import contextlib
import ctypes
import json
import math
import os
import pkgutil
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from benchmarks.peers.side import forget_peak, resident_bytes, timed
from ntk_core.fits import fit_power_law

ROOT = Path(__file__).parents[1]
Row = dict[str, Any]  # a JSON object
RESULTS = ROOT / "benchmarks" / "results"
# Above this many cores kept busy by other programs, a number depends on them more than on this
# code.
MOST_BY_OTHERS = 0.3
_PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@dataclass(frozen=True)
class Settings:
    """Options of a run of the benchmarks."""

    quick: bool = False  # tiny sizes, which show that everything works; such numbers are never kept
    # Python of each peer; parts leave out absent peers.
    interpreters: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[str] = ()  # measure these rows of a table alone; empty for all

    def wanted(self, names: Iterable[str]) -> list[str]:
        """Return the names of rows to measure."""
        return [name for name in names if not self.rows or name in self.rows]


class Measured(NamedTuple):
    """Wall time, added peak memory and result of one call."""

    seconds: float
    added_bytes: int | None = None
    found: Any = None


Competitor = Callable[[bool], Measured]


def environment(packages: Sequence[str] = ("jax", "jaxlib", "numpy")) -> Row:
    """Return the conditions of a measurement."""
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
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), ""
    )


def local(work: Callable[[], object]) -> Competitor:
    """Return a competitor in this process, which waits for its JAX arrays."""

    def call(weigh: bool) -> Measured:
        import jax

        found, seconds, added = timed(lambda: jax.block_until_ready(work()), weigh)
        return Measured(seconds, added, found)

    return call


class Comparison(NamedTuple):
    """Results of alternating calls."""

    times: dict[str, Row]  # seconds and memory of each competitor, as committed
    found: Row  # result of each competitor's last call

    def ratio(self, slower: str, faster: str = "ours") -> float:
        """Return how many times faster one competitor is, by medians."""
        return float(self.times[slower]["median_s"] / self.times[faster]["median_s"])

    def row(self) -> Row:
        """Return times, the fastest peer, and our advantage over it."""
        others = [name for name in self.times if name != "ours"]
        best = min(others, key=lambda name: self.times[name]["median_s"], default=None)
        return {
            "times": self.times,
            "best_of_peers": best,
            "times_faster": best and self.ratio(best),
        }


def alternate(
    competitors: Mapping[str, Competitor],
    *,
    repeats: int,
    budget_s: float = math.inf,
    least: int = 3,
) -> Comparison:
    """Call the competitors round-robin, after one call that is listed apart.

    The first call includes tracing and compiling; the second also records how much memory it
    added. A competitor whose later calls have taken ``budget_s`` seconds pauses, but not
    before ``least`` of them.
    """
    first = {name: call(False).seconds for name, call in competitors.items()}
    times: dict[str, list[float]] = {name: [] for name in competitors}
    added: dict[str, int | None] = {}
    found: Row = {}
    for turn in range(repeats):
        for name, call in competitors.items():
            if turn < least or sum(times[name]) < budget_s:
                measured = call(turn == 0)
                times[name].append(measured.seconds)
                added.setdefault(name, measured.added_bytes)
                found[name] = measured.found
    rows = {
        name: {"first_s": first[name], **spread(each), "added_bytes": added[name]}
        for name, each in times.items()
    }
    return Comparison(rows, found)


def spread(values: Sequence[float]) -> Row:
    """Return median, quartiles, extremes and number of times in seconds."""
    names = ("min_s", "q1_s", "median_s", "q3_s", "max_s")
    found = np.quantile(values, np.linspace(0, 1, len(names))).tolist()
    return {**dict(zip(names, found, strict=True)), "repeats": len(values)}


def fitted(sizes: Sequence[float], seconds: Sequence[float]) -> Row | None:
    """Return exponent and 95% interval of a time in a size."""
    law = fit_power_law(sizes, seconds)
    if law is None:
        return None
    interval = law.interval if math.isfinite(law.interval) else None  # it takes four sizes
    return {"exponent": law.exponent, "interval": interval, "num_values": law.num_values}


class Meter:
    """Clocks and memory since the start or the last ``restart``."""

    def __init__(self) -> None:
        self._held = forget_peak()
        self.restart()

    def restart(self) -> None:
        """Restart both clocks; memory counts from the first start."""
        self._wall = time.perf_counter()
        self._processor = time.process_time()

    def read(self) -> Row:
        """Return wall and processor time, and added peak memory, so far."""
        wall = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        return {
            "wall_s": wall,
            "processor_s": processor,
            "added_bytes": max(0, resident_bytes("VmHWM") - self._held),
        }


def isolated(
    work: Callable[..., Row],
    *arguments: object,
    python: str = sys.executable,
    tree: Path | str = ROOT,
    **variables: str,
) -> Row:
    """Call a module's function in a fresh process, through JSON.

    ``tree`` holds its code and the core.
    """
    name = f"{work.__module__}:{work.__qualname__}"
    command = [python, "-m", "benchmarks.measure", name, json.dumps(arguments)]
    printed = subprocess.check_output(command, cwd=tree, env={**os.environ, **variables}, text=True)
    found: Row = json.loads(printed.splitlines()[-1])
    return found


@contextlib.contextmanager
def earlier(revision: str) -> Iterator[Path]:
    """Write the code of an earlier commit, with the benchmarks of this one, to a temporary tree."""
    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "archive", revision, "ntk_core", "linearity_lab"]
        packed = subprocess.run(archive, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "--extract", "--directory", folder], input=packed, check=True)
        shutil.copytree(ROOT / "benchmarks", Path(folder) / "benchmarks")
        yield Path(folder)


class Watch:
    """Load of the machine from its creation to ``note``, ours and others'."""

    def __init__(self) -> None:
        _adopt_orphans()
        self._load = os.getloadavg()[0]
        self._began = time.monotonic()
        self._machine = _machine_seconds()
        self._ours = _our_seconds()

    def note(self) -> Row:
        """Return load averages, cores busy with other programs, and whether too many."""
        elapsed = time.monotonic() - self._began
        others = max(0.0, _machine_seconds() - self._machine - (_our_seconds() - self._ours)) / max(
            elapsed, 1e-9
        )
        load = {"at_start": self._load, "at_end": os.getloadavg()[0], "took_s": elapsed}
        return {**load, "busy_by_others": others, "high": others > MOST_BY_OTHERS}


def _adopt_orphans() -> None:
    """Count orphaned processes of our servers and browsers as ours (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _machine_seconds() -> float:
    """Return core seconds of all programs, including those of the host."""
    spent = psutil.cpu_times()._asdict()
    return float(
        sum(spent.get(kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
    )


def _our_seconds() -> float:
    """Return core seconds of this process and all its descendants."""
    process = psutil.Process()
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        # The process may have ended; its time then belongs to its parent.
        with contextlib.suppress(psutil.Error):
            total += sum(each.cpu_times()[:4])
    return total


if __name__ == "__main__":
    print(json.dumps(pkgutil.resolve_name(sys.argv[1])(*json.loads(sys.argv[2]))))
