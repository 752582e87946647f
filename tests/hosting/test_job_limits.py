"""The profile's limits of jobs at the boundary, without a worker: every job waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from linearity_lab.jobs import Jobs, QueueFull, TooManyJobs, _jobs, _shared
from linearity_lab.jobs.limits import OverLimit, check_limits
from linearity_lab.jobs.profile import OVERRIDES, PROFILES, profile
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs.store import Store

MANY = 1000


@pytest.fixture
def make(monkeypatch, tmp_path):
    for name in ("LINEARITY_LAB_PROFILE", "LINEARITY_LAB_MEMORY_GIB", "LINEARITY_LAB_WORKERS", *OVERRIDES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    made = []

    def jobs(**limits) -> Jobs:
        made.append(Jobs(Store(tmp_path / "store"), **limits))
        return made[-1]

    yield jobs
    for each in made:
        each.shutdown()


def spec(seed: int, width: int = 3) -> KernelChangeSpec:
    return KernelChangeSpec(widths=(width,), num_seeds=1, seed=seed)


def submit(jobs: Jobs, count: int, **who: str) -> None:
    for seed in range(count):
        jobs.submit(spec(seed), **who)


@pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
def test_the_queue_takes_as_many_jobs_as_the_profile_says_and_not_one_more(make, limits):
    jobs = make(max_waiting=limits.max_waiting)
    submit(jobs, limits.max_waiting)
    assert jobs.load().waiting == jobs.load().max_waiting == limits.max_waiting
    assert not jobs.load().has_room
    with pytest.raises(QueueFull):
        jobs.submit(spec(MANY))


@pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
def test_a_session_has_as_many_jobs_as_the_profile_says_and_not_one_more(make, limits):
    jobs = make(max_waiting=MANY, max_per_viewer=limits.max_per_viewer)
    submit(jobs, limits.max_per_viewer, viewer="a")
    with pytest.raises(TooManyJobs, match="yours"):
        jobs.submit(spec(MANY), viewer="a")
    jobs.submit(spec(MANY), viewer="b")


@pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
def test_an_address_has_as_many_jobs_as_the_profile_says_and_not_one_more(make, limits):
    jobs = make(max_waiting=MANY, max_per_address=limits.max_per_address)
    submit(jobs, limits.max_per_address, address="192.0.2.7")
    with pytest.raises(TooManyJobs, match="network address"):
        jobs.submit(spec(MANY), address="192.0.2.7")
    jobs.submit(spec(MANY), address="192.0.2.8")


def test_a_run_over_the_limits_never_becomes_a_job(make, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    jobs = make(check=check_limits)
    with pytest.raises(OverLimit):
        jobs.submit(spec(0, width=10_001))
    assert jobs.load().waiting == 0
    jobs.submit(spec(0, width=10_000))
    assert jobs.load().waiting == 1


def test_the_jobs_of_the_server_have_the_limits_of_its_profile(make, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "classroom")
    monkeypatch.setattr(_jobs, "Jobs", lambda **given: SimpleNamespace(given=given, shutdown=lambda: None))
    names = ("num_workers", "max_waiting", "max_per_viewer", "max_per_address")
    expected = {name: getattr(profile(), name) for name in names}
    made: Any = _shared._shared.__wrapped__()
    assert made.given == {**expected, "check": check_limits, "allowed_s": profile().allowed_s}
