"""The dashboard as a process of its own, for drills that look at it from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from benchmarks.drills.report import ROOT

FLAGS = ("--server.headless=true", "--server.fileWatcherType=none", "--browser.gatherUsageStats=false")


@dataclass(frozen=True)
class ServedApp:
    """A running server.

    Attributes:
        address: ``host:port``.
    """

    process: psutil.Process
    address: str

    def workers(self) -> list[psutil.Process]:
        """Its worker processes, without the one in which ``multiprocessing`` tracks resources."""
        return [each for each in self.process.children() if "spawn_main" in " ".join(each.cmdline())]

    def kill(self) -> None:
        """End the server at once, as by lack of memory."""
        self.process.kill()
        self.process.wait(10)

    def kill_a_worker(self) -> bool:
        """Kill the largest of its workers, as a system without memory does; whether there was one."""
        try:
            max(self.workers(), key=_resident).kill()
        except (ValueError, psutil.Error):
            return False
        return True

    def resident_bytes(self) -> tuple[int, int]:
        """Memory of the server and of all its workers."""
        return self.process.memory_info().rss, sum(_resident(worker) for worker in self.workers())

    def largest_worker_bytes(self) -> int:
        """Memory of the largest process that the server has started."""
        return max(map(_resident, self.workers()), default=0)

    def server_s(self) -> float:
        """Processor time that the server has used, without its workers."""
        return float(sum(self.process.cpu_times()[:2]))

    def processor_s(self) -> float:
        """Processor time that the server and its present workers have used."""
        return sum(sum(process.cpu_times()[:2]) for process in (self.process, *self.workers()))


def free_port() -> int:
    """A port of this machine that no one listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served_app(**environment: str) -> Iterator[ServedApp]:
    """``streamlit run app.py`` until the block ends, with these variables set."""
    address = f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.address={host}", f"--server.port={port}"]
    with subprocess.Popen(
        [*command, *FLAGS], cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    ) as server:
        try:
            _wait_until_healthy(address)
            yield ServedApp(psutil.Process(server.pid), address)
        finally:
            if server.poll() is None:
                server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _wait_until_healthy(address: str, patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://{address}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"the server did not start within {patience_s:.0f} s")
