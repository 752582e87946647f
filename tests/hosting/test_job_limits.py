"""The profile's limits of jobs at the boundary, without a worker: every job waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from linearity_lab import jobs
from linearity_lab.jobs import Jobs, _jobs
from linearity_lab.jobs.limits import OverLimit, check_limits
from linearity_lab.jobs.profile import OVERRIDES, profile
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs.store import Store


@pytest.fixture
def make(monkeypatch, tmp_path):
    for name in ("LINEARITY_LAB_PROFILE", "LINEARITY_LAB_MEMORY_GIB", "LINEARITY_LAB_WORKERS", *OVERRIDES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    made = []

    def jobs(**settings) -> Jobs:
        made.append(Jobs(Store(tmp_path / "store"), **settings))
        return made[-1]

    yield jobs
    for each in made:
        each.shutdown()


def spec(seed: int, width: int = 3) -> KernelChangeSpec:
    return KernelChangeSpec(widths=(width,), num_seeds=1, seed=seed)


def test_run_over_the_limits_never_becomes_a_job(make, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    jobs = make(check=check_limits)
    with pytest.raises(OverLimit):
        jobs.submit(spec(0, width=10_001))
    assert jobs.load()["waiting"] == 0
    jobs.submit(spec(0, width=10_000))
    assert jobs.load()["waiting"] == 1


def test_jobs_have_the_limits_of_the_profile(make, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "classroom")
    monkeypatch.setattr(_jobs, "Jobs", lambda **given: SimpleNamespace(given=given, shutdown=lambda: None))
    made: Any = jobs._shared.__wrapped__()
    assert made.given == {"limits": profile(), "check": check_limits}
    assert made.given["limits"].name == "classroom"
