"""A data directory for each drill, its store, and a verdict that is printed and saved."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.measure import RESULTS, Row, environment
from benchmarks.words import Data
from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store

ROOT = Path(__file__).parents[2]
PACKAGES = ("jax", "jaxlib", "numpy", "streamlit", "sqlalchemy")
STORE = "drill.sqlite"


@contextmanager
def own_data() -> Iterator[Path]:
    """An empty data directory for this process and those it starts; its store is ``STORE`` in it."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ |= {"XDG_DATA_HOME": folder, "LINEARITY_LAB_STORE": str(Path(folder) / STORE)}
        try:
            yield Path(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)


def finished_points(file: Path, job_id: str) -> Row | None:
    """Key → values of a job's finished points, without times; None while its spec is unknown."""
    with closing(Store(file)) as store:
        spec = store.spec(job_id)
        if spec is None:
            return None
        points = {key: point.model_dump(mode="json") for key, point in store.points_of(spec_digest(spec)).items()}
    for point in points.values():
        del point["runtime_s"]
        point["provenance"].pop("started_at", None)
    return points


def is_finished(file: Path, job_id: str) -> bool:
    """Whether every point of a job is in the store."""
    with closing(Store(file)) as store:
        spec = store.spec(job_id)
        return spec is not None and set(store.points_of(spec_digest(spec))) == set(spec.point_keys())


def unfinished(file: Path, jobs: Iterable[str], patience_s: float) -> list[str]:
    """Wait for some jobs; those that have not finished in time."""
    deadline, left = time.monotonic() + patience_s, list(jobs)
    while (left := [job for job in left if not is_finished(file, job)]) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def is_intact(file: Path) -> bool:
    """SQLite's own check of its file."""
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")


def spread(values: Sequence[float]) -> dict[str, float]:
    """Count, median, 95th percentile and maximum of some seconds."""
    ordered = sorted(values)

    def percentile(share: float) -> float:
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 4)

    return {
        "count": len(ordered),
        "median_s": percentile(0.5),
        "p95_s": percentile(0.95),
        "max_s": percentile(1.0),
    }


def conclude(name: str, measured: Data, claims: Mapping[str, bool], *, is_kept: bool = True) -> None:
    """Print the verdict, save it unless this was a short run, and exit with 1 if a claim fails."""
    found = {"environment": environment(PACKAGES), "claims": dict(claims), **measured}
    print(json.dumps(found, ensure_ascii=False))
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'FAILS'}: {claim}")
    if is_kept:
        (RESULTS / f"drill_{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    sys.exit(0 if all(claims.values()) else 1)
