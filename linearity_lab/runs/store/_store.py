"""The store: specs, finished points, results and unfinished jobs in a database."""

from __future__ import annotations

import contextlib
import io
import json
import math
import time
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from linearity_lab.environment import environment_settings
from linearity_lab.runs._any_result import Point, Result
from linearity_lab.runs._documents import Reading, naming
from linearity_lab.runs._parse import canonical_json, spec_digest
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import experiment_of
from linearity_lab.runs._values import EndStatus, PointValue, latest_provenance
from linearity_lab.runs.store._claims import Claims
from linearity_lab.runs.store._database import (
    ALIASES,
    ARRAYS,
    JOBS,
    OWNERS,
    POINTS,
    PREVIEWS,
    RUNS,
    Database,
    insert,
)
from linearity_lab.runs.store._entries import (
    LISTED,
    MIN_PREFIX,
    Mark,
    RunList,
    StoredRun,
    UnfinishedJob,
    actual_digest,
    array_checksum,
    check_share,
    delete_run,
    ending_checksum,
    evict,
    is_intact_array,
    is_intact_ending,
    is_intact_point,
    json_object,
    mark_as_used,
    name_again,
    next_use,
    point_checksum,
    point_in,
    seal,
    spec_checksum,
    spec_in,
    spec_of,
    swept_words,
    total_bytes,
    warn,
)
from linearity_lab.runs.store._known_run import KnownRun
from linearity_lab.runs.store._packages import sa
from ntk_core.errors import InvalidInput

# Reading a run counts as use; its time is written at most this often.
TOUCH_S = 60.0
TRY_EVERY_S = 2.0
# Bounds on a search, since databases limit the length of patterns and the number of conditions.
MAX_SEARCH = 400
MAX_WORDS = 12
_HEX = frozenset("0123456789abcdef")


class Store(Database):
    """Specs, finished points, results and unfinished jobs in a database.

    Args:
        location: path of a SQLite file or SQLAlchemy URL; ``LINEARITY_LAB_STORE`` by default.
        busy_timeout_s: how long a writer waits for another one (SQLite).
        max_bytes: limit above which the least recently used runs are deleted;
            ``LINEARITY_LAB_STORE_BYTES`` by default.
    """

    def __init__(
        self,
        location: str | Path | None = None,
        *,
        busy_timeout_s: float = 30.0,
        max_bytes: int | None = None,
    ):
        self.max_bytes = environment_settings().store_bytes if max_bytes is None else max_bytes
        self._written_at = -math.inf
        self._claims = Claims()
        self._touched: dict[str, float] = {}  # digest → monotonic time of its last mark
        super().__init__(str(location or environment_settings().store), busy_timeout_s)
        self.do(name_again)

    def change_rows(self, connection: sa.Connection) -> None:
        """Add checksums to the rows of layout 3."""
        seal(connection)

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

    def points(self, spec: Spec, *, of_job: bool = False) -> StoredPoints:
        """Return the storage for the finished points of ``spec``.

        Args:
            of_job: whether a job of a server computes them; its server records who asked for the
                run.
        """
        points = StoredPoints(self, spec)
        if not of_job:
            self.note_asked(spec_digest(spec))
        return points

    def save_preview(self, spec: Spec) -> None:
        """Store the settings of a run that starts by itself.
        Unless it is stored already, it is not listed.
        """

        def save(connection: sa.Connection) -> None:
            stored = actual_digest(connection, spec_digest(spec))
            known = sa.select(RUNS.c.digest).where(RUNS.c.digest == stored)
            if connection.scalar(known) is None:
                insert(connection, PREVIEWS, {"digest": begin_run(connection, spec)})

        self.do(save)

    def note_asked(self, run: str) -> None:
        """Record that a user asked for this run; it is listed from now on."""

        def note(connection: sa.Connection) -> None:
            stored = actual_digest(connection, run)
            connection.execute(sa.delete(PREVIEWS).where(PREVIEWS.c.digest == stored))

        self.do(note)

    def save_spec(self, spec: Spec) -> None:
        """Store ``spec`` for lookup by its digest."""
        self.do(lambda connection: begin_run(connection, spec))

    def add_owner(self, run: str, owner: str) -> None:
        """Record that this visitor started the run."""

        def add(connection: sa.Connection) -> None:
            row = {"digest": actual_digest(connection, run), "owner": owner}
            insert(connection, OWNERS, row)

        self.do(add)

    def owners(self, run: str) -> frozenset[str]:
        """Return the visitors who started a run.

        Empty for runs of a local server and the command line.
        """

        def read(connection: sa.Connection) -> frozenset[str]:
            stored = actual_digest(connection, run)
            query = sa.select(OWNERS.c.owner).where(OWNERS.c.digest == stored)
            return frozenset(connection.scalars(query))

        return self.do(read)

    def disown(self, run: str, owner: str) -> None:
        """Take a run from a visitor's list; delete it if no other visitor started it."""

        def take(connection: sa.Connection) -> None:
            stored = actual_digest(connection, run)
            mine = (OWNERS.c.digest == stored) & (OWNERS.c.owner == owner)
            connection.execute(sa.delete(OWNERS).where(mine))
            left = sa.select(sa.func.count()).where(OWNERS.c.digest == stored)
            if not connection.scalar(left):
                delete_run(connection, stored)

        self.do(take)

    def save_result(self, result: Result, *, imported: bool = False) -> None:
        """Store a result under its spec's digest.

        An import replaces neither intact points nor a completed result, and the provenance of the
        points that it adds contains ``imported``.

        Args:
            imported: whether it was computed elsewhere.
        """
        if imported:
            result = result.as_imported()
        ending = result.model_dump_json(include={"status", "provenance", "runtime_s"})

        def save(connection: sa.Connection) -> str:
            run = begin_run(connection, result.spec)
            version = result.spec.schema_version
            num_stored = 0
            for point in result.points:
                num_stored += _save_point(
                    connection, run, version, point, self.max_bytes, replace=not imported
                )
            row = connection.execute(sa.select(*LISTED).where(RUNS.c.digest == run)).one()
            # An import leaves the intact points that were here before as they are.
            has_imported = result.num_imported > 0
            if imported:
                has_imported = bool(row.imported) or num_stored > 0
            status = row.status if is_intact_ending(row) else "started"
            if imported and result.status != "completed":  # the run may be in progress
                is_kept = status != "started"
            elif imported or result.status != "completed":
                is_kept = status == "completed"
            else:
                is_kept = False
            facts = {}
            if not is_kept:
                facts = _ending(run, result.status, has_imported, ending)
            elif has_imported != bool(row.imported):
                facts = _ending(run, row.status, has_imported, row.ending)
            if facts:
                connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(facts))
            return run

        run = self.do(save)
        self.do(lambda connection: evict(connection, self.max_bytes, run))

    def result(
        self, run: str, *, arrays: bool = True, max_bytes: float = math.inf
    ) -> Result | None:
        """Return the result with this digest; None if it is missing or damaged.

        Args:
            arrays, max_bytes: as in :meth:`points_of`. A completed result that exceeds
                ``max_bytes`` is None.
        """
        row = self._row(run)
        if row is None or not row.ending:
            return None
        run = row.digest
        found = None
        spec = spec_in(row)
        if spec is not None and is_intact_ending(row):
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
        """Return the intact points of a run by key; others are omitted and then recomputed.

        A point is intact if its checksum matches and it is the point of its key.

        Args:
            arrays: whether to return points with their large arrays, such as kernels.
            max_bytes: JSON bytes of all points together; larger points and those beyond are
                omitted.
        """
        row = self._row(run)
        if row is None:
            return {}
        if max_bytes < math.inf or not arrays:
            return self._points_within(row, max_bytes)
        found: dict[str, PointValue] = {}
        for stored in self._point_rows(row.digest):
            point = point_in(row, stored)
            if point is not None:
                found[stored.key] = point
        for key in self._keys_with_arrays(row.digest):
            if key in found:
                found[key] = self.whole(row.digest, found[key])
        return found

    def _points_within(self, row: sa.Row[Any], max_bytes: float) -> dict[str, PointValue]:
        """Return points without their arrays, one row at a time.

        Reading ends after ``max_bytes`` of JSON.

        Points of earlier versions may contain kernels: they are taken out before the next point is
        read.
        """
        listed = sa.select(POINTS.c.key, POINTS.c.bytes).where(POINTS.c.digest == row.digest)
        found: dict[str, PointValue] = {}
        left = max_bytes
        for listed_row in self.do(lambda connection: connection.execute(listed).all()):
            if listed_row.bytes > left:
                continue
            whole_point = self._stored_point(row, listed_row.key)
            if whole_point is None:
                continue
            point, _ = whole_point.apart()
            found[listed_row.key] = point
            left -= listed_row.bytes
        return found

    def stored_bytes(self, run: str) -> dict[str, int]:
        """Return the JSON bytes of each point of a run by key, without reading the points."""

        def read(connection: sa.Connection) -> dict[str, int]:
            stored = actual_digest(connection, run)
            query = sa.select(POINTS.c.key, POINTS.c.bytes).where(POINTS.c.digest == stored)
            return {row.key: row.bytes for row in connection.execute(query)}

        return self.do(read)

    def whole(self, run: str, point: PointValue) -> PointValue:
        """Return a point with the arrays that are stored beside it.

        The point itself if there are none.

        Arrays that are missing or damaged leave the point without them, with a warning in the log.
        """
        row = self._row(run)
        if row is None:
            return point
        query = sa.select(ARRAYS).where(ARRAYS.c.digest == row.digest, ARRAYS.c.key == point.key)
        archive = self.do(lambda connection: connection.execute(query).one_or_none())
        if archive is None:
            # Earlier versions stored the arrays in the JSON of the point.
            return self._stored_point(row, point.key) or point
        if is_intact_array(archive):
            with contextlib.suppress(ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
                return point.joined(_unpacked(archive.npz))
        warn(f"kernels of point {point.key} of {row.digest[:MIN_PREFIX]}")
        return point

    def _stored_point(self, row: sa.Row[Any], key: str) -> PointValue | None:
        """Return the point of a row of a run with this key; None if it is missing or damaged."""
        query = sa.select(POINTS).where(POINTS.c.digest == row.digest, POINTS.c.key == key)
        stored = self.do(lambda connection: connection.execute(query).one_or_none())
        return None if stored is None else point_in(row, stored)

    def _keys_with_arrays(self, run: str) -> list[str]:
        query = sa.select(ARRAYS.c.key).where(ARRAYS.c.digest == run)
        return list(self.do(lambda connection: connection.scalars(query).all()))

    def known_run(self, run: str) -> KnownRun | None:
        """Return what is stored of a run whose settings this version cannot read.

        None for any other run.
        """
        row = self._row(run)
        listed = StoredRun.of(row) if row is not None else None
        if row is None or listed is None or listed.reading is Reading.READABLE:
            return None
        points: dict[str, dict[str, Any]] = {}
        for stored in self._point_rows(row.digest):
            document = json_object(stored.json) if is_intact_point(stored) else None
            if document is None:
                warn(f"point {stored.key} of {row.digest[:MIN_PREFIX]}")
            else:
                points[stored.key] = document
        ending = json_object(row.ending) if row.ending and is_intact_ending(row) else None
        return KnownRun(listed, points, ending or {})

    def _row(self, run: str) -> sa.Row[Any] | None:
        """Return the row of a run by its digest or an earlier one."""

        def read(connection: sa.Connection) -> sa.Row[Any] | None:
            stored = actual_digest(connection, run)
            query = sa.select(*LISTED).where(RUNS.c.digest == stored)
            return connection.execute(query).one_or_none()

        return self.do(read)

    def _point_rows(self, run: str) -> Sequence[sa.Row[Any]]:
        query = sa.select(POINTS).where(POINTS.c.digest == run)
        return self.do(lambda connection: connection.execute(query).all())

    def runtimes(self, run: str) -> dict[str, float]:
        """Return the run time of each point in seconds by key, without checks for damage."""

        def read(connection: sa.Connection) -> dict[str, float]:
            stored = actual_digest(connection, run)
            query = sa.select(POINTS.c.key, POINTS.c.seconds).where(POINTS.c.digest == stored)
            return {row.key: row.seconds for row in connection.execute(query)}

        return self.do(read)

    def spec(self, prefix: str) -> Spec | None:
        """Return the spec whose digest starts with ``prefix``, if unique.

        The prefix has at least 16 hexadecimal digits.
        """
        found = self.find(prefix) if len(prefix) >= MIN_PREFIX else ()
        if len(found) != 1:
            return None
        return spec_in(self._row(found[0]))

    def find(self, prefix: str) -> tuple[str, ...]:
        """Return at most ten digests that start with ``prefix``.

        An earlier digest of a run counts, too.

        None are found unless it is hexadecimal.
        """
        if not 1 <= len(prefix) <= 64 or not _HEX.issuperset(prefix):
            return ()

        def read(connection: sa.Connection) -> set[str]:
            found: set[str] = set()
            for names, digests in (
                (RUNS.c.digest, RUNS.c.digest),
                (ALIASES.c.digest, ALIASES.c.run),
            ):
                begins = (names >= prefix) & (names < prefix + "g")
                query = sa.select(digests).where(begins).order_by(names).limit(10)
                found.update(connection.scalars(query))
            return found

        return tuple(sorted(self.do(read))[:10])

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
        """Return a page of the stored runs without previews, most recently used first.

        Args:
            text: words that must all occur in the digest, experiment, settings or mark of a run.
            marked: digest → mark.
            visible: prefixes (at least 16 digits) of the private runs to include; None for all.
            owner: only runs that this visitor started; None for all.
            limit, offset: size and start of the page.
        """
        marked = marked or {}
        is_listed = RUNS.c.digest.not_in(sa.select(PREVIEWS.c.digest))
        wanted: list[sa.ColumnElement[bool]] = [is_listed]
        wanted += [RUNS.c.experiment == experiment] if experiment else []
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
            earlier = sa.select(ALIASES.c.run).where(
                sa.func.substr(ALIASES.c.digest, 1, MIN_PREFIX).in_(known)
            )
            is_visible = sa.func.substr(RUNS.c.digest, 1, MIN_PREFIX).in_(known)
            wanted.append(~RUNS.c.private | is_visible | RUNS.c.digest.in_(earlier))
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

        def write(connection: sa.Connection) -> None:
            stored = actual_digest(connection, run)
            connection.execute(sa.update(RUNS).where(RUNS.c.digest == stored).values(asdict(mark)))

        self.do(write)

    def delete(self, run: str) -> None:
        """Delete a run, its points and its job."""
        self.do(lambda connection: delete_run(connection, actual_digest(connection, run)))

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

        A SQLite file has one server, so every other job is of an ended server: call
        :meth:`lock_for_server` before. In a shared database call it every few seconds: it claims
        the jobs of a server whose heartbeats have stopped for a minute. Exactly one of several
        calling servers gets each job.
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

        def ask(connection: sa.Connection) -> None:
            names = {run, actual_digest(connection, run)}
            asked = sa.update(JOBS).where(JOBS.c.digest.in_(names)).values(ending=True)
            connection.execute(asked)

        self.do(ask)

    def jobs_to_end(self) -> frozenset[str]:
        """Return the digests of jobs with a requested end."""
        query = sa.select(JOBS.c.digest).where(JOBS.c.ending)
        return frozenset(self.do(lambda connection: connection.scalars(query).all()))


class StoredPoints:
    """Finished points of one run in a :class:`Store`."""

    def __init__(self, store: Store, spec: Spec):
        self._store = store
        self._spec = spec
        store.save_spec(spec)

    def finished(self) -> dict[str, PointValue]:
        """Return the intact points by key; damaged ones are omitted and then recomputed."""
        return self._store.points_of(spec_digest(self._spec))

    def save(self, key: str, point: Point) -> None:
        """Store a point durably."""

        def save(connection: sa.Connection) -> str:
            run = begin_run(connection, self._spec)  # the run may have been deleted meanwhile
            _save_point(connection, run, self._spec.schema_version, point, self._store.max_bytes)
            return run

        run = self._store.do(save)
        self._store.do(lambda connection: evict(connection, self._store.max_bytes, run))


# A job may have an earlier digest of its run: a server of another version wrote it.
_JOBS = (
    sa.select(*JOBS.c, RUNS.c.digest.label("run"), RUNS.c.private, RUNS.c.spec, RUNS.c.checksum)
    .join_from(JOBS, ALIASES, ALIASES.c.digest == JOBS.c.digest, isouter=True)
    .join(RUNS, RUNS.c.digest == sa.func.coalesce(ALIASES.c.run, JOBS.c.digest))
    .order_by(JOBS.c.submitted)
)


def _jobs(connection: sa.Connection, query: sa.Select[Any]) -> tuple[UnfinishedJob, ...]:
    """Return the jobs with readable settings."""
    found = [(spec_of(row.run, row), row) for row in connection.execute(query)]
    return tuple(
        UnfinishedJob(
            spec, row.owner, row.submitted, row.running, row.spent, row.allowed, row.ending
        )
        for spec, row in found
        if spec is not None
    )


def begin_run(connection: sa.Connection, spec: Spec) -> str:
    """Insert the row of this spec, or mark it as used and repair it.

    Also lock it for the transaction.

    Returns the digest of the row.

    Raises:
        InvalidInput: if another run has this digest: a default changed without a new
            version of the experiment.
    """
    run = actual_digest(connection, spec_digest(spec))
    text = canonical_json(spec)
    query = sa.select(*LISTED).where(RUNS.c.digest == run)
    stored = connection.execute(query).one_or_none()
    if stored is not None and stored.spec != text:
        earlier = spec_in(stored)
        if earlier is not None and earlier != spec:
            allowed = "a new version of the experiment, since a default of its settings has changed"
            raise InvalidInput("schema_version", spec.schema_version, allowed)
    facts = {
        "experiment": spec.experiment,
        "swept": swept_words(spec)[:200],
        "private": spec.is_private,
    }
    facts |= {"spec": text, "bytes": len(text), "used": next_use(connection)}
    facts |= {"checksum": spec_checksum(run, spec.is_private, text), "naming": naming(type(spec))}
    row = {"digest": run, "created": time.time(), **facts}
    insert(connection, RUNS, row, update=facts)
    return run


def _ending(run: str, status: str, is_imported: bool, text: str) -> dict[str, object]:
    """Return the columns of an ending."""
    return {
        "status": status,
        "imported": is_imported,
        "ending": text,
        "ending_checksum": ending_checksum(run, status, is_imported, text),
    }


def _save_point(
    connection: sa.Connection,
    run: str,
    version: int,
    point: PointValue,
    max_store_bytes: int,
    *,
    replace: bool = True,
) -> bool:
    """Store a point and its arrays; an intact point of this key is replaced or kept.

    Returns whether the point was stored.

    Raises:
        RunTooLarge: if the run would take more than its share of the store.
    """
    key = point.key
    if not replace:
        query = sa.select(POINTS).where(POINTS.c.digest == run, POINTS.c.key == key)
        stored = connection.execute(query).one_or_none()
        if stored is not None and is_intact_point(stored):
            return False
    light, arrays = point.apart()
    text = light.model_dump_json()
    archive = _packed(arrays) if arrays else b""
    check_share(connection, run, key, len(text) + len(archive), max_store_bytes)
    seconds = float(point.runtime_s)
    facts: dict[str, object] = {"seconds": seconds, "bytes": len(text), "json": text}
    facts["version"] = version
    facts["checksum"] = point_checksum(run, key, version, seconds, text)
    insert(connection, POINTS, {"digest": run, "key": key, **facts}, update=facts)
    if archive:
        beside: dict[str, object] = {"bytes": len(archive), "npz": archive}
        beside["checksum"] = array_checksum(run, key, archive)
        insert(connection, ARRAYS, {"digest": run, "key": key, **beside}, update=beside)
    return True


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
