"""The store itself: specs, finished points and results in a database."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import sqlalchemy as sa

from ntk_core.environment import settings
from ntk_core.errors import InvalidInput
from ntk_core.runs._parse import spec_digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._table import Point, Result
from ntk_core.runs._values import PointValue
from ntk_core.runs.store import _jobs
from ntk_core.runs.store._database import JOBS, PARTS, RUNS, Database
from ntk_core.runs.store._listing import LISTED, MIN_PREFIX, Mark, RunList, StoredRun, conditions, stored_run
from ntk_core.runs.store._rows import (
    ENDED,
    Ending,
    begin_run,
    current,
    delete_run,
    ending_of,
    evict,
    intact,
    intact_spec,
    reopen,
    result_of,
    save_part,
    total_bytes,
    warn,
)

# Reading a run counts as use, written at most this often.
TOUCH_S = 60.0
TRY_EVERY_S = 2.0
_HEX = frozenset("0123456789abcdef")


class Store(Database):
    """Specs, finished points, results and unfinished jobs in a database.

    Args:
        location: path of a SQLite file or SQLAlchemy URL; ``LINEARITY_LAB_STORE`` by default.
        busy_timeout_s: how long a writer waits for another one (SQLite).
        max_bytes: limit above which the least recently used runs are deleted; ``LINEARITY_LAB_STORE_BYTES`` by default.

    Raises:
        InvalidInput: when the database cannot be opened for writing; also by every method, when it stops working.
    """

    def __init__(
        self, location: str | Path | None = None, *, busy_timeout_s: float = 30.0, max_bytes: int | None = None
    ):
        self.max_bytes = settings().store_bytes if max_bytes is None else max_bytes
        self._written_at = -math.inf
        super().__init__(str(location or settings().store), busy_timeout_s)

    def num_bytes(self) -> int:
        """Bytes of all specs, points and results."""
        return self.do(total_bytes)

    def try_to_write(self) -> None:
        """Write to the store as a check, at most every few seconds.

        Raises:
            InvalidInput: when that fails, or the disk of a SQLite file is almost full.
        """
        if time.monotonic() - self._written_at > TRY_EVERY_S:
            check = {"digest": "", "key": "", "sha": "", "seconds": 0.0, "bytes": 0, "json": ""}
            self.do(lambda connection: connection.execute(sa.insert(PARTS).values(check)))
            self.do(lambda connection: connection.execute(sa.delete(PARTS).where(PARTS.c.digest == "")))
            self.check_disk()
            self._written_at = time.monotonic()

    def points(self, spec: Spec) -> StoredPoints:
        """Storage for the finished points of ``spec``."""
        return StoredPoints(self, spec)

    def save_spec(self, spec: Spec) -> None:
        """Store ``spec``, so that :meth:`spec` finds it by its digest."""
        self.do(lambda connection: begin_run(connection, spec))

    def save_result(self, result: Result) -> None:
        """Store a result under its spec's digest; only a completed one replaces a completed one."""
        self._save(result, imported=False)

    def import_result(self, result: Result) -> None:
        """Store a result computed elsewhere, marked as imported; intact points and completed results here stay."""
        self._save(result, imported=True)

    def result(self, run: str) -> Result | None:
        """The result with this digest; None when there is none, or a part of it is damaged."""
        text = self.do(lambda connection: connection.scalar(current(run, RUNS.c.spec)))
        spec = None if text is None else intact_spec(run, text)
        ending, points = self._parts(run) if spec else (None, {})
        if spec is None or ending is None:
            return None
        found = result_of(spec, ending, points)
        if found is None:
            warn(f"result {run[:16]}")
            self.do(lambda connection: reopen(connection, run, ()))
            return None
        now = time.time()
        used = sa.update(RUNS).where(RUNS.c.digest == run, RUNS.c.used < now - TOUCH_S).values(used=now)
        with contextlib.suppress(InvalidInput):  # reading must not fail because this cannot be written
            self.do(lambda connection: connection.execute(used))
        return found

    def points_of(self, run: str) -> dict[str, PointValue]:
        """The intact points of a run by key; damaged ones are deleted, so that they are recomputed."""
        return self._parts(run)[1]

    def runtimes(self, run: str) -> dict[str, float]:
        """Seconds that each point of a run took, by key; points are not checked for damage."""
        query = sa.select(PARTS.c.key, PARTS.c.seconds).where(PARTS.c.digest == run, PARTS.c.key != ENDED)
        return {row.key: row.seconds for row in self.do(lambda connection: connection.execute(query).all())}

    def spec(self, prefix: str) -> Spec | None:
        """The one spec whose digest begins with ``prefix`` (at least 16 hexadecimal digits), else None."""
        found = self.find(prefix) if len(prefix) >= MIN_PREFIX else ()
        if len(found) != 1:
            return None
        text = self.do(lambda connection: connection.scalar(current(found[0], RUNS.c.spec)))
        return None if text is None else intact_spec(found[0], text)

    def find(self, prefix: str) -> tuple[str, ...]:
        """Digests that begin with ``prefix``, ten at most; none for anything but hexadecimal digits."""
        if not 1 <= len(prefix) <= 64 or not _HEX.issuperset(prefix):
            return ()
        begins = (RUNS.c.digest >= prefix) & (RUNS.c.digest < prefix + "g") & (RUNS.c.schema_version == SCHEMA_VERSION)
        query = sa.select(RUNS.c.digest).where(begins).order_by(RUNS.c.digest).limit(10)
        return tuple(self.do(lambda connection: connection.scalars(query).all()))

    def runs(
        self,
        *,
        experiment: str = "",
        status: str = "",
        text: str = "",
        visible: Collection[str] | None = None,
        marked: Mapping[str, Mark] | None = None,
        only_favorites: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> RunList:
        """The stored runs, most recently used first.

        Args:
            text: words that all occur in the digest, the experiment, the settings, or the mark of a run.
            marked: digest → mark.
            visible: the first 16 digits, or more, of private runs that may be shown; all when None.
            limit, offset: which of them.
        """
        wanted = conditions(experiment, status, text, visible, marked or {}, only_favorites=only_favorites)
        count = sa.select(sa.func.count()).select_from(RUNS).where(*wanted)
        query = sa.select(*LISTED).where(*wanted).order_by(RUNS.c.used.desc(), RUNS.c.digest)
        page = query.limit(limit).offset(offset)
        total, rows = self.do(lambda connection: (connection.scalar(count), connection.execute(page).all()))
        return RunList(tuple(stored_run(row) for row in rows), int(total or 0))

    def listed(self, run: str) -> StoredRun | None:
        """The list entry of this digest; None when there is no such run."""
        query = sa.select(*LISTED).where(RUNS.c.digest == run)
        row = self.do(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else stored_run(row)

    def marks(self) -> dict[str, Mark]:
        """Digest → the name, note and star that its run has, where it has any."""
        query = sa.select(RUNS.c.digest, RUNS.c.name, RUNS.c.note, RUNS.c.favorite)
        query = query.where((RUNS.c.name != "") | (RUNS.c.note != "") | RUNS.c.favorite)
        rows = self.do(lambda connection: connection.execute(query).all())
        return {row.digest: Mark(row.name, row.note, row.favorite) for row in rows}

    def write_mark(self, run: str, mark: Mark) -> None:
        """Replace the mark of a run."""
        change = sa.update(RUNS).where(RUNS.c.digest == run)
        change = change.values(name=mark.name, note=mark.note, favorite=mark.favorite)
        self.do(lambda connection: connection.execute(change))

    def delete(self, run: str) -> None:
        """Delete a run, its points and its job."""

        self.do(lambda connection: delete_run(connection, run))
        self.give_back_space()

    def write_jobs(self, jobs: Iterable[_jobs.UnfinishedJob], ended: Collection[str] = ()) -> None:
        """Insert or update jobs that wait or run, and drop those with the digests ``ended``."""

        def write(connection: sa.Connection) -> None:
            connection.execute(sa.delete(JOBS).where(JOBS.c.digest.in_(ended)))
            for job in sorted(jobs, key=lambda job: job.digest):  # rows are held in one order
                begin_run(connection, job.spec)
                _jobs.write_job(connection, job)

        self.do(write)

    def unfinished_jobs(self) -> tuple[_jobs.UnfinishedJob, ...]:
        """The jobs that wait or run on the servers of this store, the oldest first."""
        return self.do(_jobs.unfinished_jobs)

    def claim_jobs(self) -> tuple[_jobs.UnfinishedJob, ...]:
        """The unfinished jobs of servers that have ended, the oldest first; they now belong to this server.

        Call :meth:`lock_for_server` before.
        """
        return self.do(lambda connection: _jobs.claim_jobs(connection, all_of_them=self.is_file))

    def end_job(self, run: str) -> None:
        """Ask the server of a job to end it; the server polls :meth:`jobs_to_end`."""
        asked = sa.update(JOBS).where(JOBS.c.digest == run).values(ending=True)
        self.do(lambda connection: connection.execute(asked))

    def jobs_to_end(self) -> frozenset[str]:
        """Digests of jobs with a requested end."""
        query = sa.select(JOBS.c.digest).where(JOBS.c.ending)
        return frozenset(self.do(lambda connection: connection.scalars(query).all()))

    def note_stopped(self, spec: Spec, result: Result | None) -> None:
        """Record that the server stopped a run; ``result`` holds its finished points, None without any."""
        if result is not None:
            self.save_result(result)
            return
        change = sa.update(RUNS).where(RUNS.c.digest == spec_digest(spec), RUNS.c.status != "completed")
        self.do(lambda connection: connection.execute(change.values(status="stopped")))

    def _parts(self, run: str) -> tuple[Ending | None, dict[str, PointValue]]:
        """The ending and the points of a run by key; with a damaged one it has not ended."""
        query = sa.select(PARTS).where(PARTS.c.digest == run)
        rows = self.do(lambda connection: connection.execute(query).all())
        found = {row.key: part for row in rows if (part := intact(row)) is not None}
        if damaged := {row.key for row in rows} - found.keys():
            self.do(lambda connection: reopen(connection, run, damaged))
        points = {key: part for key, part in found.items() if isinstance(part, PointValue)}
        ending = found.get(ENDED)
        return ending if isinstance(ending, Ending) and not damaged else None, points

    def _save(self, result: Result, *, imported: bool) -> None:
        run = spec_digest(result.spec)

        def save(connection: sa.Connection) -> None:
            begin_run(connection, result.spec, imported=imported)
            new = [save_part(connection, run, point.key, point) for point in result.points]
            change = sa.update(RUNS).where(RUNS.c.digest == run)
            if imported and any(new):
                connection.execute(change.values(imported=True))
            if result.status != "completed":  # an imported run may be in progress here
                change = change.where(RUNS.c.status == "started" if imported else RUNS.c.status != "completed")
            elif imported:
                change = change.where(RUNS.c.status != "completed")
            if connection.execute(change.values(status=result.status)).rowcount:
                save_part(connection, run, ENDED, ending_of(result), replace=True)

        self.do(save)
        self._free_space(run)

    def _free_space(self, spared: str) -> None:
        if self.do(lambda connection: evict(connection, self.max_bytes, spared)):
            self.give_back_space()


class StoredPoints:
    """The finished points of one run in a :class:`Store`."""

    def __init__(self, store: Store, spec: Spec):
        self._store, self._spec, self._run = store, spec, spec_digest(spec)
        store.save_spec(spec)

    def finished(self) -> dict[str, PointValue]:
        """The intact points by key; damaged ones are left out, so that they are recomputed."""
        return self._store.points_of(self._run)

    def save(self, key: str, point: Point) -> None:
        """Store a point durably; an intact one of that key stays as it is."""

        def save(connection: sa.Connection) -> None:
            begin_run(connection, self._spec)  # it may have been deleted meanwhile
            save_part(connection, self._run, key, point)

        self._store.do(save)
        self._store._free_space(self._run)
