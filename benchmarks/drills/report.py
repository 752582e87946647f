"""What all drills share: a place of their own for data, and a verdict that is printed and saved."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, environment

ROOT = Path(__file__).parents[2]
PACKAGES = ("jax", "jaxlib", "numpy", "streamlit", "sqlalchemy")


@contextmanager
def own_data() -> Iterator[Path]:
    """A data directory that is used by this drill alone and removed afterwards; also that of processes it starts."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["XDG_DATA_HOME"] = folder
        os.environ.pop("LINEARITY_LAB_STORE", None)
        try:
            yield Path(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, p95 and largest of some seconds."""
    return {
        "count": len(values),
        "median_s": round(percentile(values, 0.5), 4),
        "p95_s": round(percentile(values, 0.95), 4),
        "max_s": round(max(values), 4),
    }


def conclude(name: str, measured: Mapping[str, Any], claims: Mapping[str, bool]) -> None:
    """Save and print; the exit code says whether every claim holds."""
    found = {"environment": environment(PACKAGES), "claims": dict(claims), **measured}
    (RESULTS / f"drill_{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(found, ensure_ascii=False))
    for claim, holds in claims.items():
        print(f"{'holds' if holds else 'FAILS'}: {claim}")
    sys.exit(0 if all(claims.values()) else 1)
