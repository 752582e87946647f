"""One spec in a worker process: its events, its memory, its end."""

import contextlib
import signal
from multiprocessing import Pipe

import psutil
from pebble import ProcessExpired

from linearity_lab.jobs import worker
from linearity_lab.jobs._process import LivePool
from ntk_core.runs.events import Event, parse_event


class Computation:
    """One spec in a worker.

    Attributes:
        reader: what the worker writes to; readable when there is something to :meth:`receive`.
        pid: process id of the worker, None until one has begun.
        max_bytes: memory that it may take.
    """

    def __init__(self, pool: LivePool, spec_json: str, max_bytes: float):
        self.reader, self._writer = Pipe(duplex=False)
        self.max_bytes, self._bytes_at_start = max_bytes, 0
        self.pid: int | None = None
        self._future = pool.schedule(worker.compute, (spec_json, self._writer, max_bytes))

    def receive(self) -> Event | None:
        """The next event; None for the message by which a worker begins, and when it has ended."""
        try:
            message = self.reader.recv_bytes()
        except (EOFError, OSError):
            self.reader.close()
            return None
        if self.pid is not None:
            return parse_event(message)
        self.pid, self._bytes_at_start = map(int, message.split())
        self._writer.close()  # the worker's end alone keeps the pipe open
        return None

    def is_over(self) -> bool:
        """Whether its worker is done with it and all events are received, or no worker could begin it."""
        if self.pid is None and self._future.done() and not self.reader.poll():
            self.reader.close()
        return self.reader.closed and self._future.done()

    def grown_bytes(self) -> int:
        """Resident memory of the worker above what it had when the computation began."""
        with contextlib.suppress(psutil.Error):
            if self.pid is not None:
                return int(psutil.Process(self.pid).memory_info().rss) - self._bytes_at_start
        return 0

    def kill(self) -> None:
        """End the computation and its worker; pebble starts another one."""
        self._future.cancel()

    def death(self) -> str:
        """Why the worker has ended, in one clause."""
        error = None if self._future.cancelled() else self._future.exception()
        if self.pid is None or not isinstance(error, ProcessExpired):
            return "the worker process has ended"
        if error.exitcode == -signal.SIGKILL:
            return "the worker process was killed by the system (SIGKILL), most often because memory ran out"
        name = signal.Signals(-error.exitcode).name if error.exitcode < 0 else f"exit status {error.exitcode}"
        return f"the worker process crashed ({name})"
