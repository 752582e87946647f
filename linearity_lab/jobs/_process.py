"""A worker process as the server sees it."""

from __future__ import annotations

import collections
import contextlib
import json
import logging
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from pydantic import ValidationError

from ntk_core.runs.events import Event, parse_event
from ntk_core.runs.store import VARIABLE

# Elsewhere the worker lowers its own priority. Of Windows only, so it must be looked up by name.
_CREATION_FLAGS = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)
_ROOT = Path(__file__).resolve().parents[2]
_CAUSES = re.compile(
    r"RESOURCE_EXHAUSTED|[Oo]ut of memory|No space left on device|disk is full|readonly database|Too many open files"
    r"|Segmentation fault|Bus error|Illegal instruction|CUDA_ERROR_[A-Z_]+|\b[A-Z][A-Za-z]+(?:Error|Exception)\b"
)
_LOG = logging.getLogger(__name__)


class WorkerProcess:
    """A process that computes one spec at a time; it is started at once and warms up by itself.

    Args:
        store: location of the store it saves to.
        on_change: called from a thread of its own when the process is ready, and when it has ended.

    Attributes:
        ready: it has imported JAX and waits for work.
        num_jobs: jobs that it has been given.
    """

    def __init__(self, store: str, on_change: Callable[[WorkerProcess], None] = lambda worker: None):
        # Not multiprocessing: its children would execute the dashboard's start script again.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linearity_lab.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(store),
            # A group of its own: Ctrl-C is for the server. Not a session of its own: Linux shares the cores out between
            # sessions, and would weigh the worker's niceness against nothing but itself.
            process_group=0,
            creationflags=_CREATION_FLAGS,
        )
        self.ready = self._killed_here = False
        self.num_jobs = 0
        self._resident_when_ready = 0
        self._on_change = on_change
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._complaints: collections.deque[str] = collections.deque(maxlen=20)
        self._listener = threading.Thread(target=self._log_complaints, daemon=True)
        self._listener.start()
        threading.Thread(target=self._read_events, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def grown_bytes(self) -> int:
        """Resident memory that the process holds beyond what it held when it was ready."""
        return max(0, self._resident_bytes() - self._resident_when_ready) if self.ready else 0

    def compute(self, spec: dict[str, Any]) -> None:
        """Begin with a spec; if the process has died just now, its events say so."""
        self.num_jobs += 1
        self._send({"run": spec})

    def ask_to_stop(self) -> None:
        """Ask the process to stop between two stretches of work."""
        self._send({"stop": True})

    def events(self) -> Iterator[Event]:
        """What the process tells, until it has ended."""
        while (event := self._events.get()) is not None:
            yield event
        self._events.put(None)  # for whoever asks next

    def kill(self) -> None:
        """End the process at once."""
        self._killed_here = True
        self._process.kill()

    @property
    def killed_at_start(self) -> bool:
        """Whether it was ended from outside before it could be given work: no job is to blame."""
        return not self.ready and (self._process.poll() or 0) < 0

    def death(self) -> str:
        """Why the process ended, in one clause; waits until it has ended."""
        code = self._process.wait()
        self._listener.join(timeout=1.0)
        last = f": {self._complaints[-1][:200]}" if self._complaints else ""
        if not self.ready:
            cause = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}{last}"
            return f"the worker process could not start ({cause})"
        if os.name == "posix" and code == -signal.SIGKILL:
            return "the worker process was killed by the system (SIGKILL), most often because memory ran out"
        cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"the worker process crashed ({cause}{last})"

    def _send(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()

    def _read_events(self) -> None:
        """Pass on what the process tells, and take note of its end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._events.put(parse_event(line))
            except ValidationError:
                if b'"ready"' in line:
                    self._resident_when_ready = self._resident_bytes()
                    self.ready = True
                    self._on_change(self)
                else:
                    _LOG.warning("A worker sent a line that is not an event: %r", line[:200])
        code = self._process.wait()
        self._listener.join(timeout=1.0)
        if code and not self._killed_here:
            ended_by = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            facts = {"worker": self.pid, "ended_by": ended_by, "said": _cause(" ".join(self._complaints))}
            _LOG.error("a worker process has ended by itself or was killed", extra={"facts": facts})
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._events.put(None)
        self._on_change(self)

    def _resident_bytes(self) -> int:
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def _log_complaints(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            if text:
                self._complaints.append(text)
                facts = {"worker": self._process.pid, "said": _cause(text)}
                _LOG.warning("worker %d: %s", self._process.pid, text, extra={"facts": facts})


def _cause(text: str) -> str:
    """What a line says is wrong, in words that nobody but a program can have written; empty for all else."""
    return ", ".join(dict.fromkeys(_CAUSES.findall(text)))[:200]


def _environment(store: str) -> dict[str, str]:
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        VARIABLE: store,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
