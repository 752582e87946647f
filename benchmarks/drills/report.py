"""Data directory, store and verdict of a drill."""

import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.measure import RESULTS, Row, environment
from benchmarks.words import Data
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import Store

PACKAGES = ("jax", "jaxlib", "numpy", "streamlit", "sqlalchemy")
STORE = "drill.sqlite"


@contextmanager
def own_data() -> Iterator[Path]:
    """An empty data directory for this process and its children."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ |= {"XDG_DATA_HOME": folder, "LINEARITY_LAB_STORE": str(Path(folder) / STORE)}
        try:
            yield Path(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)


def finished_points(file: Path, job_id: str) -> Row | None:
    """Return a job's finished points without times; None without its spec."""
    with closing(Store(file)) as store:
        spec = store.spec(job_id)
        if spec is None:
            return None
        points = {
            key: point.model_dump(mode="json")
            for key, point in store.points_of(spec_digest(spec)).items()
        }
    for point in points.values():
        del point["runtime_s"]
        point["provenance"].pop("started_at", None)
    return points


def is_finished(file: Path, job_id: str) -> bool:
    """Return whether every point of a job is in the store."""
    with closing(Store(file)) as store:
        spec = store.spec(job_id)
        return spec is not None and set(store.points_of(spec_digest(spec))) == set(
            spec.point_keys()
        )


def unfinished(file: Path, jobs: Iterable[str], patience_s: float) -> list[str]:
    """Wait for some jobs; return those that have not finished in time."""
    deadline = time.monotonic() + patience_s
    left = list(jobs)
    while (
        left := [job for job in left if not is_finished(file, job)]
    ) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def is_intact(file: Path) -> bool:
    """Return the verdict of SQLite's own check of its file."""
    with closing(sqlite3.connect(file, timeout=30)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return count, median, 95th percentile and maximum of some seconds."""
    median, late, longest = (
        np.quantile(values, (0.5, 0.95, 1.0), method="inverted_cdf").round(4).tolist()
    )
    return {"count": len(values), "median_s": median, "p95_s": late, "max_s": longest}


def conclude(
    name: str, measured: Data, claims: Mapping[str, bool], *, is_kept: bool = True
) -> None:
    """Print and save the verdict; exit with 1 if a claim fails."""
    found = {"environment": environment(PACKAGES), "claims": dict(claims), **measured}
    print(json.dumps(found, ensure_ascii=False))
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'FAILS'}: {claim}")
    if is_kept:
        (RESULTS / f"drill_{name}.json").write_text(
            json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        )
    sys.exit(0 if all(claims.values()) else 1)
