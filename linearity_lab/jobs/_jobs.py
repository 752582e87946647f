"""The jobs of a server: the queue, and the threads that lead jobs through worker processes."""

import collections
import math
import threading
import time
from collections.abc import Callable

from linearity_lab.jobs._job import Job
from linearity_lab.jobs._limits import Limits, QueueFull
from linearity_lab.jobs._pool import WorkerPool
from linearity_lab.jobs._presence import Presence
from linearity_lab.jobs._process import WorkerProcess
from linearity_lab.jobs._queue import FairQueue
from linearity_lab.jobs._recall import expected_and_most, foreseen, recalled_by_id, recalled_from, recalled_unfinished
from linearity_lab.jobs._record import Record
from linearity_lab.jobs._snapshot import Load, Snapshot
from linearity_lab.jobs._watch import Watch
from ntk_core.runs import Result, Spec, digest
from ntk_core.runs.events import Ended
from ntk_core.runs.store import MIN_PREFIX, Store

MAX_WAITING = 32
MAX_REMEMBERED = 64
GRACE_S = 0.15


class Jobs:
    """Jobs of all browser sessions of this server; every method may be called from any thread and returns at once.

    Args:
        store: where finished points and results are kept; by default as ``LINEARITY_LAB_STORE`` says.
        num_workers: how many jobs are computed at once.
        num_spare: worker processes that are kept ready to take over.
        grace_s: how long a stopped job may take to stop by itself before its worker is killed, in seconds.
        max_waiting: most jobs in the queue.
        max_per_viewer: most unfinished jobs that one viewer may have asked for; None: as many as fit.
        max_per_address: the same for one network address.
        check: refuses a spec before it becomes a job.
        allowed_s: how long a job may run whose points could take so many seconds at most; any time by default.

    Raises:
        InvalidInput: when the store cannot be used.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        num_workers: int = 1,
        num_spare: int = 1,
        grace_s: float = GRACE_S,
        max_waiting: int = MAX_WAITING,
        max_per_viewer: int | None = None,
        max_per_address: int | None = None,
        check: Callable[[Spec], None] | None = None,
        allowed_s: Callable[[float], float] = lambda most_s: math.inf,
    ):
        self._num_workers, self._check, self._allowed_s = num_workers, check, allowed_s
        self._store = store or Store()
        self._grace_s, self._max_waiting = grace_s, max_waiting
        self._limits = Limits(max_per_viewer, max_per_address)
        self._pool = WorkerPool(self._store.location, self._num_workers, num_spare)
        self._record = Record(self._store)
        self._presence = Presence()
        self._starting = threading.Lock()
        self._changed = self._record.changed  # guards everything below
        self._jobs: collections.OrderedDict[str, Job] = collections.OrderedDict()
        self._queue = FairQueue(self._presence.is_abandoned)
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._watch = Watch(self._store, self._record, self._active, lambda: self._closing, self._end, self._take_turns)

    def submit(self, spec: Spec, viewer: str = "", address: str = "") -> str:
        """Start ``spec`` or attach to the job that computes or has computed it; its job id.

        A cancelled or failed job is resumed: points that are finished are not computed again.

        Args:
            viewer: who asks; viewers take turns.
            address: where the viewer comes from.

        Raises:
            QueueFull: when too many jobs wait.
            TooManyJobs: when this viewer or address has too many unfinished jobs.
            InvalidInput: when the store cannot be used, or what ``check`` raises.
        """
        if self._check is not None:
            self._check(spec)
        self.warm_up()
        job_id = digest(spec)[:MIN_PREFIX]
        # Not under the lock: another process may be writing to the store.
        recalled = self._jobs.get(job_id) or recalled_from(self._store, spec)
        expected_s, most_s = expected_and_most(spec, recalled.finished_keys())
        with self._record.recorded():
            job = self._jobs.get(job_id) or self._remember(recalled)
            if job.status == "running" and job.stopping:
                job.run_again()
            elif not job.active and job.status != "completed":
                self._make_room(viewer, address)
                job.ask(viewer, address, expected_s, self._allowed_s(most_s))
                job.wait()
                self._enqueue(job)
            job.see(viewer, time.monotonic())
        return job_id

    def snapshot(self, job_id: str, viewer: str = "") -> Snapshot | None:
        """The job at this moment, also one of an earlier run of the server; None for an unknown id.

        Args:
            viewer: who looks; while somebody else looks, :meth:`stop` only detaches.
        """
        recalled = self._jobs.get(job_id) or recalled_by_id(self._store, job_id)
        if recalled is None:
            return None
        with self._changed:
            job = self._jobs.get(job_id) or self._remember(recalled)
            job.see(viewer, time.monotonic())
            running = [other.left_s() for other in self._active() if other.status == "running"]
            queued = job.status == "queued"
            return job.snapshot(*self._queue.place(job, running, self._num_workers)) if queued else job.snapshot()

    def foreseen(self, spec: Spec) -> tuple[float, int]:
        """(seconds that unfinished points should take, number of finished ones); raises as :meth:`submit`."""
        return foreseen(self._store, spec)

    def adopt(self, result: Result) -> None:
        """Keep a result that was computed elsewhere, so that nobody computes it again."""
        self.forget(digest(result.spec)[:MIN_PREFIX])
        self._store.import_result(result)

    def stop(self, job_id: str, viewer: str = "", wait_s: float = 0.0) -> bool:
        """Stop a job and wait ``wait_s`` for its end; False where others look at it, and only this viewer leaves."""
        with self._record.recorded():
            job = self._jobs.get(job_id)
            if job is None or not job.active:
                return True
            job.leave(viewer)
            job.keep_viewers(self._presence.is_here)
            if job.num_viewers:
                return False
            if job.status == "queued":
                self._give_up(job)
            elif not job.stopping:
                job.stop()
                if job.worker is not None:
                    self._stop_worker(job, job.worker)
            self._changed.wait_for(lambda: not job.active, wait_s)
            return True

    def leave(self, job_id: str, viewer: str) -> None:
        """``viewer`` follows this job no longer; it goes on."""
        with self._changed:
            if (job := self._jobs.get(job_id)) is not None:
                job.leave(viewer)

    def forget(self, job_id: str) -> bool:
        """Drop a job from memory, once its run is deleted from the store; False while it waits or runs."""
        with self._changed:
            if (job := self._jobs.get(job_id)) is not None and job.active:
                return False
            self._jobs.pop(job_id, None)
            return True

    def ask_presence(self, is_connected: Callable[[str], bool]) -> None:
        """Whom to ask whether a viewer's browser is still there; else whoever has looked in the last seconds is."""
        self._presence.ask(is_connected)

    def warm_up(self) -> None:
        """Start the workers before the first job, and go on with what an earlier server left; once.

        Raises:
            InvalidInput: another server uses the store.
        """
        with self._starting:
            with self._changed:
                if self._closing or self._threads:
                    return
                self._store.lock_for_server()
                for index, target in enumerate((self._watch.serve, *self._num_workers * (self._serve,))):
                    thread = threading.Thread(target=target, daemon=True, name=f"jobs-{index}")
                    self._threads.append(thread)
                    thread.start()
            self._pool.warm_up()
            self._inherit()

    def shutdown(self) -> None:
        """End all workers; unfinished jobs go on from their finished points with the next server, or submit."""
        with self._record.recorded():
            self._closing = True
            for job in self._jobs.values():
                if job.active:
                    self._record.unfinished(job)
                if job.status == "queued":
                    job.end("cancelled")
            self._queue.clear()
            self._changed.notify_all()
        self._pool.close()
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._record.ledger.close()
        self._store.close()

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that live, spare ones included."""
        return self._pool.pids()

    def load(self) -> Load:
        """How busy the server is.

        Raises:
            InvalidInput: when the store cannot be read and written.
        """
        self._store.try_to_write()
        with self._changed:
            running = sum(job.status == "running" for job in self._jobs.values())
            room = len(self._queue) < self._max_waiting or self._queue.last_abandoned() is not None
            return Load(len(self.worker_pids()), running, len(self._queue), self._max_waiting, room)

    def needed_uploads(self) -> frozenset[str]:
        """Digests of the uploads that waiting and running jobs compute with."""
        with self._changed:
            datasets = [getattr(job.spec, "dataset", None) for job in self._jobs.values() if job.active]
        return frozenset(digest for each in datasets if (digest := getattr(each, "digest", None)))

    def num_viewers(self) -> int:
        """How many follow a job that is under way: each of them looks again and again."""
        with self._changed:
            return sum(job.num_viewers or 0 for job in self._active())

    def _active(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.active]

    def _serve(self) -> None:
        """The life of one thread: wait for a job, lead it through a worker, again."""
        while job := self._next():
            while worker := self._handed_over(job):
                if self._followed(job, worker):
                    self._pool.give_back(worker)
                elif self._outlived(job, worker):
                    continue
                break

    def _next(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            if self._closing:
                return None
            job = self._queue.take()
            job.begin()
            return job

    def _handed_over(self, job: Job) -> WorkerProcess | None:
        """The worker that has got the job; None when the job has ended instead."""
        try:
            worker = self._pool.take()
        except OSError as error:
            with self._record.recorded():
                job.end("failed", f"no worker process could be started ({error.strerror})")
                self._settle(job)
            return None
        with self._record.recorded():
            if stopped := job.stopping or self._closing:
                job.end("cancelled")
                self._settle(job)
            else:
                job.worker = worker
        if stopped:
            self._pool.give_back(worker)
            return None
        worker.compute(job.spec.model_dump(mode="json"))
        return worker

    def _followed(self, job: Job, worker: WorkerProcess) -> bool:
        """Take note of all that the worker tells; whether it has come to an end of the job."""
        for event in worker.events():
            with self._record.recorded():
                if job.worker is not worker:  # it has been killed and the job has ended, or begun elsewhere
                    continue
                job.take(event)
                if isinstance(event, Ended):
                    self._settle(job)
                    return True
        return False

    def _outlived(self, job: Job, worker: WorkerProcess) -> bool:
        """Whether a job whose worker has died begins again."""
        cause = worker.death()
        with self._record.recorded():
            if job.worker is not worker:  # it was stopped by killing
                return False
            if job.stopping or self._closing:
                job.end("cancelled")
            elif job.lose_worker(cause, at_start=worker.killed_at_start):
                return True
            self._settle(job)
            return False

    def _stop_worker(self, job: Job, worker: WorkerProcess) -> None:
        """Ask the worker to stop, and kill it if it does not within the grace; its finished points are in the store."""
        worker.ask_to_stop()

        def kill_if_deaf() -> None:
            with self._record.recorded():
                if job.worker is worker and job.stopping:
                    worker.kill()
                    job.end("cancelled")
                    self._settle(job)

        timer = threading.Timer(self._grace_s, kill_if_deaf)
        timer.daemon = True
        timer.start()

    def _end(self, job: Job, reason: str) -> None:
        """End a job for this reason, whatever it does; its finished points are in the store."""
        with self._record.recorded():
            if not job.active:
                return
            job.verdict, job.wants_again = reason, False
            if job.status == "queued":
                self._give_up(job)
            elif job.worker is None:
                job.stop()
            else:
                job.worker.kill()
                job.end("cancelled")
                self._settle(job)

    def _take_turns(self) -> None:
        """Let running jobs that have had their turn give way to waiting ones of others."""
        with self._record.recorded():
            for job in self._active():
                if job.worker is not None and job.had_its_turn and self._queue.others_wait(job.owner):
                    job.worker.kill()
                    job.give_way()
                    self._enqueue(job)

    def _settle(self, job: Job) -> None:
        """What follows the end of a job."""
        if job.wants_again and not self._closing:
            job.wait()
            self._enqueue(job)
        elif not self._closing:
            self._record.ended(job)
        self._forget()
        self._changed.notify_all()

    def _enqueue(self, job: Job) -> None:
        self._record.unfinished(job)
        self._queue.add(job)
        self._changed.notify_all()

    def _give_up(self, job: Job) -> None:
        """End a job that waits."""
        self._queue.remove(job)
        job.end("cancelled")
        self._settle(job)

    def _make_room(self, viewer: str, address: str) -> None:
        """Refuse one more job (QueueFull, TooManyJobs), or give up one that nobody waits for any more."""
        self._limits.check(self._active(), viewer, address)
        if len(self._queue) >= self._max_waiting:
            abandoned = self._queue.last_abandoned()
            if abandoned is None:
                raise QueueFull(self._max_waiting)
            self._give_up(abandoned)

    def _remember(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        self._forget()
        return job

    def _forget(self) -> None:
        """Drop the oldest ended jobs from memory; the store keeps them."""
        for job_id in [job_id for job_id, job in self._jobs.items() if not job.active][:-MAX_REMEMBERED]:
            del self._jobs[job_id]

    def _inherit(self) -> None:
        """Resume the jobs that an earlier server did not finish."""
        for left in self._record.ledger.inherit():
            job = recalled_unfinished(self._store, left, self._check, self._allowed_s)
            with self._record.recorded():
                if job is None or job.status == "completed":
                    self._record.ledger.strike(left.spec)
                    continue
                self._remember(job)
                job.wait()
                job.inherit(left)
                self._enqueue(job)
