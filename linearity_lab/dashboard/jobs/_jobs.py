"""The jobs of a server: first in, first out, each with limits of time and memory."""

import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait

from linearity_lab import runs
from linearity_lab.dashboard.jobs import worker
from linearity_lab.dashboard.jobs._job import MADE_WAY, Ahead, Job, Snapshot, check_room
from linearity_lab.dashboard.jobs._process import LivePool
from linearity_lab.dashboard.jobs.limits import check_limits
from linearity_lab.dashboard.jobs.profile import PROFILES, Profile, news_every_s
from linearity_lab.dashboard.jobs.worker import WorkerComputation
from linearity_lab.memory import memory_limit
from linearity_lab.runs import EndStatus, Point, Result, Spec, canonical_json, spec_digest
from linearity_lab.runs.events import Cause, PointFinished
from linearity_lab.runs.store import MIN_PREFIX, KnownRun, Store
from ntk_core.errors import InvalidInput
from ntk_core.numbers import duration

AGAIN = "run it again to continue from its finished points"
CLAIMED = "continued by another server, since this one did not answer"
TICK_S = 0.1  # between two measurements of memory
# Between two writes of changed jobs; every tenth also stores run times.
NOTE_S = 1.0
NUM_NOTES = 10
_LOG = logging.getLogger(__name__)


class Jobs:
    """Jobs of all browser sessions of this server.

    All methods are thread-safe and return immediately.

    Args:
        store: store of finished points and results, by default ``LINEARITY_LAB_STORE``.
        num_spare: number of spare worker processes.

    Attributes:
        is_connected: whether the browser of a session is connected, set by the server.
    """

    def __init__(
        self, store: Store | None = None, limits: Profile = PROFILES["local"], *, num_spare: int = 1
    ):
        self.is_connected: Callable[[str], bool] = lambda session: True
        self._limits = limits
        self._store = store or Store()
        given = (self._store.location, limits.is_public)
        self._workers = LivePool(limits.num_workers + num_spare, worker.start, given)
        self._starting = threading.Lock()
        self._writing = threading.Lock()
        # Guards all fields below; notified when a job is queued or ends.
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}  # in the order of their starts
        self._stopped: list[Result] = []  # to be stored
        self._recorded: list[tuple[str, bool]] | None = []  # stored jobs, and whether they run
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()

    def submit(
        self,
        spec: Spec,
        viewer: str = "",
        address: str = "",
        visitor: str = "",
        *,
        is_preview: bool = False,
        quick_s: float = math.inf,
    ) -> str:
        """Start or resume ``spec``, or attach to its existing job; return the job id.

        Args:
            viewer: the requesting session, from this network address; empty if unknown.
            visitor: the owner of the run on a shared server; by default the session.
            is_preview: whether it started by itself: it yields to runs, ends without
                viewers, and is not listed.
            quick_s: a new run stops after this time, and keeps its points.

        Raises:
            NoRoom: see :func:`~linearity_lab.dashboard.jobs._job.check_room`.
            InvalidInput: if the store cannot be used, or see
                :func:`~linearity_lab.dashboard.jobs.limits.check_limits`.
        """
        self.warm_up()
        owner = visitor or viewer
        job_id = self._accept(
            spec, owner, address, viewer=viewer, is_preview=is_preview, quick_s=quick_s
        )
        with suppress(InvalidInput):  # the database logs its errors
            if not is_preview:
                self._store.note_asked(spec_digest(spec))
            if self._limits.is_shared and owner and not is_preview:
                self._store.add_owner(spec_digest(spec), owner)
        self._record()
        return job_id

    def snapshot(self, job_id: str, viewer: str = "") -> Snapshot | None:
        """Return a job's state, also of an earlier server, and record ``viewer``.

        None for an unknown id.

        A view changes nothing for the owner: it neither keeps Stop from ending the job nor owns it.
        """
        recalled = self._jobs.get(job_id)
        if recalled is None and len(job_id) == MIN_PREFIX:
            with suppress(InvalidInput):
                spec = self._store.spec(job_id)
                recalled = self._recalled(spec) if spec else None
        if recalled is None:
            return None
        with self._changed:
            return self._snapshot(self._remembered(recalled, viewer))

    def known_run(self, job_id: str) -> KnownRun | None:
        """Return what is stored of a job whose settings this version cannot read.

        None for any other id.
        """
        found = self._store.find(job_id) if len(job_id) >= MIN_PREFIX else ()
        return self._store.known_run(found[0]) if len(found) == 1 else None

    def followed(self, viewer: str) -> tuple[Snapshot, ...]:
        """Return the jobs that a session started or opened while unfinished, latest first."""
        with self._changed:
            return tuple(
                self._snapshot(job)
                for job in reversed(self._jobs.values())
                if viewer in job.viewers
            )

    def foreseen(self, spec: Spec) -> tuple[float, int]:
        """Return expected seconds for unfinished points, and the number of finished ones.

        Raises as :meth:`submit`.
        """
        done = self._store.runtimes(spec_digest(spec))
        return runs.estimate(spec, done).seconds, len(done)

    def whole(self, spec: Spec, points: Sequence[Point]) -> tuple[Point, ...]:
        """Return points with the arrays that the store keeps beside them.

        Those without are returned as they are.
        """
        run = spec_digest(spec)
        return tuple(self._store.whole(run, each) if each.is_apart else each for each in points)

    def adopt(self, result: Result, *, is_preview: bool = False) -> None:
        """Store a result computed elsewhere; that of a preview is not listed."""
        self.forget(spec_digest(result.spec)[:MIN_PREFIX])
        if is_preview:
            self._store.save_preview(result.spec)
        self._store.save_result(result, imported=True)

    def stop(self, job_id: str, viewer: str = "", visitor: str = "") -> bool:
        """Stop a job of this visitor; return whether it has ended.

        On a shared server only its owners stop a job. If another owner is connected, the job
        continues for that one and this visitor no longer owns or follows it. On a local server all
        jobs belong to the user.
        """
        who = visitor or viewer
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.now.active:
                if self._limits.is_shared and who not in job.owners:
                    return False
                others = [
                    session for session, owner in job.viewers.items() if owner not in ("", who)
                ]
                if self._limits.is_shared and any(map(self.is_connected, others)):
                    job.owners.discard(who)
                    job.viewers.pop(viewer, None)
                    return False
                self._end(job, "cancelled")
        self._record()
        return True

    def forget(self, job_id: str) -> bool:
        """Drop a job from memory after its run was deleted from the store.

        False while it waits or runs.
        """
        with self._changed:
            if (job := self._jobs.get(job_id)) is not None and job.now.active:
                return False
            self._jobs.pop(job_id, None)
            return True

    def warm_up(self) -> None:
        """Start the workers and resume unfinished jobs of an earlier server, once.

        Refuse if another server runs.
        """
        with self._starting:
            if self._closing.is_set() or self._threads:
                return
            self._store.lock_for_server()
            self._claim()
            self._threads = [
                threading.Thread(target=each, daemon=True) for each in (self._lead, self._note)
            ]
            for thread in self._threads:
                thread.start()
            self._workers.warm_up()

    def shutdown(self) -> None:
        """End all workers; the next server or submit resumes unfinished jobs."""
        self._record()
        with self._changed:
            self._closing.set()
            for job in self._active():
                job.end("cancelled")
            self._changed.notify_all()
        self._workers.close()
        for thread in self._threads:
            thread.join(timeout=5.0)
        with self._writing, suppress(InvalidInput):
            self._store.release_jobs()
        self._store.close()

    def worker_pids(self) -> list[int]:
        """Return the process ids of living workers, including spare ones."""
        return self._workers.pids()

    def load(self) -> dict[str, int]:
        """Return the numbers of living workers, running jobs, waiting jobs, and jobs that may wait.

        Raises:
            InvalidInput: if the store cannot be read and written.
        """
        self._store.try_to_write()
        running = len(self._active("running"))
        waiting = len(self._active("queued"))
        most = self._limits.max_waiting
        return {
            "workers": len(self.worker_pids()),
            "running": running,
            "waiting": waiting,
            "max_waiting": most,
        }

    def needed_uploads(self) -> frozenset[str]:
        """Return the digests of uploads that waiting and running jobs use."""
        digests = set()
        for job in self._active():
            dataset = getattr(job.spec, "dataset", None)
            digests.add(getattr(dataset, "digest", None))
        return frozenset(digest for digest in digests if digest)

    def num_viewers(self) -> int:
        """Return the number of sessions that follow an unfinished job."""
        return len({viewer for job in self._active() for viewer in job.viewers})

    def _active(self, *statuses: str) -> list[Job]:
        """Return unfinished jobs in the order of their starts.

        By default these are waiting and running jobs.
        """
        with self._changed:
            return [
                job
                for job in self._jobs.values()
                if job.status in (statuses or ("queued", "running"))
            ]

    def _waiting(self) -> list[Job]:
        """Return waiting jobs in the order in which they start.

        Runs start before previews, followed jobs before abandoned ones, previews without a mark
        before others.
        """

        def place(job: Job) -> tuple[bool, bool, bool]:
            return job.is_preview, job.is_abandoned, job.is_preview and job.has_mark

        return sorted(self._active("queued"), key=place)

    def _first(self) -> Job | None:
        """Return the job that has waited longest.

        On shared servers, of a visitor without a running job.

        One preview runs at a time, and keeps no run of its visitor waiting.
        """
        running = self._active("running")
        busy = {job.owner for job in running if not job.is_preview} - {""}
        has_preview = any(job.is_preview for job in running)
        for job in self._waiting():
            if job.is_preview and has_preview:
                continue
            if not self._limits.is_shared or job.owner not in busy:
                return job
        return None

    def _snapshot(self, job: Job) -> Snapshot:
        """Return the state of a job for pages.

        Of a waiting one with its place and the running jobs.
        """
        now = job.now
        if self._limits.is_shared and now.owners != job.owners:
            now = replace(now, owners=frozenset(job.owners))
        if now.is_preview != job.is_preview:
            now = replace(now, is_preview=job.is_preview)
        if job.status == "running":
            return replace(now, late_s=job.late_s())
        if job.status != "queued":
            return now
        position = self._waiting().index(job) + 1
        return replace(now, position=position, ahead=self._ahead())

    def _ahead(self) -> tuple[Ahead, ...]:
        """Return what others see of each running job."""
        found = []
        for job in self._active("running"):
            left_s = job.now.remaining_s
            if left_s is None:
                left_s = runs.estimate(job.spec).seconds - job.spent_s()
            most_s = max(self._limits.max_job_s - job.spent_s(), 0.0)
            known = min(left_s, most_s) if left_s > 0 else None
            found.append(Ahead(job.spec.experiment, known, most_s))
        return tuple(found)

    def _recalled(self, spec: Spec) -> Job:
        return Job.recalled(self._store, spec, self._limits.max_result_bytes)

    def _remembered(self, job: Job, viewer: str) -> Job:
        """Return the job of this id in memory, or add this one.

        Drop the oldest ended ones beyond the limit.
        """
        job = self._jobs.setdefault(job.now.job_id, job)
        ended = [each for each in self._jobs.values() if not each.now.active and each is not job]
        held = job.num_bytes + sum(each.num_bytes for each in ended)
        for each in ended:  # oldest first
            if held <= self._limits.max_kept_bytes:
                break
            del self._jobs[each.now.job_id]
            held -= each.num_bytes
        if viewer and job.now.active:
            job.viewers.setdefault(viewer, "")
        return job

    def _accept(
        self,
        spec: Spec,
        owner: str,
        address: str = "",
        *,
        viewer: str = "",
        is_new: bool = True,
        is_preview: bool = False,
        quick_s: float = math.inf,
    ) -> str:
        """Queue the job of a spec unless it is unfinished or completed; return its id."""
        check_limits(spec, self._limits)
        if is_preview:
            self._store.save_preview(spec)
        # Not under the lock: another process may be writing to the store.
        recalled = self._jobs.get(spec_digest(spec)[:MIN_PREFIX]) or self._recalled(spec)
        with self._changed:
            job = self._remembered(recalled, viewer)
            if not job.now.active and job.status != "completed":
                if is_new:
                    check_room(self._active(), self._limits, owner, address, is_preview=is_preview)
                self._jobs[job.now.job_id] = self._jobs.pop(job.now.job_id)
                job.viewers = {}
                job.wait(owner, address)
                job.is_preview = is_preview
                job.quick_s = quick_s
                self._changed.notify_all()
            elif not is_preview:
                job.is_preview = False  # someone asked for it
                job.quick_s = max(job.quick_s, quick_s)  # or for all of it
            if owner:
                job.owners.add(owner)
            if viewer and job.now.active:
                job.viewers[viewer] = owner
            return job.now.job_id

    def _lead(self) -> None:
        """Start waiting jobs, process events of running ones, and end jobs over their limits."""
        running: dict[WorkerComputation, Job] = {}
        while not self._closing.is_set():
            num_ending = sum(each.is_ending for each in running)
            # An ending preview leaves its place at once: the pool has a spare worker, for one of
            # them.
            num_free = min(num_ending, 1)
            if (begun := self._begun(len(running), len(running) - num_free)) is not None:
                running[self._computation(begun)] = begun
            ready = wait([each.reader for each in running if not each.reader.closed], TICK_S)
            news_s = news_every_s(self.num_viewers())
            for computation, job in list(running.items()):
                event = computation.receive() if computation.reader in ready else None
                if isinstance(event, PointFinished) and not event.resumed:
                    runs.learn([(runs.work_of_points(job.spec)[event.key], event.point.runtime_s)])
                grown = computation.grown_bytes()
                is_over = computation.is_over()
                if is_over:
                    running.pop(computation)
                computation.kill_if_late()
                with self._changed:
                    if job.computation is not computation:  # it has ended
                        continue
                    if event is not None:
                        job.take(event)
                    job.show_arrived(news_s)
                    if isinstance(event, PointFinished):
                        job.point_bytes[event.key] = computation.num_bytes
                    if not job.now.active:
                        self._settle(job)
                    elif computation.is_oversized:
                        most = computation.max_result_bytes
                        reason = worker.over_size(most + 1, most)
                        self._end(job, "stopped", reason, Cause.OVER_SIZE)
                    elif is_over:
                        reason = f"{computation.death()}; {AGAIN}"
                        self._end(job, "failed", reason, Cause.WORKER_DIED)
                    elif job.spent_s() > self._limits.max_job_s:
                        reason = f"over time: {duration(self._limits.max_job_s)} allowed"
                        self._end(job, "stopped", reason, Cause.OVER_TIME)
                    elif job.spent_s() > job.quick_s:
                        reason = f"the time of this quick run is over ({duration(job.quick_s)})"
                        self._end(job, "stopped", reason, Cause.OVER_TIME)
                    elif grown > computation.max_bytes:
                        reason = worker.over_memory(computation.max_bytes)
                        self._end(job, "stopped", reason, Cause.OVER_MEMORY)
            self._make_way()

    def _make_way(self) -> None:
        """Free a worker if a followed job waits for it.

        Previews, and runs whose viewers have left, wait again.
        """
        with self._changed:
            first = self._first()
            running = self._active("running")
            self._share_place_of_previews(running)
            if first is None or first.is_abandoned or len(running) < self._limits.num_workers:
                return
            yielding = []
            for job in running:
                comes_after = job.is_abandoned or (job.is_preview and not first.is_preview)
                if job.computation is not None and comes_after:
                    yielding.append(job)
            if yielding:
                longest = min(yielding, key=lambda job: (not job.is_preview, job.left_s or 0.0))
                self._let_wait(longest)

    def _share_place_of_previews(self, running: Sequence[Job]) -> None:
        """Let a preview that has a first mark wait again if a followed one has none."""
        is_awaited = any(
            job.is_preview and not job.has_mark and not job.is_abandoned for job in self._waiting()
        )
        for job in running:
            if is_awaited and job.is_preview and job.has_mark and job.computation is not None:
                self._let_wait(job)

    def _let_wait(self, job: Job) -> None:
        """Take the worker from a running job, which waits behind all others."""
        job.make_way()
        self._jobs[job.now.job_id] = self._jobs.pop(job.now.job_id)
        facts = {"job": job.now.job_id, "cause": MADE_WAY}
        _LOG.info("a job made way", extra={"facts": facts})
        self._changed.notify_all()

    def _begun(self, num_running: int = 0, num_busy: int = 0) -> Job | None:
        """Wait for work; start and return the next job if a worker is free.

        Args:
            num_running: computations, with which the leading thread does not wait.
            num_busy: those that keep others from starting.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing.is_set() or num_running or self._first() is not None
            )
            job = (
                self._first()
                if num_busy < self._limits.num_workers and not self._closing.is_set()
                else None
            )
            if job is not None:
                job.begin()
            return job

    def _computation(self, job: Job) -> WorkerComputation:
        """Send a job to a worker, without the lock, since workers may have to start."""
        most = self._limits.max_memory_bytes
        found = WorkerComputation(
            self._workers,
            canonical_json(job.spec),
            most if most < math.inf else memory_limit(),
            self._limits.max_result_bytes,
        )
        with self._changed:
            if job.status == "running":
                job.computation = found
            else:  # it was stopped meanwhile
                found.kill()
        return found

    def _end(
        self, job: Job, status: EndStatus, reason: str = "", cause: Cause | None = None
    ) -> None:
        """End a job immediately; its finished points are in the store."""
        # Previews end with every pick; the next one finds a warm worker with their programs.
        job.leave_worker(keep=job.is_preview and status == "cancelled")
        job.end(status, reason, cause)
        self._settle(job)

    def _settle(self, job: Job) -> None:
        """Log the end of a job by its cause; its reason may name a user's data."""
        if job.status in ("failed", "stopped"):
            facts = {
                "job": job.now.job_id,
                "status": job.status,
                "cause": str(job.now.cause or Cause.ERROR),
            }
            _LOG.warning("a job did not complete", extra={"facts": facts})
        if job.status == "stopped" and job.now.result is not None:
            self._stopped.append(job.now.result)
        self._changed.notify_all()

    def _note(self) -> None:
        """End jobs at the request of the command line, store jobs, and keep the workers alive."""
        for number in itertools.count(1):
            if self._closing.wait(NOTE_S):
                return
            self._workers.warm_up()
            with self._changed:
                for job in self._active():
                    job.note_viewers(self.is_connected)
                    if job.is_preview and job.left_s is not None:
                        self._end(job, "cancelled")
            with suppress(InvalidInput):
                wanted = self._store.jobs_to_end() if self._active() else frozenset()
                with self._changed:
                    for job in self._active() if wanted else ():
                        if spec_digest(job.spec) in wanted:
                            reason = "stopped by the operator of the server"
                            self._end(job, "stopped", reason, Cause.STOPPED_BY_OPERATOR)
            is_heartbeat = number % NUM_NOTES == 0
            if is_heartbeat:
                with suppress(InvalidInput):
                    self._claim()
            self._record(with_times=is_heartbeat)

    def _claim(self) -> None:
        """Resume the unfinished jobs of ended or silent servers.

        The next record stores them as ours.
        """
        with self._writing:
            for left in self._store.claim_jobs():
                try:
                    job_id = self._accept(left.spec, left.owner, is_new=False)
                    with self._changed:  # open pages find it again within a minute
                        self._jobs[job_id].left_s = time.monotonic()
                except InvalidInput as error:
                    _LOG.warning(
                        "An unfinished job cannot be resumed: %s", str(error).splitlines()[0]
                    )
            self._recorded = None

    def _record(self, *, with_times: bool = False) -> None:
        """Store changed unfinished jobs, or their run times; the database logs its errors."""
        with self._writing, suppress(InvalidInput):
            with self._changed:
                # A preview starts again by itself.
                kept = [job for job in self._active() if not job.is_preview]
                rows = [job.row(self._limits.max_job_s) for job in kept]
                stopped = self._stopped
                self._stopped = []
            unfinished = [(row.digest, row.running) for row in rows]
            if not self._closing.is_set() and (
                unfinished != self._recorded or (with_times and rows)
            ):
                lost = self._store.write_jobs(rows)
                self._recorded = unfinished
                self._end_lost(lost)
            for result in stopped:
                self._store.save_result(result)

    def _end_lost(self, lost: Collection[str]) -> None:
        """End the jobs that another server has claimed; it computes their remaining points."""
        with self._changed:
            for job in self._active() if lost else ():
                if spec_digest(job.spec) in lost:
                    self._end(job, "stopped", CLAIMED, Cause.CLAIMED)
