"""The queue of jobs and the threads that lead them through worker processes."""

from __future__ import annotations

import atexit
import collections
import functools
import logging
import os
import threading
import time

from dashboard.jobs._job import Job
from dashboard.jobs._process import WorkerProcess
from dashboard.jobs._snapshot import Snapshot
from ntk_core.errors import InvalidInput
from ntk_core.events import Ended
from ntk_core.specs import Spec, digest
from ntk_core.store import MIN_PREFIX, Store

WORKERS_VARIABLE = "LINEARITY_LAB_WORKERS"
MAX_WORKERS = 64
MAX_WAITING = 32
MAX_REMEMBERED = 64
GRACE_S = 2.0
VIEWER_TIMEOUT_S = 5.0
INTERRUPTED = "stopped before it was finished; run it again to go on from its finished points"
_LOG = logging.getLogger(__name__)


class QueueFull(InvalidInput):
    """Too many jobs wait already."""

    def __init__(self, waiting: int):
        super().__init__(
            "run", f"one more than {waiting} waiting jobs", "when one of them has begun; try again in a moment"
        )


class Jobs:
    """Jobs of all browser sessions of this server; every method may be called from any thread and returns at once.

    Args:
        store: where finished points and results are kept; by default as ``LINEARITY_LAB_STORE`` says.
        num_workers: worker processes; by default as ``LINEARITY_LAB_WORKERS`` says, else half the cores, 1 or 2.
        grace_s: how long a stopped job may take to stop by itself before its worker is killed, in seconds.
        max_waiting: most jobs in the queue.

    Raises:
        InvalidInput: when the store or the number of workers cannot be used.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        num_workers: int | None = None,
        grace_s: float = GRACE_S,
        max_waiting: int = MAX_WAITING,
    ):
        self._num_workers = num_workers or _num_workers()
        self._store = store or Store()
        self._grace_s, self._max_waiting = grace_s, max_waiting
        self._changed = threading.Condition()  # guards everything below
        self._jobs: collections.OrderedDict[str, Job] = collections.OrderedDict()
        self._waiting: collections.deque[Job] = collections.deque()
        self._workers: dict[int, WorkerProcess] = {}
        self._threads: list[threading.Thread] = []
        self._closing = False

    def submit(self, spec: Spec, viewer: str = "") -> str:
        """Start ``spec`` or attach to the job that computes or has computed it; its job id.

        A cancelled or failed job is resumed: points that are finished are not computed again.

        Raises:
            QueueFull: when too many jobs wait.
            InvalidInput: when the store cannot be used.
        """
        job_id = digest(spec)[:MIN_PREFIX]
        with self._changed:
            known = job_id in self._jobs
        recalled = None if known else self._recalled(spec)  # not under the lock: another process may be writing
        with self._changed:
            job = self._jobs.get(job_id) or self._remember(recalled or Job(spec, job_id))
            job.see(viewer, time.monotonic())
            if job.status == "running" and job.stopping:
                job.run_again()
            elif not job.active and job.status != "completed":
                if len(self._waiting) >= self._max_waiting:
                    raise QueueFull(self._max_waiting)
                self._enqueue(job)
        self.warm_up()
        return job_id

    def snapshot(self, job_id: str, viewer: str = "") -> Snapshot | None:
        """The job at this moment, also one of an earlier run of the server; None for an unknown id.

        Args:
            viewer: who looks; while somebody else has looked in the last seconds, :meth:`stop` only detaches.
        """
        with self._changed:
            job = self._jobs.get(job_id)
        if job is None:
            recalled = self._recalled_by_id(job_id)
            if recalled is None:
                return None
            with self._changed:
                job = self._jobs.get(job_id) or self._remember(recalled)
        with self._changed:
            job.see(viewer, time.monotonic())
            return job.snapshot(self._waiting.index(job) + 1 if job.status == "queued" else 0)

    def stop(self, job_id: str, viewer: str = "") -> bool:
        """Stop a job; False when others look at it, so that only this viewer is detached. Ended jobs are left alone."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None or not job.active:
                return True
            if job.leave(viewer, time.monotonic() - VIEWER_TIMEOUT_S):
                return False
            if job.status == "queued":
                self._waiting.remove(job)
                job.end("cancelled")
                self._count_positions()
            elif not job.stopping:
                job.stop()
                worker = job.worker
                if worker is not None:
                    self._ask_to_stop(job, worker)
            return True

    def warm_up(self) -> None:
        """Start the workers, so that they are ready before the first job; does nothing when they run."""
        with self._changed:
            while not self._closing and len(self._threads) < self._num_workers:
                index = len(self._threads)
                thread = threading.Thread(target=self._serve, args=(index,), daemon=True, name=f"jobs-{index}")
                self._threads.append(thread)
                thread.start()

    def shutdown(self) -> None:
        """End all workers; running jobs keep their finished points and resume with the next submit."""
        with self._changed:
            self._closing = True
            workers, threads = list(self._workers.values()), list(self._threads)
            self._waiting.clear()
            self._changed.notify_all()
        for worker in workers:
            worker.end(grace_s=1.0)
        for thread in threads:
            thread.join(timeout=5.0)
        self._store.close()

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live."""
        with self._changed:
            return [worker.pid for worker in self._workers.values() if worker.alive]

    def _serve(self, index: int) -> None:
        """The life of one worker's thread: wait for a job, lead it through, again."""
        try:
            self._warm(index)
            while job := self._next():
                self._lead(job, index)
        finally:
            worker = self._workers.get(index)
            if worker is not None:
                worker.kill()
                worker.death()

    def _next(self) -> Job | None:
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            if self._closing:
                return None
            job = self._waiting.popleft()
            job.begin()
            self._count_positions()
            return job

    def _lead(self, job: Job, index: int) -> None:
        """Compute ``job`` in this thread's worker, until it ends or the worker does."""
        worker = self._handed_over(job, index)
        if worker is not None:
            ended = False
            for event in worker.events():
                with self._changed:
                    job.take(event)
                if isinstance(event, Ended):
                    ended = True
                    break
            if not ended:
                reason = worker.death()
                with self._changed:
                    stopped = job.stopping or self._closing
                    job.end("cancelled" if stopped else "failed", "" if stopped else reason)
                self._warm(index)
        with self._changed:
            job.worker = None
            if job.wants_again and not self._closing:
                self._enqueue(job)
            self._forget()

    def _handed_over(self, job: Job, index: int) -> WorkerProcess | None:
        """The worker that has got the job; None when the job ended before."""
        reason = "the worker process ended before it could begin; try again"
        for _ in range(2):
            worker = self._workers.get(index)
            if worker is None or not worker.alive:  # it died while it had nothing to do: not this job's fault
                if worker is not None:
                    worker.death()
                try:
                    worker = self._start_worker(index)
                except OSError as error:
                    reason = f"no worker process could be started ({error.strerror})"
                    break
            with self._changed:
                if job.stopping or self._closing:
                    job.end("cancelled")
                    return None
                if worker.send({"run": job.spec.model_dump(mode="json")}):
                    job.worker = worker
                    return worker
        with self._changed:
            job.end("failed", reason)
        return None

    def _warm(self, index: int) -> None:
        """Start this thread's worker ahead of its next job; if it cannot be started, that job will say so."""
        try:
            self._start_worker(index)
        except OSError as error:
            _LOG.warning("No worker process could be started: %s", error)

    def _start_worker(self, index: int) -> WorkerProcess:
        with self._changed:
            worker = WorkerProcess(self._store.location)
            self._workers[index] = worker
            if self._closing:
                worker.kill()
            return worker

    def _ask_to_stop(self, job: Job, worker: WorkerProcess) -> None:
        worker.send({"stop": True})
        attempt = job.attempt

        def kill_if_deaf() -> None:
            with self._changed:
                if job.worker is worker and job.attempt == attempt and job.status == "running":
                    worker.kill()

        timer = threading.Timer(self._grace_s, kill_if_deaf)
        timer.daemon = True
        timer.start()

    def _enqueue(self, job: Job) -> None:
        job.wait()
        self._waiting.append(job)
        self._changed.notify()

    def _count_positions(self) -> None:
        for job in self._waiting:
            job.change()

    def _remember(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        self._forget()
        return job

    def _forget(self) -> None:
        """Drop the oldest ended jobs from memory; the store keeps them."""
        ended = [job_id for job_id, job in self._jobs.items() if not job.active]
        for job_id in ended[: max(0, len(ended) - MAX_REMEMBERED)]:
            del self._jobs[job_id]

    def _recalled(self, spec: Spec) -> Job:
        """A new job with whatever the store knows of it."""
        result = self._store.result(digest(spec))
        job = Job(spec, digest(spec)[:MIN_PREFIX], result)
        if job.status != "completed":
            job.recall(self._store.points(spec).finished().values(), INTERRUPTED)
        return job

    def _recalled_by_id(self, job_id: str) -> Job | None:
        try:
            spec = self._store.spec(job_id) if len(job_id) == MIN_PREFIX else None
            return None if spec is None else self._recalled(spec)
        except InvalidInput as error:
            _LOG.warning("%s", error)
            return None


@functools.cache
def _shared() -> Jobs:
    jobs = Jobs()
    atexit.register(jobs.shutdown)
    return jobs


_SHARED_LOCK = threading.Lock()


def shared_jobs() -> Jobs:
    """The jobs of this process; its workers end with it.

    Raises:
        InvalidInput: when the store or the number of workers cannot be used.
    """
    with _SHARED_LOCK:
        return _shared()


def _num_workers() -> int:
    given = os.environ.get(WORKERS_VARIABLE, "").strip()
    if not given:
        return min(2, max(1, (os.cpu_count() or 1) // 2))
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= MAX_WORKERS):
        raise InvalidInput(WORKERS_VARIABLE, given, f"an integer from 1 to {MAX_WORKERS}")
    return int(given)
