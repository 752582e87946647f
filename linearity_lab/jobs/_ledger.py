"""The unfinished jobs of this server in the store; trouble with the store is only logged."""

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator

from ntk_core.errors import InvalidInput
from ntk_core.runs import Spec, digest
from ntk_core.runs.store import Store, UnfinishedJob

_LOG = logging.getLogger(__name__)


class Ledger:
    """The jobs of this server that the next one is to resume.

    :meth:`note` and :meth:`strike` return immediately; :meth:`write` makes durable what they and earlier failed writes
    left.
    """

    def __init__(self, store: Store):
        self._store = store
        self._writing, self._noting = threading.Lock(), threading.Lock()
        self._changes: dict[str, UnfinishedJob | None] = {}  # by digest, None for a job that has ended

    def note(self, job: UnfinishedJob) -> None:
        """An unfinished job, in place of an earlier note of it."""
        with self._noting:
            self._changes[job.digest] = job

    def strike(self, spec: Spec) -> None:
        """The job has ended."""
        with self._noting:
            self._changes[digest(spec)] = None

    def write(self) -> None:
        """Write the notes in one transaction."""
        with self._writing, self._only_logged():
            with self._noting:
                changes, self._changes = self._changes, {}
            if not changes:
                return
            try:
                ended = [run for run, job in changes.items() if job is None]
                self._store.write_jobs([job for job in changes.values() if job is not None], ended)
            except BaseException:
                with self._noting:
                    self._changes = changes | self._changes
                raise

    def write_clocks(self, jobs: Iterable[UnfinishedJob]) -> None:
        """Write how long running jobs have run."""
        with self._writing, self._only_logged():
            self._store.write_clocks(jobs)

    def to_end(self) -> frozenset[str]:
        """Digests of the jobs that the command line has asked to end."""
        found: frozenset[str] = frozenset()
        with self._only_logged():
            found = self._store.jobs_to_end()
        return found

    def inherit(self) -> tuple[UnfinishedJob, ...]:
        """The unfinished jobs of servers that have ended, the oldest first."""
        found: tuple[UnfinishedJob, ...] = ()
        with self._only_logged():
            found = self._store.claim_jobs()
        return found

    def close(self) -> None:
        """Leave unfinished jobs to the next server."""
        self.write()

    @contextlib.contextmanager
    def _only_logged(self) -> Iterator[None]:
        try:
            yield
        except InvalidInput as error:
            _LOG.warning("Unfinished jobs cannot be stored for the next start: %s", error)
