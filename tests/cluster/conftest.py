"""A real cluster of several processes, started by the commands of docs/cluster.md; one for all tests of this folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0


@dataclass
class LocalCluster:
    """A scheduler and its workers, each a process with a nanny above it."""

    address: str
    scheduler: subprocess.Popen
    environment: dict[str, str]
    workers: list[subprocess.Popen] = field(default_factory=list)

    def add_workers(self, count: int) -> None:
        command = ["worker", self.address, "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        self.workers += [start_dask(*command, environment=self.environment) for _ in range(count)]

    def computing(self) -> list[psutil.Process]:
        """The processes that compute, below the nannies."""
        found = [child for nanny in self.workers for child in psutil.Process(nanny.pid).children()]
        return [child for child in found if "spawn_main" in " ".join(child.cmdline())]

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start_dask(*command: str, environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def start_scheduler(environment: dict[str, str]) -> LocalCluster:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    process = start_dask(*command, environment=environment)
    deadline = time.monotonic() + START_S
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return LocalCluster(f"tcp://127.0.0.1:{port}", process, environment)
        assert process.poll() is None, "the scheduler ended"
        assert time.monotonic() < deadline, "the scheduler does not listen"
        time.sleep(0.05)


@pytest.fixture(scope="session", autouse=True)
def _dask_is_there():
    pytest.importorskip("distributed", reason="dask.distributed is not installed (requirements-cluster.txt)")


@pytest.fixture(scope="session")
def cluster_environment(tmp_path_factory) -> dict[str, str]:
    """Programs are compiled as in these tests (``quick_compilation``), and once for all workers."""
    return {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "LINEARITY_LAB_MEMORY_GIB": "2",
    }


@pytest.fixture(scope="session")
def cluster(cluster_environment) -> Iterator[LocalCluster]:
    cluster = start_scheduler(cluster_environment)
    cluster.add_workers(2)
    yield cluster
    cluster.end()


@pytest.fixture
def lonely_scheduler(cluster_environment) -> Iterator[LocalCluster]:
    """A scheduler without workers, to be harmed."""
    cluster = start_scheduler(cluster_environment)
    yield cluster
    cluster.end()
