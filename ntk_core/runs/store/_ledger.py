"""Which jobs are not finished: a table of the store, so that the next server goes on with them however this one ends.

Each row names the server whose job it is. A server holds a lock on a file of its own, and the system lets go of it when
the process ends, by whatever cause; whoever gets the lock then inherits the jobs.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import sqlalchemy as sa

from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput
from ntk_core.runs._parse import canonical_json, digest
from ntk_core.runs._spec import Spec
from ntk_core.runs.store._clocks import JobClock, jobs_to_end, write_clocks
from ntk_core.runs.store._entries import intact_spec
from ntk_core.runs.store._tables import CLOCKS, JOBS, insert_once

if TYPE_CHECKING:
    from pathlib import Path

    from ntk_core.runs.store._database import Database

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class UnfinishedJob:
    """A job that waits or runs.

    Attributes:
        owner: who asked for it.
        submitted_s: when, in seconds since 1970.
        num_servers: how many servers, the one that writes this included, have it without another finished point.
        spent_s: how long it has run on servers that have ended.
        allowed_s: how long it may run in all; None where that is not known.
    """

    spec: Spec
    owner: str
    submitted_s: float
    num_servers: int = 1
    spent_s: float = 0.0
    allowed_s: float | None = None


class Ledger:
    """The unfinished jobs of this server, and those of servers that have ended. Trouble is only logged.

    :meth:`note` and :meth:`strike` return at once; :meth:`write` makes durable what they were told, and what could not
    be written the last time.
    """

    def __init__(self, database: Database):
        self._database = database
        self._server = uuid.uuid4().hex
        self._lock: IO[bytes] | None = None
        self._writing, self._noting = threading.Lock(), threading.Lock()
        self._changes: dict[str, UnfinishedJob | None] = {}  # by digest, None for a job that has ended

    def note(self, job: UnfinishedJob) -> None:
        """An unfinished job, in place of what was noted of it before."""
        with self._noting:
            self._changes[digest(job.spec)] = job

    def strike(self, spec: Spec) -> None:
        """The job has ended."""
        with self._noting:
            self._changes[digest(spec)] = None

    def write(self) -> None:
        """Write what has been noted, in one transaction."""
        with self._writing, self._only_logged():
            with self._noting:
                changes, self._changes = self._changes, {}
            if not changes:
                return
            try:
                self._begin()
                self._database.do(lambda connection: self._save(connection, changes))
            except BaseException:
                with self._noting:
                    self._changes = changes | self._changes
                raise

    def write_clocks(self, clocks: Iterable[JobClock]) -> None:
        """Write down how long jobs have run."""
        with self._only_logged():
            write_clocks(self._database, clocks)

    def to_end(self) -> frozenset[str]:
        """Digests of the jobs that an operator wants ended."""
        found: frozenset[str] = frozenset()
        with self._only_logged():
            found = jobs_to_end(self._database)
        return found

    def inherit(self) -> tuple[UnfinishedJob, ...]:
        """The unfinished jobs of servers that have ended, oldest first; from now on they are this server's."""
        found: list[UnfinishedJob] = []
        with self._writing, self._only_logged():
            if (older := data_directory() / "jobs").is_dir():
                _LOG.warning("The unfinished jobs in %s are of an older version; they are ignored.", older)
            self._begin()
            for file in self._directory().iterdir():
                if file.name == self._server or (lock := _locked(file)) is None:
                    continue
                with lock:
                    self._database.do(functools.partial(self._take_over, ended=file.name))
                    with contextlib.suppress(OSError):
                        file.unlink()
            clocks = JOBS.outerjoin(CLOCKS, JOBS.c.digest == CLOCKS.c.digest)
            query = (
                self._own().add_columns(CLOCKS.c.spent, CLOCKS.c.allowed).select_from(clocks).order_by(JOBS.c.submitted)
            )
            for row in self._database.do(lambda connection: connection.execute(query).all()):
                spec = intact_spec(row.digest, row.spec)
                if spec is not None:
                    spent_s = row.spent or 0.0
                    job = UnfinishedJob(spec, row.owner, row.submitted, row.num_servers, spent_s, row.allowed)
                    found.append(job)
                else:
                    with self._noting:
                        self._changes[row.digest] = None
        return tuple(found)

    def close(self) -> None:
        """Leave what is unfinished to the next server."""
        self.write()
        if self._lock is not None:
            with self._only_logged():
                left = self._database.do(lambda connection: connection.execute(self._own().limit(1)).all())
                self._lock.close()
                self._lock = None
                if not left:
                    (self._directory() / self._server).unlink(missing_ok=True)

    def _directory(self) -> Path:
        """Where the locks are of all servers of this machine that save to this store."""
        store = hashlib.sha256(self._database.location.encode()).hexdigest()[:16]
        return private_directory(data_directory() / "servers" / store)

    def _begin(self) -> None:
        if self._lock is None:
            file = self._directory() / self._server
            self._lock = _locked(file)
            if self._lock is None:
                raise OSError(f"{file} is locked by another process")

    def _own(self) -> sa.Select[tuple[object, ...]]:
        return sa.select(*JOBS.c).where(JOBS.c.server == self._server)

    def _save(self, connection: sa.Connection, changes: dict[str, UnfinishedJob | None]) -> None:
        for run, job in changes.items():
            connection.execute(sa.delete(JOBS).where(JOBS.c.server == self._server, JOBS.c.digest == run))
            if job is not None:
                row = {"server": self._server, "digest": run, "owner": job.owner, "submitted": job.submitted_s}
                row |= {"num_servers": job.num_servers, "spec": canonical_json(job.spec)}
                connection.execute(sa.insert(JOBS).values(row))
            else:
                connection.execute(sa.delete(CLOCKS).where(CLOCKS.c.digest == run))

    def _take_over(self, connection: sa.Connection, ended: str) -> None:
        of_ended = JOBS.c.server == ended
        for row in connection.execute(sa.select(*JOBS.c).where(of_ended)).mappings().all():
            insert_once(connection, JOBS, {**row, "server": self._server})
        connection.execute(sa.delete(JOBS).where(of_ended))

    @contextlib.contextmanager
    def _only_logged(self) -> Iterator[None]:
        try:
            yield
        except (InvalidInput, OSError, RuntimeError) as error:
            _LOG.warning("Unfinished jobs cannot be written down for the next start: %s", error)


def _locked(file: Path) -> IO[bytes] | None:
    """The file, locked until it is closed or this process ends; None when another process or object holds it."""
    lock = file.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(lock.fileno()).st_nlink:
                raise OSError("who inherited from an ended server has just removed it")
    except OSError:
        lock.close()
        return None
    return lock
