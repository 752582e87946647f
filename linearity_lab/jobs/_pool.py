"""Warm worker processes: pebble starts, feeds and replaces them; one more than can compute takes over after a kill."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, TimeoutError
from concurrent.futures.process import BrokenProcessPool

import psutil
from pebble import CONSTS, ProcessExpired, ProcessFuture, ProcessPool

from linearity_lab.jobs import worker
from linearity_lab.jobs._process import Context
from ntk_core.runs.events import Event, parse_event

# Compiled programs and freed arrays stay in a process.
MAX_JOBS = 50
POLL_S = 0.05
DEATH_S = 5.0  # pebble notices an ended process within a tenth of a second
CONSTS.term_timeout = 0.2  # before pebble kills a worker that has not ended when asked, because it is stopped
POOL_BROKE = "the worker processes have ended"
_LOG = logging.getLogger(__name__)


class Computation:
    """One spec in a worker.

    Attributes:
        pid: process id of the worker, None until one has begun.
        max_bytes: memory that it may take.
    """

    def __init__(self, pool: ProcessPool | None, spec_json: str, max_bytes: float):
        self._reader, self._writer = Context().Pipe(duplex=False)
        self.max_bytes, self._bytes_at_start = max_bytes, 0
        self.pid: int | None = None
        self._future: ProcessFuture[None] = ProcessFuture()
        try:
            if pool is not None:
                self._future = pool.schedule(worker.compute, (spec_json, self._writer, max_bytes))
        except (RuntimeError, OSError) as error:
            self._future.set_exception(error)

    def events(self) -> Iterator[Event]:
        """Yield the events of the run, until its last one or the death of the worker."""
        with self._reader as reader, contextlib.suppress(EOFError, OSError):
            try:
                while not reader.poll(POLL_S):
                    if self._future.done():  # no worker could take it
                        return
                self.pid, self._bytes_at_start = map(int, reader.recv_bytes().split())
            finally:
                self._writer.close()  # the worker's end alone keeps the pipe open
            while True:
                yield parse_event(reader.recv_bytes())

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
        """Why the worker has ended, in one clause; ``POOL_BROKE`` where its spec is to blame for nothing."""
        try:
            error = self._future.exception(DEATH_S)
        except (CancelledError, TimeoutError):
            error = None
        if self.pid is None or isinstance(error, BrokenProcessPool):
            return POOL_BROKE
        if not isinstance(error, ProcessExpired):
            return "the worker process has ended"
        if error.exitcode == -signal.SIGKILL:
            return "the worker process was killed by the system (SIGKILL), most often because memory ran out"
        name = signal.Signals(-error.exitcode).name if error.exitcode < 0 else f"exit status {error.exitcode}"
        return f"the worker process crashed ({name})"


class WorkerPool:
    """Worker processes that are warm before they are needed.

    Args:
        store: location of the store that workers save to.
        num_workers: processes, the spare ones included.
        is_quiet: workers print nothing.
    """

    def __init__(self, store: str, num_workers: int, *, is_quiet: bool):
        self._num_workers, self._settings = num_workers, (store, is_quiet)
        self._context, self._lock = Context(), threading.Lock()
        self._pool: ProcessPool | None = None
        self._closed = False

    def warm_up(self) -> None:
        """Start the processes; a pool that broke, as pebble's does when an idle process dies, is replaced."""
        with self._lock:
            if self._closed or (self._pool is not None and self._pool.active):
                return
            if self._pool is not None:
                _LOG.warning("The worker processes have ended and are started again.")
                self._pool.stop()
                self._pool.join()
            self._pool = ProcessPool(self._num_workers, MAX_JOBS, worker.start, self._settings, context=self._context)
            with contextlib.suppress(BrokenProcessPool, RuntimeError, OSError):
                _ = self._pool.active  # starts it

    def compute(self, spec_json: str, max_bytes: float) -> Computation:
        """Hand a spec to the next warm worker; ``POOL_BROKE`` ends it where :meth:`warm_up` is needed first."""
        return Computation(self._pool, spec_json, max_bytes)

    def pids(self) -> list[int]:
        """Process ids of the workers that live, spare ones included."""
        return sorted(each.pid for each in self._context.living() if each.pid is not None)

    def close(self) -> None:
        """End all workers and start no more."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.stop()
                self._pool.join()
