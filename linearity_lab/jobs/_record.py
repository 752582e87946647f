"""What is written to the store about jobs: which are unfinished, and which the server has stopped."""

import contextlib
import logging
import threading
from collections.abc import Iterator

from linearity_lab.jobs._job import Job
from linearity_lab.jobs._ledger import Ledger
from ntk_core.errors import InvalidInput
from ntk_core.runs.store import Store

_LOG = logging.getLogger(__name__)


class Record:
    """The lock of all jobs, and what is written once it is let go: that may wait for others.

    Attributes:
        changed: guards the jobs; notified when one begins to wait or ends.
        ledger: the unfinished jobs in the store.
    """

    def __init__(self, store: Store):
        self._store, self.ledger = store, Ledger(store)
        self.changed = threading.Condition()
        self._stopped: list[Job] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Under the lock; what has been noted meanwhile is written after it."""
        with self.changed:
            yield
            stopped, self._stopped = self._stopped, []
        for job in stopped:
            try:
                self._store.note_stopped(job.spec, job.result)
            except InvalidInput as error:
                _LOG.warning("That a job was stopped cannot be written down: %s", error)
        self.ledger.write()

    def unfinished(self, job: Job) -> None:
        """To be written: this job waits or runs."""
        self.ledger.note(job.clock())

    def ended(self, job: Job) -> None:
        """To be written: this job has ended."""
        self.ledger.strike(job.spec)
        if job.status == "stopped":
            self._stopped.append(job)
