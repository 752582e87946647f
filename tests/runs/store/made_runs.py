"""Synthetic runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from linearity_lab.experiments.kernel_change.point import (
    KernelChangePoint,
    KernelChangeResult,
    KernelChangeRun,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Provenance
from linearity_lab.runs.store import Store
from linearity_lab.runs.store._database import RUNS
from linearity_lab.runs.store._entries import spec_checksum

ROOT = Path(__file__).resolve().parents[3]
BOTH = pytest.mark.parametrize(
    "location", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
SPEC = KernelChangeSpec(widths=(10, 20), num_seeds=1, outputs=("linear",))
PROVENANCE = Provenance(
    versions={"jax": "0"}, platform="p", device="cpu", dtype="float32", started_at="2026-01-01"
)


def spec(number: int) -> KernelChangeSpec:
    """Equal specs for equal numbers."""
    return KernelChangeSpec(
        widths=(10, 20), num_seeds=1, outputs=("linear",), dataset={"seed": number}
    )


def point(width: int, change: float = 0.5) -> KernelChangePoint:
    run = KernelChangeRun(
        output="linear",
        seed=0,
        learning_rate=0.1,
        outcome="diverged",
        steps=(0, 3),
        change=(0.0, change),
        loss=(1.0, float("inf")),
    )
    return KernelChangePoint(
        width=width, num_params=7 * width, runs=(run,), runtime_s=0.1, provenance=PROVENANCE
    )


def result(status: str = "completed", spec: KernelChangeSpec = SPEC) -> KernelChangeResult:
    points = (point(10), point(20)) if status == "completed" else (point(10),)
    return KernelChangeResult(
        spec=spec, points=points, provenance=PROVENANCE, status=status, runtime_s=1.0
    )


def rewrite_settings(store: Store, run: str, old: str, new: str) -> None:
    """Replace text in the stored settings of a run, as if another version had written them."""

    def rewrite(connection: sa.Connection) -> None:
        row = connection.execute(sa.select(RUNS).where(RUNS.c.digest == run)).one()
        text = row.spec.replace(old, new)
        assert text != row.spec
        experiment = json.loads(text)["experiment"]
        facts = {"spec": text, "checksum": spec_checksum(run, row.private, text)}
        change = sa.update(RUNS).where(RUNS.c.digest == run)
        connection.execute(change.values(facts | {"experiment": experiment}))

    store.do(rewrite)


def save_points(store: Store, number: int) -> None:
    """Save 15 points of this writer and 15 points that all writers share."""
    points = store.points(SPEC)
    for i in range(15):
        for width in (100 * (number + 1) + i, 10_000 + i):
            points.save(f"width={width}", point(width))


def save_results(store: Store, number: int) -> None:
    """Save ten results of this writer and ten results that all writers share."""
    for i in range(10):
        store.points(spec(1000 + i)).save("width=10", point(10))
        store.save_result(result(spec=spec(1000 + i)))
        store.save_result(result(spec=spec(1000 * (number + 2) + i)))
