"""Warm worker processes: as many as compute at once, and a spare one that takes over without a pause."""

import logging
import threading

from linearity_lab.jobs._process import WorkerProcess

# Compiled programs and freed arrays stay with a process; a fresh one waits already, so letting it go costs nobody time.
MAX_GROWN_BYTES = 400 * 2**20
MAX_JOBS = 50
_LOG = logging.getLogger(__name__)


class WorkerPool:
    """Worker processes that are ready before they are needed; may be used from any thread.

    Args:
        store: location of the store that the workers save to.
        num_workers: how many compute at once.
        num_spare: how many more are kept ready.
    """

    def __init__(self, store: str, num_workers: int, num_spare: int = 1):
        self._store, self._num_workers, self._num_spare = store, num_workers, num_spare
        self._lock = threading.Lock()  # guards everything below
        self._alive: list[WorkerProcess] = []
        self._idle: list[WorkerProcess] = []  # last used last
        self._closing = False

    def warm_up(self) -> None:
        """Start what is missing; if nothing can be started, the next :meth:`take` will say so."""
        with self._lock:
            self._refill()

    def take(self) -> WorkerProcess:
        """A worker for one job: the one that has worked last, since it knows most programs, if it is ready.

        Raises:
            OSError: when there is none and none can be started.
        """
        with self._lock:
            idle = [worker for worker in self._idle if worker.alive]
            chosen = next((worker for worker in reversed(idle) if worker.ready), idle[-1] if idle else None)
            if chosen is None:
                chosen = self._start()
            self._idle.remove(chosen)
            return chosen

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker that has done its job for the next one, or let it go before its memory grows."""
        worn_out = worker.num_jobs >= MAX_JOBS or worker.grown_bytes > MAX_GROWN_BYTES
        with self._lock:
            if worker in self._alive and not worn_out and not self._closing:
                self._idle.append(worker)
                return
        worker.kill()  # its results are in the store; what follows its end is done in _changed

    def pids(self) -> list[int]:
        """Process ids of the workers that live."""
        with self._lock:
            return [worker.pid for worker in self._alive if worker.alive]

    def close(self) -> None:
        """End all workers and start no more."""
        with self._lock:
            self._closing = True
            workers = list(self._alive)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.death()

    def _changed(self, worker: WorkerProcess) -> None:
        """A worker has become ready or has ended."""
        with self._lock:
            if not worker.alive:
                self._alive.remove(worker)
                if worker in self._idle:
                    self._idle.remove(worker)
                    if not self._closing:
                        _LOG.warning("A worker without a job has ended: %s.", worker.death())
            if worker.ready:  # one that cannot even start would be started for ever
                self._refill()

    def _refill(self) -> None:
        """Start missing workers, spare ones after the others, so that the first is ready soonest."""
        try:
            while not self._closing and len(self._alive) < self._num_workers:
                self._start()
            missing = len(self._alive) < self._num_workers + self._num_spare
            if missing and not self._closing and all(worker.ready for worker in self._alive):
                self._start()
        except OSError as error:
            _LOG.warning("No worker process could be started: %s", error)

    def _start(self) -> WorkerProcess:
        worker = WorkerProcess(self._store, self._changed)
        self._alive.append(worker)
        self._idle.append(worker)
        if self._closing:
            worker.kill()
        return worker
