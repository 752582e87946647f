"""What the store knows about jobs: the unfinished ones, which the next server resumes, and those that were stopped."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence

from linearity_lab.jobs._job import Job
from ntk_core.errors import InvalidInput
from ntk_core.runs import Spec, digest
from ntk_core.runs.store import Store, UnfinishedJob

_LOG = logging.getLogger(__name__)


class Record:
    """The lock of all jobs, and what is written to the store after its release; trouble with the store is only logged.

    Args:
        allowed_s: how long a job may run; None for any time.

    Attributes:
        changed: guards the jobs; notified when one begins to wait or ends.
    """

    def __init__(self, store: Store, allowed_s: float | None):
        self._store, self._allowed_s = store, allowed_s
        self.changed = threading.Condition()
        self._writing = threading.Lock()
        self._notes: dict[str, UnfinishedJob | None] = {}  # by digest, None for a job that has ended
        self._stopped: list[Job] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Hold the lock; then write what was recorded meanwhile."""
        with self.changed:
            yield
            stopped, self._stopped = self._stopped, []
        for job in stopped:
            with _only_logged():
                self._store.note_stopped(job.spec, job.result)
        self.write()

    def unfinished(self, job: Job) -> None:
        """Record that this job waits or runs."""
        self._notes[digest(job.spec)] = self._row(job)

    def ended(self, job: Job) -> None:
        """Record that this job has ended."""
        self.strike(job.spec)
        if job.status == "stopped":
            self._stopped.append(job)

    def strike(self, spec: Spec) -> None:
        """Record that the next server is not to resume this spec."""
        self._notes[digest(spec)] = None

    def write(self) -> None:
        """Write in one transaction what was recorded, and what earlier failed writes left."""
        with self._writing, _only_logged():
            with self.changed:
                notes, self._notes = self._notes, {}
            if not notes:
                return
            try:
                ended = [run for run, job in notes.items() if job is None]
                self._store.write_jobs([job for job in notes.values() if job is not None], ended)
            except BaseException:
                with self.changed:
                    self._notes = notes | self._notes
                raise

    def write_clocks(self, active: Sequence[Job]) -> None:
        """Write how long these jobs have run, for the list of the command line."""
        with self._writing, _only_logged():
            self._store.write_clocks([self._row(job) for job in active])

    def to_end(self, active: Sequence[Job]) -> list[Job]:
        """The jobs that the command line has asked to end."""
        wanted: frozenset[str] = frozenset()
        with _only_logged():
            wanted = self._store.jobs_to_end() if active else wanted
        return [job for job in active if digest(job.spec) in wanted]

    def inherit(self) -> tuple[UnfinishedJob, ...]:
        """The unfinished jobs of servers that have ended, the oldest first."""
        found: tuple[UnfinishedJob, ...] = ()
        with _only_logged():
            found = self._store.claim_jobs()
        return found

    def _row(self, job: Job) -> UnfinishedJob:
        running = job.status == "running"
        return UnfinishedJob(job.spec, job.owner, job.submitted_s, running, job.spent_s(), self._allowed_s)


@contextlib.contextmanager
def _only_logged() -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        _LOG.warning("Jobs cannot be recorded for the next start: %s", error)
