"""A job of the dashboard computes on the cluster that the environment names; pages and jobs are as ever."""

from __future__ import annotations

import time

import pytest

from linearity_lab.jobs import Jobs
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import run
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # a worker process warms up
SMALL = with_settings(
    KernelChangeSpec(),
    {
        "widths": [4, 8],
        "outputs": ["linear"],
        "num_seeds": 1,
        "dataset.num_samples": 12,
        "training.max_steps": 30,
        "training.num_records": 5,
    },
)


@pytest.fixture
def jobs(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", cluster.address)
    jobs = Jobs(Store(tmp_path / "results.sqlite"), num_spare=0)
    yield jobs
    jobs.shutdown()


def ended(jobs: Jobs, job_id: str):
    deadline = time.monotonic() + 120
    while True:
        snapshot = jobs.snapshot(job_id)
        assert snapshot is not None
        if snapshot.status not in ("queued", "running"):
            return snapshot
        assert time.monotonic() < deadline, snapshot
        time.sleep(0.05)


def test_a_job_runs_on_the_cluster_and_its_points_are_stored(cluster, jobs, quick_compilation):
    *_, here = run(SMALL, scheduler="")
    before = cluster.num_messages()
    job = ended(jobs, jobs.submit(SMALL))
    assert job.status == "completed", job.reason
    assert cluster.num_messages() > before  # the workers of the cluster have reported it
    plain = [point.model_copy(update={"runtime_s": 0.0, "provenance": None}) for point in job.points]
    assert plain == [point.model_copy(update={"runtime_s": 0.0, "provenance": None}) for point in here.result.points]
