"""Fair timing: alternate the competitors in one process, keep every time, report medians, spread and ratios."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


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


def alternate(competitors: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, dict[str, Any]]:
    """Times in seconds of each competitor, called in turn ``repeats`` times after one call that is listed apart.

    The first call includes tracing and compiling.
    """
    times: dict[str, list[float]] = {name: [] for name in competitors}
    first = {name: _timed(work) for name, work in competitors.items()}
    for _ in range(repeats):
        for name, work in competitors.items():
            times[name].append(_timed(work))
    return {
        name: {
            "first_s": first[name],
            "median_s": statistics.median(values),
            "min_s": min(values),
            "max_s": max(values),
            "repeats": repeats,
        }
        for name, values in times.items()
    }


def ratio(rows: Mapping[str, Mapping[str, Any]], peer: str, ours: str) -> float:
    """How many times faster ``ours`` is than ``peer``, by medians."""
    return rows[peer]["median_s"] / rows[ours]["median_s"]


def _timed(work: Callable[[], object]) -> float:
    import jax

    began = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - began


def peak_of(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` alone and return the JSON of its last line, with its peak memory in bytes."""
    output = subprocess.run(
        [sys.executable, "-m", module, *arguments], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(output.strip().splitlines()[-1])


def forget_peak() -> int:
    """Resident memory now, in bytes; the peak is counted from here on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident_bytes("VmRSS")


def resident_bytes(field: str) -> int:
    """Resident memory of this process: ``VmRSS`` now, ``VmHWM`` at its peak (``ru_maxrss`` may be its parent's)."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0])


def save(name: str, data: Mapping[str, Any]) -> None:
    """Write one committed result."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(data, ensure_ascii=False))
