"""A worker process as the server sees it."""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ntk_core.events import Event, parse_event
from ntk_core.places import data_directory, private_directory
from ntk_core.store import VARIABLE

# Elsewhere the worker lowers its own priority. Of Windows only, so it must be looked up by name.
_CREATION_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)
_ROOT = Path(__file__).resolve().parents[2]
_LOG = logging.getLogger(__name__)


class WorkerProcess:
    """A process that computes one spec at a time; it is started at once and warms up by itself.

    Args:
        store: location of the store it saves to.
    """

    def __init__(self, store: str):
        # Not multiprocessing: its children would execute the dashboard's start script again.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dashboard.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(store),
            start_new_session=True,
            creationflags=_CREATION_FLAGS,
        )
        self.ready = False
        self._complaints: collections.deque[str] = collections.deque(maxlen=20)
        self._listener = threading.Thread(target=self._log_complaints, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, command: dict[str, Any]) -> bool:
        """Tell the process something; whether it could be told."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def events(self) -> Iterator[Event]:
        """What the process tells, until it ends."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                yield parse_event(line)
            except ValidationError:
                if b'"ready"' in line:
                    self.ready = True
                else:
                    _LOG.warning("A worker sent a line that is not an event: %r", line[:200])

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def end(self, grace_s: float) -> None:
        """Let the process end by itself, or kill it after ``grace_s`` seconds."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone already
            self._process.stdin.close()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def death(self) -> str:
        """Why the process ended, in one sentence; waits until it has ended and closes the pipes."""
        code = self._process.wait()
        self._listener.join(timeout=1.0)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        last = f": {self._complaints[-1][:200]}" if self._complaints else ""
        if not self.ready:
            return f"the worker process could not start (exit status {code}{last})"
        if os.name == "posix" and code == -signal.SIGKILL:
            return (
                "the worker process was killed by the system (SIGKILL), most often because memory ran out; "
                "run it again to go on, or choose smaller widths or fewer seeds"
            )
        cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"the worker process crashed ({cause}{last}); run it again to go on from the finished points"

    def _log_complaints(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._complaints.append(text)
                _LOG.warning("worker %d: %s", self._process.pid, text)


def _environment(store: str) -> dict[str, str]:
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        VARIABLE: store,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    try:
        # Compiled code is trusted data, so nobody else may write there.
        environment["JAX_COMPILATION_CACHE_DIR"] = str(private_directory(data_directory() / "compiled"))
        environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    except (OSError, RuntimeError) as error:
        _LOG.warning("Compiled code is not kept between starts: %s", error)
    return environment
