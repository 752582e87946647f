"""Runs on a cluster: equal to runs in one process to the bit, also when workers fail."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from linearity_lab.jobs import Jobs
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.fits import fit_power_law
from ntk_core.runs import run
from ntk_core.runs.events import Ended, Estimated, PointFailed, PointFinished, PointProgress, PointStarted
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings
from tests.running import Kept, example

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation"), pytest.mark.timeout(600)]

SHORT = {"dataset.num_samples": 12, "training.max_steps": 30, "training.num_records": 5}
TINY_SETTINGS = {"widths": [4, 8, 12], "outputs": ["linear"], "num_seeds": 1, **SHORT}
TINY = with_settings(KernelChangeSpec(), TINY_SETTINGS)
LONG = {"training.max_steps": 100_000, "training.num_records": 200, "training.loss_threshold": 1e-9}
# Two points of seconds each, with many reports.
SLOW = with_settings(TINY, {"widths": [4, 8], **LONG, "training.learning_rate": 1e-6})


def numbers(result):
    """All data of a result's points except dates and durations."""
    return [
        point.model_copy(update={"runtime_s": 0.0, "provenance": None}).model_dump_json() for point in result.points
    ]


@pytest.fixture(scope="module")
def here():
    """The events of the same run in this process."""
    return list(run(TINY, scheduler=""))


@pytest.fixture(scope="module")
def there(cluster):
    return list(run(TINY, scheduler=cluster.address))


def test_a_run_on_a_cluster_equals_the_run_here_to_the_bit(here, there):
    assert there[-1].status == "completed"
    assert numbers(there[-1].result) == numbers(here[-1].result)
    one, other = (ended.result.provenance.model_copy(update={"started_at": ""}) for ended in (there[-1], here[-1]))
    assert one == other


def test_parallel_points_report_in_order(there):
    assert isinstance(there[0], Estimated)
    assert [type(event) for event in there].count(Ended) == 1
    assert [point.key for point in there[-1].result.points] == list(TINY.point_keys())
    first_finished = next(index for index, event in enumerate(there) if isinstance(event, PointFinished))
    assert sum(isinstance(event, PointStarted) for event in there[:first_finished]) == 2  # one per worker
    for key in TINY.point_keys():
        first, *middle, last = [type(event) for event in there if getattr(event, "key", None) == key]
        assert (first, set(middle), last) == (PointStarted, {PointProgress}, PointFinished)


def test_the_example_fits_the_points_of_the_cluster(cluster, here, capsys):
    settings = {name: value for name, value in TINY_SETTINGS.items() if name != "outputs"}
    law = example("sweep_on_a_cluster").main(cluster.address, settings)
    points = [(point.width, point.of("linear")[0].sup_change) for point in here[-1].result.points]
    assert law == fit_power_law(*zip(*points, strict=True), seeds=[0] * len(points))
    assert capsys.readouterr().out.count(" finished after ") == 3


def test_a_point_whose_worker_is_killed_is_computed_again(cluster):
    killed = False
    events = []
    for event in run(SLOW, scheduler=cluster.address):
        events.append(event)
        if isinstance(event, PointProgress) and "step" in event.message and not killed:
            killed = True
            cluster.computing()[0].kill()
    assert killed
    assert events[-1].status == "completed", events[-1].reason
    assert numbers(events[-1].result) == numbers(list(run(SLOW, scheduler=""))[-1].result)
    assert sum(isinstance(event, PointStarted) for event in events) == 2


def test_stop_ends_the_run_at_once_and_frees_the_workers(cluster):
    asked: list[float] = []
    events = []
    endless = with_settings(SLOW, {"training.max_steps": 10_000_000})
    for event in run(endless, scheduler=cluster.address, should_stop=lambda: bool(asked)):
        events.append(event)
        if isinstance(event, PointProgress) and "step" in event.message and not asked:
            asked.append(time.monotonic())
    assert time.monotonic() - asked[0] < 3
    assert events[-1].status == "cancelled"
    assert list(run(TINY, scheduler=cluster.address))[-1].status == "completed"  # both workers are free again


def test_point_too_large_for_a_worker_fails_alone(cluster, here):
    wide = with_settings(TINY, {"widths": [4, 10_000_000]})
    events = list(run(wide, scheduler=cluster.address))
    (failed,) = [event for event in events if isinstance(event, PointFailed)]
    assert failed.key == "width=10000000"
    assert "2.0 GiB are available on its worker" in failed.reason
    assert events[-1].status == "failed"
    assert numbers(events[-1].result) == numbers(here[-1].result)[:1]


def test_workers_of_other_versions_are_named(cluster, monkeypatch):
    from ntk_core.runs import _cluster

    real = _cluster.conditions()
    monkeypatch.setattr(_cluster, "conditions", lambda: {**real, "jax": "0.9.9"})
    ended = list(run(TINY, scheduler=cluster.address))[-1]
    assert ended.status == "failed"
    assert f"jax 0.9.9 (client) and {real['jax']} (worker)" in ended.reason
    assert "\n" not in ended.reason


def test_job_runs_on_the_cluster_and_its_points_are_stored(cluster, here, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", cluster.address)
    jobs, before = Jobs(Store(tmp_path / "results.sqlite"), num_spare=0), cluster.num_messages()
    try:
        job_id, deadline = jobs.submit(TINY), time.monotonic() + 300
        while (job := jobs.snapshot(job_id)) is None or job.status in ("queued", "running"):
            assert time.monotonic() < deadline, job
            time.sleep(0.05)
    finally:
        jobs.shutdown()
    assert job.status == "completed", job.reason
    assert cluster.num_messages() > before  # the workers of the cluster have reported it
    assert numbers(job) == numbers(here[-1].result)


@pytest.mark.parametrize(
    "address",
    ["localhost", "tcp://host", "http://host:8786", "tcp://host:99999", "tcp://ho st:1", "tcp://a:1/x"],
)
def test_what_is_no_address_is_refused_before_anything_begins(address, monkeypatch):
    with pytest.raises(InvalidInput, match=r"scheduler: .* cannot be used; use the address of a dask scheduler"):
        run(TINY, scheduler=address)
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", address)
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_SCHEDULER"):
        run(TINY)


def test_unreachable_scheduler_ends_the_run_with_a_sentence(monkeypatch):
    from ntk_core.runs import _cluster

    monkeypatch.setattr(_cluster, "CONNECT_S", 1.0)
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", "tcp://127.0.0.1:9")
    *_, ended = run(TINY)
    assert ended.status == "failed"
    assert ended.reason == "No dask scheduler answers at tcp://127.0.0.1:9 within 1 s."


def test_a_cluster_without_workers_is_not_waited_for_for_ever(lonely_scheduler, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_WORKER_WAIT_S", "0.5")
    *_, ended = run(TINY, scheduler=lonely_scheduler.address)
    assert ended.status == "failed"
    assert f"dask worker {lonely_scheduler.address} --nthreads 1" in ended.reason


def test_a_scheduler_that_hangs_is_not_waited_for_for_ever(lonely_scheduler, monkeypatch):
    from ntk_core.runs import _cluster

    monkeypatch.setattr(_cluster, "ANSWER_S", 1.0)
    real = _cluster.Cluster._num_threads

    def hang_before_answering(self, client):
        os.killpg(lonely_scheduler.scheduler.pid, signal.SIGSTOP)
        return real(self, client)

    monkeypatch.setattr(_cluster.Cluster, "_num_threads", hang_before_answering)
    events = list(run(TINY, scheduler=lonely_scheduler.address))
    assert events[-1].status == "failed"
    assert "was lost" in events[-1].reason


def test_dead_scheduler_fails_the_run_and_keeps_its_points(lonely_scheduler, here):
    points = Kept({point.key: point for point in here[-1].result.points[:1]})
    lonely_scheduler.add_workers()
    events = []
    for event in run(with_settings(SLOW, {"widths": [4, 8]}), scheduler=lonely_scheduler.address, points=points):
        events.append(event)
        if isinstance(event, PointProgress) and "step" in event.message:
            os.killpg(lonely_scheduler.scheduler.pid, signal.SIGKILL)
    assert events[-1].status == "failed"
    assert "was lost; finished points are kept, and the same run resumes" in events[-1].reason
    assert [point.key for point in events[-1].result.points] == ["width=4"]


def test_slurm_job_script_starts_a_worker_with_one_gpu():
    jobqueue = pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    with example("slurm_workers").make_cluster("gpu", "64GB", "04:00:00") as workers:
        assert isinstance(workers, jobqueue.SLURMCluster)
        script = workers.job_script()
    lines = script.splitlines()
    assert {"#SBATCH -p gpu", "#SBATCH -t 04:00:00", "#SBATCH --gres=gpu:1"} <= set(lines)
    assert "export XLA_PYTHON_CLIENT_PREALLOCATE=false" in lines
    assert re.search(r"dask_worker tcp://\S+:\d+ .*--nthreads 1 --memory-limit 0$", lines[-1])
