"""Runs on a cluster of docs/cluster.md.

Equal to runs in one process to the bit, also when workers fail.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import jax
import psutil
import pytest

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import run
from linearity_lab.runs.events import (
    Ended,
    Estimated,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
)
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import InvalidInput
from ntk_core.fits import fit_power_law
from tests.compiler_flags import QUICK_FLAGS
from tests.running import Kept, example

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.timeout(600),
]

ROOT = Path(__file__).resolve().parents[2]
SHORT = {"dataset.num_samples": 12, "training.max_steps": 30, "training.num_records": 5}
TINY_SETTINGS = {"widths": [4, 8, 12], "outputs": ["linear"], "num_seeds": 1, **SHORT}
TINY = with_settings(KernelChangeSpec(), TINY_SETTINGS)
LONG = {"training.max_steps": 40_000, "training.num_records": 80, "training.loss_threshold": 1e-9}
# Two points of seconds each, with many reports.
SLOW = with_settings(TINY, {"widths": [4, 8], **LONG, "training.learning_rate": 1e-6})


@dataclass
class LocalCluster:
    """A scheduler and its workers, each a process below a nanny."""

    port: int
    environment: dict[str, str]
    # Shells; the scheduler is first.
    processes: list[subprocess.Popen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start("dask scheduler")
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < deadline, "the scheduler does not listen"
            time.sleep(0.05)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, beginning: str, end: str = "") -> None:
        """Start the commands of docs/cluster.md with this beginning, in a process group."""
        blocks = re.findall(
            r"```sh\n(.*?)```",
            (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8"),
            re.DOTALL,
        )
        (commands,) = [block for block in blocks if block.startswith(beginning)]
        self.processes.append(
            subprocess.Popen(
                ["bash", "-c", (commands + end).replace("8786", str(self.port))],
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def kill_a_worker(self) -> None:
        """Kill a computing process below its nanny."""
        below = [
            child
            for shell in self.processes[1:]
            for child in psutil.Process(shell.pid).children(recursive=True)
        ]
        next(child for child in below if "spawn_main" in " ".join(child.cmdline())).kill()

    def signal_scheduler(self, number: int) -> None:
        os.killpg(self.processes[0].pid, number)


@pytest.fixture(scope="module", autouse=True)
def clients() -> ModuleType:
    """Our module of cluster runs, if dask is installed (requirements-cluster.txt)."""
    # Programs compiled with all optimizations differ in the last bit from those of workers.
    jax.clear_caches()
    module: ModuleType = pytest.importorskip(
        "linearity_lab.runs._cluster", reason="dask.distributed is not installed"
    )
    return module


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory) -> Iterator[LocalCluster]:
    """The scheduler, before workers start.

    All compile as ``quick_compilation``, with a shared cache.
    """
    environment = {
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "XLA_FLAGS": " ".join(QUICK_FLAGS),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "LINEARITY_LAB_MEMORY_GIB": "2",
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = LocalCluster(port, environment)
    yield cluster
    for process in reversed(cluster.processes):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def cluster(scheduler) -> LocalCluster:
    scheduler.start("for gpu in", "wait")
    return scheduler


def numbers(result):
    """All data of a result's points except dates and durations."""
    return [
        point.model_copy(update={"runtime_s": 0.0, "provenance": None}).model_dump_json()
        for point in result.points
    ]


@pytest.fixture(scope="module")
def here():
    """The events of the same run in this process."""
    return list(run(TINY, scheduler=""))


def test_scheduler_without_workers_is_named_with_a_remedy(scheduler, monkeypatch):
    """The first test, before workers start."""
    monkeypatch.setenv("LINEARITY_LAB_WORKER_WAIT_S", "0.5")
    *_, ended = run(TINY, scheduler=scheduler.address)
    assert ended.status == "failed"
    assert f"dask worker {scheduler.address} --nthreads 1" in ended.reason


@pytest.mark.long
def test_run_on_a_cluster_equals_the_run_here_to_the_bit(cluster, here):
    there = list(run(TINY, scheduler=cluster.address))
    assert numbers(there[-1].result) == numbers(here[-1].result)
    one, other = (
        ended.result.provenance.model_copy(update={"started_at": ""})
        for ended in (there[-1], here[-1])
    )
    assert one == other
    # Parallel points report in order.
    assert isinstance(there[0], Estimated)
    assert [type(event) for event in there].count(Ended) == 1
    assert [point.key for point in there[-1].result.points] == list(TINY.point_keys())
    first_finished = next(
        index for index, event in enumerate(there) if isinstance(event, PointFinished)
    )
    # One per worker.
    assert sum(isinstance(event, PointStarted) for event in there[:first_finished]) == 2
    for key in TINY.point_keys():
        first, *middle, last = [
            type(event) for event in there if getattr(event, "key", None) == key
        ]
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
            cluster.kill_a_worker()
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
    assert time.monotonic() - asked[0] < 60  # all its steps take hours
    assert events[-1].status == "cancelled"
    # Both workers are free again.
    assert list(run(TINY, scheduler=cluster.address))[-1].status == "completed"


def test_point_too_large_for_a_worker_fails_alone(cluster, here):
    wide = with_settings(TINY, {"widths": [4, 10_000_000]})
    events = list(run(wide, scheduler=cluster.address))
    (failed,) = [event for event in events if isinstance(event, PointFailed)]
    assert failed.key == "width=10000000"
    assert "2.0 GiB are available on its worker" in failed.reason
    assert events[-1].status == "failed"
    assert numbers(events[-1].result) == numbers(here[-1].result)[:1]


def test_workers_of_other_versions_are_named(cluster, clients, monkeypatch):
    real = clients.conditions()
    monkeypatch.setattr(clients, "conditions", lambda: {**real, "jax": "0.9.9"})
    ended = list(run(TINY, scheduler=cluster.address))[-1]
    assert ended.status == "failed"
    assert f"jax 0.9.9 (client) and {real['jax']} (worker)" in ended.reason
    assert "\n" not in ended.reason


@pytest.mark.parametrize(
    "address", ["localhost", "tcp://host:99999", "tcp://ho st:1", "tcp://a:1/x"]
)
def test_what_is_no_address_is_refused_before_anything_begins(address, monkeypatch):
    with pytest.raises(
        InvalidInput, match=r"scheduler: .* cannot be used; use the address of a dask scheduler"
    ):
        run(TINY, scheduler=address)
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", address)
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_SCHEDULER"):
        run(TINY)


def test_unreachable_scheduler_ends_the_run_with_a_sentence(clients, monkeypatch):
    monkeypatch.setattr(clients, "CONNECT_S", 1.0)
    monkeypatch.setenv("LINEARITY_LAB_SCHEDULER", "tcp://127.0.0.1:9")
    *_, ended = run(TINY)
    assert ended.status == "failed"
    assert ended.reason == "No dask scheduler answers at tcp://127.0.0.1:9 within 1 s."


def test_slurm_job_script_starts_a_worker_with_one_gpu():
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    with example("slurm_workers").make_cluster("gpu", "64GB", "04:00:00") as workers:
        lines = workers.job_script().splitlines()
    assert {"#SBATCH -p gpu", "#SBATCH -t 04:00:00", "#SBATCH --gres=gpu:1"} <= set(lines)
    assert "export XLA_PYTHON_CLIENT_PREALLOCATE=false" in lines
    assert re.search(r"dask_worker tcp://\S+:\d+ .*--nthreads 1 --memory-limit 0$", lines[-1])


def test_a_scheduler_that_hangs_is_not_waited_for_for_ever(cluster, clients, monkeypatch):
    monkeypatch.setattr(clients, "ANSWER_S", 1.0)
    real = clients.Cluster._num_threads

    def hang_before_answering(self, client):
        cluster.signal_scheduler(signal.SIGSTOP)
        return real(self, client)

    monkeypatch.setattr(clients.Cluster, "_num_threads", hang_before_answering)
    *_, ended = run(TINY, scheduler=cluster.address)
    assert ended.status == "failed"
    assert "was lost" in ended.reason


def test_dead_scheduler_fails_the_run_and_keeps_its_points(cluster, here):
    """The last test, since it breaks the cluster."""
    cluster.signal_scheduler(signal.SIGCONT)  # if another test stopped it
    points = Kept({point.key: point for point in here[-1].result.points[:1]})
    events = []
    for event in run(SLOW, scheduler=cluster.address, points=points):
        events.append(event)
        if isinstance(event, PointProgress) and "step" in event.message:
            cluster.signal_scheduler(signal.SIGKILL)
    assert events[-1].status == "failed"
    assert "was lost; finished points are kept, and the same run resumes" in events[-1].reason
    assert [point.key for point in events[-1].result.points] == ["width=4"]
