"""The store: specs, finished points, results and unfinished jobs in a database."""

from __future__ import annotations

import contextlib
import io
import json
import math
import time
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from ntk_core.environment import settings
from ntk_core.errors import InvalidInput
from ntk_core.runs._parse import canonical_json, spec_digest
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Point, Result, experiment_of
from ntk_core.runs._values import EndStatus, PointValue, latest_provenance
from ntk_core.runs.store._claims import Claims
from ntk_core.runs.store._database import (
    ARRAYS,
    JOBS,
    OWNERS,
    POINTS,
    RUNS,
    Database,
    insert,
)
from ntk_core.runs.store._entries import (
    LISTED,
    MIN_PREFIX,
    Mark,
    RunList,
    StoredRun,
    UnfinishedJob,
    check_share,
    delete_run,
    evict,
    intact_spec,
    mark_as_used,
    next_use,
    swept_words,
    total_bytes,
    warn,
)

# Reading a run counts as use; its time is written at most this often.
TOUCH_S = 60.0
TRY_EVERY_S = 2.0
# Bounds on a search, since databases limit the length of patterns and the number of conditions.
MAX_SEARCH, MAX_WORDS = 400, 12
_HEX = frozenset("0123456789abcdef")
_POINT: TypeAdapter[Point] = TypeAdapter(Point)


class Store(Database):
    """Specs, finished points, results and unfinished jobs in a database.

    Args:
        location: path of a SQLite file or SQLAlchemy URL; ``LINEARITY_LAB_STORE`` by default.
        busy_timeout_s: how long a writer waits for another one (SQLite).
        max_bytes: limit above which the least recently used runs are deleted; ``LINEARITY_LAB_STORE_BYTES`` by default.
    """

    def __init__(
        self,
        location: str | Path | None = None,
        *,
        busy_timeout_s: float = 30.0,
        max_bytes: int | None = None,
    ):
        self.max_bytes = settings().store_bytes if max_bytes is None else max_bytes
        self._written_at = -math.inf
        self._claims = Claims()
        self._touched: dict[str, float] = {}  # digest → monotonic time of its last mark
        super().__init__(str(location or settings().store), busy_timeout_s)

    def num_bytes(self) -> int:
        """Bytes of all specs, points and results."""
        return self.do(total_bytes)

    def try_to_write(self) -> None:
        """Write to the store as a check, at most every few seconds.

        Raises:
            InvalidInput: if writing fails, or the disk of a SQLite file is almost full.
        """
        if time.monotonic() - self._written_at > TRY_EVERY_S:
            self.do(
                lambda connection: connection.execute(
                    sa.delete(POINTS).where(POINTS.c.digest == "")
                )
            )
            self.check_disk()
            self._written_at = time.monotonic()

    def points(self, spec: Spec) -> StoredPoints:
        """Return the storage for the finished points of ``spec``."""
        return StoredPoints(self, spec)

    def save_spec(self, spec: Spec) -> None:
        """Store ``spec`` for lookup by its digest."""
        self.do(lambda connection: begin_run(connection, spec))

    def add_owner(self, run: str, owner: str) -> None:
        """Record that this visitor started the run."""
        row = {"digest": run, "owner": owner}
        self.do(lambda connection: insert(connection, OWNERS, row))

    def owners(self, run: str) -> frozenset[str]:
        """Return the visitors who started a run; empty for runs of a local server and the command line."""
        query = sa.select(OWNERS.c.owner).where(OWNERS.c.digest == run)
        return frozenset(self.do(lambda connection: connection.scalars(query).all()))

    def disown(self, run: str, owner: str) -> None:
        """Take a run from a visitor's list; delete it if no other visitor started it."""

        def take(connection: sa.Connection) -> None:
            mine = (OWNERS.c.digest == run) & (OWNERS.c.owner == owner)
            connection.execute(sa.delete(OWNERS).where(mine))
            left = sa.select(sa.func.count()).where(OWNERS.c.digest == run)
            if not connection.scalar(left):
                delete_run(connection, run)

        self.do(take)

    def save_result(self, result: Result, *, imported: bool = False) -> None:
        """Store a result under its spec's digest; an import replaces no completed result.

        Args:
            imported: whether it was computed elsewhere.
        """
        run = spec_digest(result.spec)
        unless = (
            RUNS.c.status == "completed" if imported or result.status != "completed" else sa.false()
        )
        if imported and result.status != "completed":  # the run may be in progress
            unless = RUNS.c.status != "started"
        ending = result.model_dump_json(include={"status", "provenance", "runtime_s"})
        change = (
            sa.update(RUNS)
            .where(RUNS.c.digest == run, ~unless)
            .values(status=result.status, ending=ending)
        )
        change = change.values(imported=True) if imported else change

        def save(connection: sa.Connection) -> None:
            begin_run(connection, result.spec)
            for point in result.points:
                _save_point(connection, run, point.key, point, self.max_bytes, replace=not imported)
            connection.execute(change)

        self.do(save)
        self.do(lambda connection: evict(connection, self.max_bytes, run))

    def result(
        self, run: str, *, arrays: bool = True, max_bytes: float = math.inf
    ) -> Result | None:
        """Return the result with this digest; None if it is missing or damaged.

        Args:
            arrays, max_bytes: as in :meth:`points_of`. A completed result that exceeds ``max_bytes`` is None.
        """
        query = sa.select(RUNS.c.spec, RUNS.c.ending).where(RUNS.c.digest == run)
        row = self.do(lambda connection: connection.execute(query).one_or_none())
        spec = intact_spec(run, row.spec) if row is not None and row.ending else None
        found = None
        if row is not None and spec is not None:
            with contextlib.suppress(ValueError, TypeError):
                points = self.points_of(run, arrays=arrays, max_bytes=max_bytes)
                found = _result(spec, points, **json.loads(row.ending))
        if found is not None:
            self._touch(run)
        return found

    def _touch(self, run: str) -> None:
        """Mark a run as used, unless this process did so in the last ``TOUCH_S`` seconds."""
        now = time.monotonic()
        recent = {}
        for digest, marked in self._touched.items():
            if now - marked < TOUCH_S:
                recent[digest] = marked
        if run in recent:
            return
        # Other threads read the mapping, so it is replaced and never changed.
        self._touched = recent | {run: now}
        with contextlib.suppress(InvalidInput):  # reading must not fail if this write fails
            self.do(lambda connection: mark_as_used(connection, run))

    def points_of(
        self, run: str, *, arrays: bool = True, max_bytes: float = math.inf
    ) -> dict[str, PointValue]:
        """Return the intact points of a run by key; damaged ones are omitted and then recomputed.

        Args:
            arrays: whether to load the arrays that are stored beside the JSON of a point.
            max_bytes: JSON bytes of all points together; larger points and those beyond are omitted.
        """
        if max_bytes < math.inf:
            return self._points_within(run, max_bytes)
        query = sa.select(POINTS.c.key, POINTS.c.json).where(POINTS.c.digest == run)
        found: dict[str, PointValue] = {}
        for row in self.do(lambda connection: connection.execute(query).all()):
            try:
                found[row.key] = _POINT.validate_json(row.json)
            except ValueError:
                warn(f"point {row.key} of {run[:MIN_PREFIX]}")
        if arrays:
            for key in self._keys_with_arrays(run):
                if key in found:
                    found[key] = self.whole(run, found[key])
        return found

    def _points_within(self, run: str, max_bytes: float) -> dict[str, PointValue]:
        """Return points without their arrays, one row at a time, until ``max_bytes`` of JSON are read.

        Points of earlier versions may contain kernels: they are taken out before the next point is read.
        """
        listed = sa.select(POINTS.c.key, POINTS.c.bytes).where(POINTS.c.digest == run)
        found: dict[str, PointValue] = {}
        left = max_bytes
        for listed_row in self.do(lambda connection: connection.execute(listed).all()):
            if listed_row.bytes > left:
                continue
            of_key = sa.select(POINTS.c.json).where(
                POINTS.c.digest == run, POINTS.c.key == listed_row.key
            )
            text = self.do(partial(sa.Connection.scalar, statement=of_key))
            try:
                point, _ = _POINT.validate_json(text or "").apart()
            except ValueError:
                warn(f"point {listed_row.key} of {run[:MIN_PREFIX]}")
                continue
            found[listed_row.key] = point
            left -= listed_row.bytes
        return found

    def stored_bytes(self, run: str) -> dict[str, int]:
        """Return the JSON bytes of each point of a run by key, without reading the points."""
        query = sa.select(POINTS.c.key, POINTS.c.bytes).where(POINTS.c.digest == run)
        rows = self.do(lambda connection: connection.execute(query).all())
        return {row.key: row.bytes for row in rows}

    def whole(self, run: str, point: PointValue) -> PointValue:
        """Return a point with the arrays that are stored beside it; the point itself if there are none.

        Arrays that are missing or damaged leave the point without them, with a warning in the log.
        """
        query = sa.select(ARRAYS.c.npz).where(ARRAYS.c.digest == run, ARRAYS.c.key == point.key)
        archive = self.do(lambda connection: connection.scalar(query))
        if archive is None:
            return self._whole_of_earlier_version(run, point)
        try:
            return point.joined(_unpacked(archive))
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
            warn(f"kernels of point {point.key} of {run[:MIN_PREFIX]}")
            return point

    def _whole_of_earlier_version(self, run: str, point: PointValue) -> PointValue:
        """Return the point as stored, which contains its arrays if an earlier version wrote it."""
        query = sa.select(POINTS.c.json).where(POINTS.c.digest == run, POINTS.c.key == point.key)
        text = self.do(lambda connection: connection.scalar(query))
        with contextlib.suppress(ValueError):
            return _POINT.validate_json(text or "")
        return point

    def _keys_with_arrays(self, run: str) -> list[str]:
        query = sa.select(ARRAYS.c.key).where(ARRAYS.c.digest == run)
        return list(self.do(lambda connection: connection.scalars(query).all()))

    def runtimes(self, run: str) -> dict[str, float]:
        """Return the run time of each point in seconds by key, without checks for damage."""
        query = sa.select(POINTS.c.key, POINTS.c.seconds).where(POINTS.c.digest == run)
        return {
            row.key: row.seconds
            for row in self.do(lambda connection: connection.execute(query).all())
        }

    def spec(self, prefix: str) -> Spec | None:
        """Return the spec whose digest starts with ``prefix`` (at least 16 hexadecimal digits), if unique."""
        found = self.find(prefix) if len(prefix) >= MIN_PREFIX else ()
        if len(found) != 1:
            return None
        query = sa.select(RUNS.c.spec).where(RUNS.c.digest == found[0])
        return intact_spec(found[0], self.do(lambda connection: connection.scalar(query)))

    def find(self, prefix: str) -> tuple[str, ...]:
        """Return at most ten digests that start with ``prefix``; none unless it is hexadecimal."""
        if not 1 <= len(prefix) <= 64 or not _HEX.issuperset(prefix):
            return ()
        begins = (RUNS.c.digest >= prefix) & (RUNS.c.digest < prefix + "g")
        query = sa.select(RUNS.c.digest).where(begins).order_by(RUNS.c.digest).limit(10)
        return tuple(self.do(lambda connection: connection.scalars(query).all()))

    def runs(
        self,
        *,
        experiment: str = "",
        status: str = "",
        text: str = "",
        visible: Collection[str] | None = None,
        owner: str | None = None,
        marked: Mapping[str, Mark] | None = None,
        only_favorites: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> RunList:
        """Return a page of the stored runs, most recently used first.

        Args:
            text: words that must all occur in the digest, experiment, settings or mark of a run.
            marked: digest → mark.
            visible: prefixes (at least 16 digits) of the private runs to include; None for all.
            owner: only runs that this visitor started; None for all.
            limit, offset: size and start of the page.
        """
        marked = marked or {}
        wanted = [RUNS.c.experiment == experiment] if experiment else []
        wanted += [RUNS.c.status == status] if status else []
        for word in text[:MAX_SEARCH].replace("\0", " ").split()[:MAX_WORDS]:
            columns = (RUNS.c.experiment, RUNS.c.swept, RUNS.c.spec)
            found = [column.icontains(word, autoescape=True) for column in columns]
            marks = [
                run
                for run, mark in marked.items()
                if word.lower() in f"{mark.name} {mark.note}".lower()
            ]
            begins = RUNS.c.digest.istartswith(word, autoescape=True)
            wanted.append(sa.or_(begins, RUNS.c.digest.in_(marks), *found))
        if only_favorites:
            wanted.append(RUNS.c.digest.in_([run for run, mark in marked.items() if mark.favorite]))
        if owner is not None:
            mine = sa.select(OWNERS.c.digest).where(OWNERS.c.owner == owner)
            wanted.append(RUNS.c.digest.in_(mine))
        if visible is not None:
            known = [name[:MIN_PREFIX] for name in visible]
            wanted.append(~RUNS.c.private | sa.func.substr(RUNS.c.digest, 1, MIN_PREFIX).in_(known))
        count = sa.select(sa.func.count()).select_from(RUNS).where(*wanted)
        query = sa.select(*LISTED).where(*wanted).order_by(RUNS.c.used.desc(), RUNS.c.digest)
        page = query.limit(limit).offset(offset)
        total, rows = self.do(
            lambda connection: (connection.scalar(count), connection.execute(page).all())
        )
        return RunList(tuple(map(StoredRun.of, rows)), int(total or 0))

    def marks(self) -> dict[str, Mark]:
        """Map digests to marks, for runs with a mark."""
        query = sa.select(RUNS.c.digest, RUNS.c.name, RUNS.c.note, RUNS.c.favorite)
        query = query.where((RUNS.c.name != "") | (RUNS.c.note != "") | RUNS.c.favorite)
        rows = self.do(lambda connection: connection.execute(query).all())
        return {row.digest: Mark(row.name, row.note, row.favorite) for row in rows}

    def write_mark(self, run: str, mark: Mark) -> None:
        """Replace the mark of a run."""
        change = sa.update(RUNS).where(RUNS.c.digest == run).values(asdict(mark))
        self.do(lambda connection: connection.execute(change))

    def delete(self, run: str) -> None:
        """Delete a run, its points and its job."""
        self.do(lambda connection: delete_run(connection, run))

    def write_jobs(self, jobs: Collection[UnfinishedJob]) -> frozenset[str]:
        """Replace the unfinished jobs of this server; this is also its heartbeat.

        Returns:
            Digests of the jobs that another server has claimed, because this one was silent.
        """

        def write(connection: sa.Connection) -> tuple[frozenset[str], frozenset[str]]:
            for job in sorted(jobs, key=lambda job: job.digest):  # a fixed order avoids deadlocks
                begin_run(connection, job.spec)
            return self._claims.write(connection, jobs)

        owned, lost = self.do(write)
        self._claims.remember(owned)
        return lost

    def unfinished_jobs(self) -> tuple[UnfinishedJob, ...]:
        """Return waiting and running jobs of all servers of this store, oldest first."""
        return self.do(lambda connection: _jobs(connection, _JOBS))

    def claim_jobs(self) -> tuple[UnfinishedJob, ...]:
        """Claim the unfinished jobs of ended servers, and return them, oldest first.

        A SQLite file has one server, so every other job is of an ended server: call :meth:`lock_for_server` before.
        In a shared database call it every few seconds: it claims the jobs of a server whose heartbeats have stopped
        for a minute. Exactly one of several calling servers gets each job.
        """
        is_alone = self._file is not None

        def claim(connection: sa.Connection) -> tuple[frozenset[str], tuple[UnfinishedJob, ...]]:
            claimed = self._claims.claim(connection, is_alone=is_alone)
            return claimed, _jobs(connection, _JOBS.where(JOBS.c.digest.in_(claimed)))

        claimed, jobs = self.do(claim)
        self._claims.remember(claimed, is_more=True)
        return jobs

    def release_jobs(self) -> None:
        """Leave the unfinished jobs of this server to the next server that claims jobs."""
        self.do(self._claims.release)

    def end_job(self, run: str) -> None:
        """Request the end of a job; its server polls :meth:`jobs_to_end`."""
        asked = sa.update(JOBS).where(JOBS.c.digest == run).values(ending=True)
        self.do(lambda connection: connection.execute(asked))

    def jobs_to_end(self) -> frozenset[str]:
        """Return the digests of jobs with a requested end."""
        query = sa.select(JOBS.c.digest).where(JOBS.c.ending)
        return frozenset(self.do(lambda connection: connection.scalars(query).all()))


class StoredPoints:
    """Finished points of one run in a :class:`Store`."""

    def __init__(self, store: Store, spec: Spec):
        self._store, self._spec, self._run = store, spec, spec_digest(spec)
        store.save_spec(spec)

    def finished(self) -> dict[str, PointValue]:
        """Return the intact points by key; damaged ones are omitted and then recomputed."""
        return self._store.points_of(self._run)

    def save(self, key: str, point: Point) -> None:
        """Store a point durably."""

        def save(connection: sa.Connection) -> None:
            begin_run(connection, self._spec)  # the run may have been deleted meanwhile
            _save_point(connection, self._run, key, point, self._store.max_bytes)

        self._store.do(save)
        self._store.do(lambda connection: evict(connection, self._store.max_bytes, self._run))


_JOBS = (
    sa.select(*JOBS.c, RUNS.c.spec)
    .join(RUNS, RUNS.c.digest == JOBS.c.digest)
    .order_by(JOBS.c.submitted)
)


def _jobs(connection: sa.Connection, query: sa.Select[Any]) -> tuple[UnfinishedJob, ...]:
    """Return the jobs with readable settings."""
    found = [(intact_spec(row.digest, row.spec), row) for row in connection.execute(query)]
    return tuple(
        UnfinishedJob(
            spec, row.owner, row.submitted, row.running, row.spent, row.allowed, row.ending
        )
        for spec, row in found
        if spec is not None
    )


def begin_run(connection: sa.Connection, spec: Spec) -> None:
    """Insert the row of this spec, or mark it as used and repair it, and lock it for the transaction."""
    text = canonical_json(spec)
    facts = {
        "experiment": spec.experiment,
        "swept": swept_words(spec)[:200],
        "private": spec.is_private,
    }
    facts |= {"spec": text, "bytes": len(text), "used": next_use(connection)}
    row = {"digest": spec_digest(spec), "created": time.time(), **facts}
    insert(connection, RUNS, row, update=facts)


def _save_point(
    connection: sa.Connection,
    run: str,
    key: str,
    point: PointValue,
    max_store_bytes: int,
    *,
    replace: bool = True,
) -> None:
    """Store a point and its arrays; an existing point of this key is replaced or kept.

    Raises:
        RunTooLarge: if the run would take more than its share of the store.
    """
    light, arrays = point.apart()
    text = light.model_dump_json()
    archive = _packed(arrays) if arrays else b""
    check_share(connection, run, key, len(text) + len(archive), max_store_bytes)
    if archive:
        beside = {"bytes": len(archive), "npz": archive}
        row = {"digest": run, "key": key, **beside}
        insert(connection, ARRAYS, row, update=beside if replace else ())
    stored = {"seconds": point.runtime_s, "bytes": len(text), "json": text}
    insert(
        connection, POINTS, {"digest": run, "key": key, **stored}, update=stored if replace else ()
    )


def _packed(arrays: Mapping[str, NDArray[np.float64]]) -> bytes:
    """Return arrays as an npz archive."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpacked(archive: bytes) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of an npz archive; nothing is unpickled."""
    with np.load(io.BytesIO(archive), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _result(spec: Spec, points: Mapping[str, PointValue], **ending: object) -> Result | None:
    """Return a result; None if a completed run lacks a point or a point is not in the spec."""
    keys = spec.point_keys()
    found = [points[key] for key in keys if key in points]
    with contextlib.suppress(ValidationError):
        result: Result = experiment_of(spec).result.model_validate(
            {"spec": spec, "points": found, **ending}
        )
        if result.status != "completed" or len(found) == len(keys):
            return result
    return None


def partial_result(
    spec: Spec, points: Mapping[str, PointValue], status: EndStatus = "cancelled"
) -> Result | None:
    """Return a partial result of an unfinished run; None without points."""
    latest = latest_provenance(points.values())
    if latest is None:
        return None
    runtime_s = sum(point.runtime_s for point in points.values())
    return _result(spec, points, provenance=latest, status=status, runtime_s=runtime_s)
