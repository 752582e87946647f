"""The dashboard as a separate process, also behind nginx."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO

import psutil

from benchmarks.measure import ROOT
from hosting.start_nginx import write_configuration

FLAGS = (
    "--server.headless=true",
    "--server.fileWatcherType=none",
    "--browser.gatherUsageStats=false",
)


@dataclass(frozen=True)
class ServedApp:
    """A running server."""

    process: psutil.Process
    address: str  # host:port

    def workers(self) -> list[psutil.Process]:
        """Return worker processes, without the resource tracker of ``multiprocessing``."""
        return [each for each in self.process.children() if "spawn_main" in _command(each)]

    @contextmanager
    def watched(
        self, server_mib: list[float], worker_mib: list[float], every_s: float
    ) -> Iterator[None]:
        """Note memory of server and largest worker while the block runs."""

        def note() -> None:
            server_mib.append(self.resident_mib())
            worker_mib.append(max(map(_resident, self.workers()), default=0) / 2**20)

        with repeated(note, every_s):
            yield

    def kill(self) -> None:
        """Kill the server, as by lack of memory."""
        self.process.kill()
        self.process.wait(10)

    def kill_a_worker(self) -> bool:
        """Kill the largest worker, as if without memory; return whether one existed."""
        try:
            max(self.workers(), key=_resident).kill()
        except (ValueError, psutil.Error):
            return False
        return True

    def resident_mib(self) -> float:
        """Return memory of the server, without its workers."""
        return _resident(self.process) / 2**20

    def server_s(self) -> float:
        """Return processor time of the server, without its workers."""
        return float(sum(self.process.cpu_times()[:2]))

    def processor_s(self) -> float:
        """Return processor time of the server and its present workers."""
        return sum(sum(process.cpu_times()[:2]) for process in (self.process, *self.workers()))


@contextmanager
def repeated(work: Callable[[], object], every_s: float) -> Iterator[None]:
    """Repeat some work in a thread while the block runs."""
    end = threading.Event()

    def repeat() -> None:
        while not end.wait(every_s):
            work()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def answer_of(url: str, **headers: str) -> tuple[int, Message, bytes]:
    """Return status, headers and body of an answer, also of an error."""
    request = urllib.request.Request(
        url, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served_app(
    *, port: int = 0, log: int | IO[str] = subprocess.DEVNULL, **environment: str
) -> Iterator[ServedApp]:
    """Serve the dashboard with these environment variables until the block ends."""
    address = f"127.0.0.1:{port or free_port()}"
    host, _, at = address.partition(":")
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        f"--server.address={host}",
        f"--server.port={at}",
    ]
    errors = None if log == subprocess.DEVNULL else subprocess.STDOUT
    environment = {**os.environ, **environment}
    with subprocess.Popen(
        [*command, *FLAGS], cwd=ROOT, env=environment, stdout=log, stderr=errors
    ) as server:
        try:
            _wait_until_healthy(address, server)
            yield ServedApp(psutil.Process(server.pid), address)
        finally:
            if server.poll() is None:
                server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


@contextmanager
def proxied(app: str, sessions_per_client: int = 20, tls_proxy: str = "127.0.0.1") -> Iterator[str]:
    """Start nginx in front of ``app`` as in compose.yaml; yield its ``host:port``.

    By default the caller is the proxy for TLS, so it states the addresses of its clients.
    """
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="nginx-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # started by root, its worker is another user
        settings = {"LAB_APP": app, "LAB_LISTEN": address, "LAB_SCRATCH": folder}
        settings["LAB_SESSIONS_PER_CLIENT"] = str(sessions_per_client)
        settings["LAB_TLS_PROXY"] = tls_proxy
        with subprocess.Popen(write_configuration(settings)) as process:
            try:
                _wait_until_healthy(address, process)
                yield address
            finally:
                process.terminate()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _wait_until_healthy(
    address: str, process: subprocess.Popen[bytes], patience_s: float = 120.0
) -> None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{address}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(f"the server did not start within {patience_s:.0f} s")
