"""Real worker processes, shared by tests that leave them intact."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from linearity_lab.dashboard.jobs import Jobs, Snapshot
from linearity_lab.dashboard.jobs.profile import PROFILES
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs.store import Store
from linearity_lab.settings.training import TrainingSpec
from tests.compiler_flags import QUICK_ENVIRONMENT

PATIENCE_S = 150.0  # niced workers are slow on a busy machine


def worker_pid(jobs: Jobs, job_id: str) -> int | None:
    """Process id of the worker that computes this job."""
    computation = jobs._jobs[job_id].computation
    return None if computation is None else computation.pid


@pytest.fixture(scope="module", autouse=True)
def _workers_compile_quickly():
    """Compile fast, since numbers are only compared between processes with equal flags."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUICK_ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def shared_store_file(tmp_path_factory):
    return tmp_path_factory.mktemp("store") / "results.sqlite"


@pytest.fixture(scope="session")
def jobs(shared_store_file) -> Iterator[Jobs]:
    jobs = Jobs(Store(shared_store_file))
    yield jobs
    jobs.shutdown()


@pytest.fixture
def unattended(tmp_path, monkeypatch) -> Iterator[Callable[..., Jobs]]:
    """Make jobs without workers: they wait, or freeze after :meth:`Jobs._begun`."""
    made = []

    def make(profile: str = "local", **limits: Any) -> Jobs:
        made.append(
            Jobs(Store(tmp_path / "unattended.sqlite"), replace(PROFILES[profile], **limits))
        )
        monkeypatch.setattr(made[-1], "warm_up", lambda: None)
        return made[-1]

    yield make
    for each in made:
        each.shutdown()


@pytest.fixture(scope="session")
def tiny() -> Callable[..., KernelChangeSpec]:
    def make(seed: int, **settings: object) -> KernelChangeSpec:
        short = TrainingSpec(max_steps=50, num_records=4)
        one = {
            "widths": (10, 20),
            "outputs": ("linear",),
            "num_seeds": 1,
            "seed": seed,
            "training": short,
        }
        return KernelChangeSpec(**{**one, **settings})

    return make


@pytest.fixture(scope="session")
def long(tiny) -> Callable[[int], KernelChangeSpec]:
    """A spec with a quick first point, then minutes of work."""

    def make(seed: int) -> KernelChangeSpec:
        slow = TrainingSpec(
            max_steps=30_000, num_records=200, loss_threshold=1e-9, learning_rate=1e-6
        )
        return tiny(seed, widths=(3, 3000), training=slow)

    return make


def ended(snapshot: Snapshot) -> bool:
    return not snapshot.active


def has_a_point(snapshot: Snapshot) -> bool:
    return len(snapshot.points) > 0 and snapshot.status == "running"


def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Snapshot]:
    def wait(jobs: Jobs, job_id: str, condition: Callable[[Snapshot], bool]) -> Snapshot:
        found: list[Snapshot] = []

        def holds() -> bool:
            snapshot = jobs.snapshot(job_id)
            assert snapshot is not None
            found[:] = [snapshot]
            return condition(snapshot)

        eventually(holds)
        return found[0]

    return wait
