"""A real cluster of several processes for this folder, started by the commands of docs/cluster.md."""

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

import psutil
import pytest

from tests.compiler_flags import QUICK_FLAGS

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0


def documented(beginning: str) -> str:
    """The block of commands of docs/cluster.md with this beginning."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(beginning)]
    return found


@dataclass
class LocalCluster:
    """A scheduler and its workers, each a process below a nanny."""

    port: int
    environment: dict[str, str]
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def add_workers(self) -> None:
        """Start the two workers of the docs."""
        self.workers.append(start(documented("for gpu in") + "wait", self.port, self.environment))

    def computing(self) -> list[psutil.Process]:
        """Computing processes, below the nannies."""
        below = [child for shell in self.workers for child in psutil.Process(shell.pid).children(recursive=True)]
        return [child for child in below if "spawn_main" in " ".join(child.cmdline())]

    def num_messages(self) -> int:
        """Number of messages from workers about their points."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            return len(client.get_events("linearity-lab"))

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def start(commands: str, port: int, environment: dict[str, str]) -> subprocess.Popen:
    """Start the commands with another port in a shell that leads a process group."""
    return subprocess.Popen(
        ["bash", "-c", commands.replace("8786", str(port))],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def start_scheduler(environment: dict[str, str]) -> LocalCluster:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(documented("dask scheduler"), port, environment)
    deadline = time.monotonic() + START_S
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return LocalCluster(port, environment, process)
        assert process.poll() is None, "the scheduler ended"
        assert time.monotonic() < deadline, "the scheduler does not listen"
        time.sleep(0.05)


@pytest.fixture(scope="session", autouse=True)
def _dask_is_there():
    pytest.importorskip("distributed", reason="dask.distributed is not installed (requirements-cluster.txt)")


@pytest.fixture(scope="module", autouse=True)
def _nothing_compiled_otherwise() -> None:
    """Clear programs compiled with all optimizations, which differ in the last bit from those of workers."""
    import jax

    jax.clear_caches()


@pytest.fixture(scope="session")
def cluster_environment(tmp_path_factory) -> dict[str, str]:
    """Environment of workers: flags of ``quick_compilation`` and a shared cache of compiled code."""
    return {
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "XLA_FLAGS": " ".join(QUICK_FLAGS),
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "LINEARITY_LAB_MEMORY_GIB": "2",
    }


@pytest.fixture(scope="session")
def cluster(cluster_environment) -> Iterator[LocalCluster]:
    cluster = start_scheduler(cluster_environment)
    cluster.add_workers()
    yield cluster
    cluster.end()


@pytest.fixture
def lonely_scheduler(cluster_environment) -> Iterator[LocalCluster]:
    """A scheduler without workers, which a test may break."""
    cluster = start_scheduler(cluster_environment)
    yield cluster
    cluster.end()
