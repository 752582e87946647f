"""The jobs of a server: first in, first out, each within its wall clock and memory."""

import collections
import logging
import math
import threading
import time
from collections.abc import Callable

from linearity_lab.jobs._job import Job
from linearity_lab.jobs._pool import Computation, WorkerPool
from linearity_lab.jobs._recall import learn_from, recalled_by_id, recalled_from, unfinished_seconds
from linearity_lab.jobs._record import Record
from linearity_lab.jobs._snapshot import Load, Snapshot
from linearity_lab.jobs.faults import known_causes
from linearity_lab.jobs.worker import over_memory
from ntk_core.errors import InvalidInput
from ntk_core.runs import EndStatus, Result, Spec, canonical_json, digest, memory_limit
from ntk_core.runs.events import Ended
from ntk_core.runs.store import MIN_PREFIX, Store

MAX_REMEMBERED = 64
MAX_PER_SESSION = 2  # one that runs and one that waits
MAX_TRIES = 3  # of a job whose worker ends before it has begun
TICK_S, IDLE_S = 0.1, 1.0  # between two looks at the memory of workers; at the pool, and at what is asked to end
WRITE_S = 10.0  # between two notes of how long jobs have run
_LOG = logging.getLogger(__name__)


class QueueFull(InvalidInput):
    """Too many jobs wait already."""

    template = "{}: {} cannot be taken; try again {}"

    def __init__(self, waiting: int):
        super().__init__("run", f"one more than {waiting} waiting jobs", "in a moment, when one of them has begun")


class TooManyJobs(InvalidInput):
    """A session has a running and a waiting job already."""

    template = QueueFull.template

    def __init__(self) -> None:
        super().__init__("run", "a third unfinished run of yours", "when one has ended or is stopped")


class Jobs:
    """Jobs of all browser sessions of this server; every method may be called from any thread and returns at once.

    Args:
        store: where finished points and results are kept; by default as ``LINEARITY_LAB_STORE`` says.
        num_workers: how many jobs are computed at once.
        num_spare: worker processes that are kept ready to take over.
        max_waiting: most jobs in the queue.
        is_shared: a session has one running and one waiting job at most.
        check: refuses a spec before it becomes a job.
        max_s: how long a job may run, in seconds.
        max_bytes: memory that a job may take, in bytes; where that is infinite, four fifths of what is free.
        is_quiet: workers print nothing.

    Raises:
        InvalidInput: when the store cannot be used.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        num_workers: int = 1,
        num_spare: int = 1,
        max_waiting: int = 32,
        is_shared: bool = False,
        check: Callable[[Spec], None] | None = None,
        max_s: float = math.inf,
        max_bytes: float = math.inf,
        is_quiet: bool = False,
    ):
        self._num_workers, self._max_waiting, self._is_shared = num_workers, max_waiting, is_shared
        self._check, self._max_s, self._max_bytes = check, max_s, max_bytes
        self._store = store or Store()
        self._workers = WorkerPool(self._store.location, num_workers + num_spare, is_quiet=is_quiet)
        self._record = Record(self._store, max_s if math.isfinite(max_s) else None)
        self._is_connected: Callable[[str], bool] = lambda session: True
        self._starting = threading.Lock()
        self._changed = self._record.changed  # guards everything below
        self._jobs: collections.OrderedDict[str, Job] = collections.OrderedDict()
        self._queue: list[Job] = []
        self._threads: list[threading.Thread] = []
        self._closing = False

    def submit(self, spec: Spec, viewer: str = "") -> str:
        """Start ``spec`` or attach to the job that computes or has computed it; its job id.

        A cancelled or failed job is resumed: points that are finished are not computed again.

        Args:
            viewer: the session that asks.

        Raises:
            QueueFull: when too many jobs wait.
            TooManyJobs: when this session has a running and a waiting job.
            InvalidInput: when the store cannot be used, or what ``check`` raises.
        """
        if self._check is not None:
            self._check(spec)
        self.warm_up()
        job_id = digest(spec)[:MIN_PREFIX]
        # Not under the lock: another process may be writing to the store.
        recalled = self._jobs.get(job_id) or recalled_from(self._store, spec)
        expected_s, _ = unfinished_seconds(self._store, spec)
        with self._record.recorded():
            job = self._jobs.get(job_id) or self._remember(recalled)
            if not job.active and job.status != "completed":
                self._make_room(viewer)
                job.expected_s, job.viewers = expected_s, set()
                self._enqueue(job, viewer)
            self._see(job, viewer)
        return job_id

    def snapshot(self, job_id: str, viewer: str = "") -> Snapshot | None:
        """The job at this moment, also one of an earlier run of the server; None for an unknown id.

        Args:
            viewer: the session that follows it from now on; while another one does, :meth:`stop` only detaches.
        """
        recalled = self._jobs.get(job_id) or recalled_by_id(self._store, job_id)
        if recalled is None:
            return None
        with self._changed:
            job = self._jobs.get(job_id) or self._remember(recalled)
            self._see(job, viewer)
            return self._snapshot(job)

    def followed(self, viewer: str) -> tuple[Snapshot, ...]:
        """The jobs that a session has started or opened here while they were unfinished, the latest first."""
        with self._changed:
            found = [self._snapshot(job) for job in self._jobs.values() if viewer in job.viewers]
        return tuple(reversed(found))

    def foreseen(self, spec: Spec) -> tuple[float, int]:
        """(seconds that unfinished points should take, number of finished ones); raises as :meth:`submit`."""
        return unfinished_seconds(self._store, spec)

    def adopt(self, result: Result) -> None:
        """Keep a result that was computed elsewhere, so that it is not computed again."""
        self.forget(digest(result.spec)[:MIN_PREFIX])
        self._store.import_result(result)

    def stop(self, job_id: str, viewer: str = "") -> bool:
        """Stop a job; False where other sessions follow it, and only this one leaves."""
        with self._record.recorded():
            job = self._jobs.get(job_id)
            if job is None or not job.active:
                return True
            others = {each for each in job.viewers - {viewer} if self._is_connected(each)}
            if others:
                job.viewers.discard(viewer)
                return False
            self._end(job, "cancelled")
            return True

    def forget(self, job_id: str) -> bool:
        """Drop a job from memory, once its run is deleted from the store; False while it waits or runs."""
        with self._changed:
            if (job := self._jobs.get(job_id)) is not None and job.active:
                return False
            self._jobs.pop(job_id, None)
            return True

    def ask_presence(self, is_connected: Callable[[str], bool]) -> None:
        """Set the function that tells whether the browser of a session is there."""
        self._is_connected = is_connected

    def warm_up(self) -> None:
        """Start the workers before the first job, and resume unfinished jobs of an earlier server; once.

        Raises:
            InvalidInput: when another server uses the store.
        """
        with self._starting:
            with self._changed:
                if self._closing or self._threads:
                    return
                self._store.lock_for_server()
                for index, target in enumerate((self._watch, *self._num_workers * (self._serve,))):
                    thread = threading.Thread(target=target, daemon=True, name=f"jobs-{index}")
                    self._threads.append(thread)
                    thread.start()
            self._workers.warm_up()
            self._inherit()

    def shutdown(self) -> None:
        """End all workers; unfinished jobs are resumed by the next server, or submit."""
        with self._record.recorded():
            self._closing = True
            self._queue.clear()
            for job in self._jobs.values():
                if job.active:
                    job.end("cancelled")
            self._changed.notify_all()
        self._workers.close()
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._record.write()
        self._store.close()

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live, spare ones included."""
        return self._workers.pids()

    def load(self) -> Load:
        """How busy the server is.

        Raises:
            InvalidInput: when the store cannot be read and written.
        """
        self._store.try_to_write()
        with self._changed:
            running, waiting = len(self._running()), len(self._queue)
            return Load(len(self.worker_pids()), running, waiting, self._max_waiting, waiting < self._max_waiting)

    def needed_uploads(self) -> frozenset[str]:
        """Digests of the uploads that waiting and running jobs compute with."""
        with self._changed:
            datasets = [getattr(job.spec, "dataset", None) for job in self._jobs.values() if job.active]
        return frozenset(digest for each in datasets if (digest := getattr(each, "digest", None)))

    def num_viewers(self) -> int:
        """Number of sessions that follow an unfinished job."""
        with self._changed:
            return len({viewer for job in self._jobs.values() if job.active for viewer in job.viewers})

    def _active(self) -> list[Job]:
        with self._changed:
            return [job for job in self._jobs.values() if job.active]

    def _running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.status == "running"]

    def _snapshot(self, job: Job) -> Snapshot:
        if job.status != "queued":
            return job.snapshot()
        place = self._queue.index(job)
        ahead = [*self._running(), *self._queue[:place]]
        # So many begin at once.
        busy = len(ahead) >= self._num_workers
        return job.snapshot(place + 1, sum(each.left_s() for each in ahead) / self._num_workers if busy else 0.0)

    def _see(self, job: Job, viewer: str) -> None:
        if viewer and job.active:
            job.viewers.add(viewer)

    def _serve(self) -> None:
        """Lead one job after another through a worker."""
        while job := self._next():
            turn = job.turn
            for _ in range(MAX_TRIES):
                computation = self._workers.compute(canonical_json(job.spec), self._budget())
                if computation is None or self._followed(job, turn, computation):
                    break
            with self._record.recorded():
                if (job.status, job.turn) == ("running", turn):
                    cause = "no worker process could be started" if computation is None else computation.death()
                    self._end(job, "failed", f"{cause}; run it again to continue from its finished points")

    def _next(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._first() is not None)
            job = self._first()
            if self._closing or job is None:
                return None
            self._queue.remove(job)
            for other in self._queue:
                other.change()  # its place
            job.begin()
            return job

    def _first(self) -> Job | None:
        """The job that waits longest, of a session without a running one."""
        running = {job.owner for job in self._running() if job.owner} if self._is_shared else ()
        return next((job for job in self._queue if job.owner not in running), None)

    def _followed(self, job: Job, turn: int, computation: Computation) -> bool:
        """Record the events of a computation; whether a worker has begun with it, or the job has ended."""
        with self._changed:
            if (job.status, job.turn) != ("running", turn):
                computation.kill()
                return True
            job.computation = computation
        for event in computation.events():
            with self._record.recorded():
                if job.computation is not computation:
                    continue  # the job has ended, and its worker is being killed
                job.take(event)
                if isinstance(event, Ended):
                    self._settle(job)
        return computation.pid is not None or job.computation is not computation

    def _budget(self) -> float:
        return self._max_bytes if self._max_bytes < math.inf else memory_limit()

    def _end(self, job: Job, status: EndStatus, reason: str = "") -> None:
        """End a job whatever it does; its finished points are in the store."""
        if job in self._queue:
            self._queue.remove(job)
        if job.computation is not None:
            job.computation.kill()
        job.end(status, reason)
        self._settle(job)

    def _settle(self, job: Job) -> None:
        """Record the end of a job."""
        if job.status in ("failed", "stopped"):
            facts = {"job": job.job_id, "status": job.status, "cause": known_causes(job.snapshot().reason)}
            _LOG.warning("a job did not complete", extra={"facts": facts})
        if not self._closing:
            self._record.ended(job)
        self._forget()
        self._changed.notify_all()

    def _enqueue(self, job: Job, owner: str) -> None:
        job.wait(owner)
        self._record.unfinished(job)
        self._queue.append(job)
        self._changed.notify_all()

    def _make_room(self, viewer: str) -> None:
        """Refuse one more job, or drop a waiting one whose sessions have all left.

        Raises:
            TooManyJobs, QueueFull: when it cannot be accepted.
        """
        own = sum(job.owner == viewer for job in self._jobs.values() if job.active)
        if self._is_shared and viewer and own >= MAX_PER_SESSION:
            raise TooManyJobs
        if len(self._queue) >= self._max_waiting:
            left = [job for job in self._queue if job.viewers and not any(map(self._is_connected, job.viewers))]
            if not left:
                raise QueueFull(self._max_waiting)
            self._end(left[-1], "cancelled")

    def _remember(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        self._forget()
        return job

    def _forget(self) -> None:
        """Drop the oldest ended jobs from memory; the store keeps them."""
        for job_id in [job_id for job_id, job in self._jobs.items() if not job.active][:-MAX_REMEMBERED]:
            del self._jobs[job_id]

    def _watch(self) -> None:
        """End jobs that are over their budgets or asked to end, and keep the pool alive."""
        learn_from(self._store)
        looked = wrote = 0.0
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, TICK_S if self._running() else IDLE_S):
                    return
                running = {job: job.computation for job in self._running()}
            for job, computation in running.items():
                if job.spent_s() > self._max_s:
                    self._stop(job, f"over time: {_time(self._max_s)} allowed")
                elif computation is not None and computation.is_over_memory():
                    self._stop(job, over_memory(computation.max_bytes))
            if time.monotonic() - looked >= IDLE_S:
                looked = time.monotonic()
                self._workers.warm_up()
                active = self._active()
                if looked - wrote >= WRITE_S:
                    wrote = looked
                    self._record.write_clocks(active)
                for job in self._record.to_end(active):
                    self._stop(job, "stopped by the operator of the server")

    def _stop(self, job: Job, reason: str) -> None:
        with self._record.recorded():
            if job.active:
                self._end(job, "stopped", reason)

    def _inherit(self) -> None:
        """Resume the jobs that an earlier server did not finish."""
        for left in self._record.inherit():
            try:
                if self._check is not None:
                    self._check(left.spec)
                job = recalled_from(self._store, left.spec)
            except InvalidInput as error:
                _LOG.warning("An unfinished job cannot be resumed: %s", str(error).splitlines()[0])
                job = None
            with self._record.recorded():
                if job is None or job.status == "completed":
                    self._record.strike(left.spec)
                elif job.job_id not in self._jobs:
                    self._enqueue(self._remember(job), left.owner)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
