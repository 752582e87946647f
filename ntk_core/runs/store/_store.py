"""The store itself: specs, finished points and results in a database."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.runs._parse import canonical_json, digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._table import Point, Result
from ntk_core.runs._values import PointValue
from ntk_core.runs.store._clocks import ListedJob, ask_to_end, unfinished_jobs
from ntk_core.runs.store._database import VARIABLE, Database
from ntk_core.runs.store._entries import (
    ENDING,
    POINT,
    ending_of,
    intact,
    intact_spec,
    result_of,
    sha,
    swept_words,
    warn,
)
from ntk_core.runs.store._eviction import LEASE_S, evict, limit_from_environment, total_bytes
from ntk_core.runs.store._ledger import Ledger
from ntk_core.runs.store._listing import LISTED, MIN_PREFIX, OLDER, RunList, StoredRun, conditions, stored_run
from ntk_core.runs.store._marks import Mark, marks, write_mark
from ntk_core.runs.store._tables import MARKS, POINTS, RUNS, SET_ASIDE, insert_once

# A run that is looked at again and again is noted as used this often; more would make every look a write.
TOUCH_S = 60.0
TRY_EVERY_S = 2.0
_LOG = logging.getLogger(__name__)
_RUNTIME = re.compile(r'"runtime_s": ?(\d+(?:\.\d+)?(?:e-?\d+)?)[,}]')
_HEX = frozenset("0123456789abcdef")


class Store:
    """Specs, finished points and results in a database.

    Args:
        location: path of a SQLite file or SQLAlchemy URL; by default as ``LINEARITY_LAB_STORE`` says.
        busy_timeout_s: how long a writer waits for another one (SQLite).
        max_bytes: beyond this the runs used longest ago go; by default as ``LINEARITY_LAB_STORE_BYTES`` says.

    Raises:
        InvalidInput: when the database cannot be opened for writing; also by every method, when it stops working.
    """

    def __init__(
        self, location: str | Path | None = None, *, busy_timeout_s: float = 30.0, max_bytes: int | None = None
    ):
        self._max_bytes = limit_from_environment() if max_bytes is None else max_bytes
        self._written_at = -math.inf
        self._database = Database(str(location or os.environ.get(VARIABLE) or ""), busy_timeout_s)
        if num_older := self._database.do(_set_older_aside):
            _LOG.warning(
                "%d stored runs are of an older version of the lab; they stay listed as older and are not used.",
                num_older,
            )

    @property
    def location(self) -> str:
        """With this another process opens the same store; it may hold a password."""
        return self._database.location

    @property
    def max_bytes(self) -> int:
        """Beyond this the runs used longest ago go."""
        return self._max_bytes

    def num_bytes(self) -> int:
        """Room that is taken, in bytes of specs, points and results."""
        return self._database.do(total_bytes)

    def try_to_write(self) -> None:
        """Write something, and take it away again.

        Raises:
            InvalidInput: when that is not possible, or the disk of a SQLite file is as good as full.
        """

        def write(connection: sa.Connection) -> None:
            row = {"digest": "", "key": "", "found": 0.0, "bytes": 0, "json": ""}
            connection.execute(sa.insert(SET_ASIDE).values(row))
            connection.execute(sa.delete(SET_ASIDE).where(SET_ASIDE.c.digest == ""))

        if time.monotonic() - self._written_at > TRY_EVERY_S:  # anybody may ask, again and again
            self._database.do(write)
            self._database.check_disk()
            self._written_at = time.monotonic()

    def points(self, spec: Spec) -> StoredPoints:
        """Where the finished points of ``spec`` are kept between runs; it counts as being computed from now on."""
        return StoredPoints(self, spec)

    def save_spec(self, spec: Spec) -> None:
        """Remember ``spec``, so that :meth:`spec` finds it by its digest."""
        self._database.do(lambda connection: _insert_run(connection, spec))

    def save_result(self, result: Result) -> None:
        """Keep a result under its spec's digest; a completed one is not replaced by one that is not."""
        self._save(result, imported=False)

    def import_run(self, spec: Spec, points: Mapping[str, PointValue], result: Result | None) -> None:
        """Keep what came from a file, marked so; intact points and completed results that are here already stay."""
        if result is not None:
            self._save(result, imported=True)
        stored = StoredPoints(self, spec, imported=True)
        for key, point in points.items():
            stored.save(key, point)

    def result(self, run: str) -> Result | None:
        """The result saved under this digest; None when there is none or it or one of its points is damaged."""
        row = self._database.do(lambda connection: connection.execute(sa.select(RUNS).where(_of(run))).one_or_none())
        if row is None or row.ending is None:
            return None
        spec = intact_spec(run, row.spec)
        ending = intact(ENDING, row.ending, row.sha, f"result {run[:16]}")
        points = self._intact_points(run) if spec and ending else {}
        found = result_of(spec, ending, points) if spec and ending else None
        if found is None:
            warn(f"result {run[:16]}")
            self._database.do(lambda connection: _set_ending_aside(connection, run, row.ending, row.sha))
        else:
            self._touch(run)
        return found

    def points_of(self, run: str) -> dict[str, PointValue]:
        """The intact points of the run with this digest by key, to look at; it does not count as being computed."""
        return self._intact_points(run)

    def runtimes(self, run: str) -> dict[str, float]:
        """Seconds that each point of the run with this digest took, by key; points are not checked for damage."""
        query = sa.select(POINTS.c.key, POINTS.c.json).where(_of(run, POINTS))
        rows = self._database.do(lambda connection: connection.execute(query).all())
        found = {row.key: _RUNTIME.search(row.json) for row in rows}
        return {key: float(match[1]) for key, match in found.items() if match}

    def spec(self, prefix: str) -> Spec | None:
        """The one spec whose digest begins with ``prefix`` (at least 16 hexadecimal digits), else None."""
        found = self.find(prefix) if len(prefix) >= MIN_PREFIX else ()
        if len(found) != 1:
            return None
        text = self._database.do(lambda connection: connection.scalar(sa.select(RUNS.c.spec).where(_of(found[0]))))
        return None if text is None else intact_spec(found[0], text)

    def find(self, prefix: str) -> tuple[str, ...]:
        """Digests that begin with ``prefix``, ten at most; none for anything but hexadecimal digits."""
        if not 1 <= len(prefix) <= 64 or not _HEX.issuperset(prefix):
            return ()
        begins = (RUNS.c.digest >= prefix) & (RUNS.c.digest < prefix + "g") & (RUNS.c.schema_version == SCHEMA_VERSION)
        query = sa.select(RUNS.c.digest).where(begins).order_by(RUNS.c.digest).limit(10)
        return tuple(self._database.do(lambda connection: connection.scalars(query).all()))

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
        """The runs that are kept, those used last first.

        Args:
            text: words that must all occur in the digest, the experiment, the settings, or what is written on the run.
            marked: digest → what is written on it.
            visible: the first 16 digits, or more, of private runs that may be shown; all when None.
            limit, offset: which of them.
        """
        wanted = conditions(experiment, status, text, visible, marked or {}, only_favorites=only_favorites)
        count = sa.select(sa.func.count()).select_from(RUNS).where(*wanted)
        query = sa.select(*LISTED).where(*wanted).order_by(RUNS.c.used.desc(), RUNS.c.digest)
        page = query.limit(limit).offset(offset)
        total, rows = self._database.do(lambda connection: (connection.scalar(count), connection.execute(page).all()))
        return RunList(tuple(stored_run(row) for row in rows), int(total or 0))

    def listed(self, run: str) -> StoredRun | None:
        """The line of the list for this digest; None when there is no such run."""
        query = sa.select(*LISTED).where(RUNS.c.digest == run).order_by(RUNS.c.schema_version.desc()).limit(1)
        row = self._database.do(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else stored_run(row)

    def marks(self) -> dict[str, Mark]:
        """Digest → what people have written on that run."""
        return self._database.do(marks)

    def write_mark(self, run: str, mark: Mark) -> None:
        """Write this on a run, in place of what was there."""
        self._database.do(lambda connection: write_mark(connection, run, mark))

    def delete(self, run: str) -> None:
        """Forget the run with this digest and its points."""

        def delete(connection: sa.Connection) -> None:
            for table in (RUNS, POINTS, SET_ASIDE, MARKS):
                connection.execute(sa.delete(table).where(table.c.digest == run))

        self._database.do(delete)
        self._database.give_back_space()

    def lock_for_server(self) -> None:
        """Let no other server use this SQLite file until :meth:`close`; raises ``InvalidInput`` when one does."""
        self._database.lock_for_server()

    def ledger(self) -> Ledger:
        """The unfinished jobs of one more server that computes for this store."""
        return Ledger(self._database)

    def unfinished_jobs(self) -> tuple[ListedJob, ...]:
        """The jobs of all servers of this store that wait or run, the oldest first."""
        return unfinished_jobs(self._database)

    def end_job(self, run: str) -> None:
        """Ask the server whose job this digest is to end it; it does so within seconds."""
        ask_to_end(self._database, run)

    def note_stopped(self, spec: Spec, result: Result | None) -> None:
        """The server has stopped this run; ``result`` holds its finished points, None where there are none."""
        if result is not None:
            self.save_result(result)
            return
        change = sa.update(RUNS).where(_of(digest(spec)), RUNS.c.status != "completed")
        self._database.do(lambda connection: connection.execute(change.values(status="stopped", busy_until=0.0)))

    def close(self) -> None:
        """Close the connections; the store opens new ones when it is used again."""
        self._database.close()

    def _save(self, result: Result, *, imported: bool) -> None:
        run = digest(result.spec)
        text = ending_of(result).model_dump_json()

        def save(connection: sa.Connection) -> None:
            _insert_run(connection, result.spec, imported=imported)
            _lock(connection, run)
            new = [_save_point(connection, run, point.key, point) for point in result.points]
            if imported and any(new):
                connection.execute(sa.update(RUNS).where(_of(run)).values(imported=True))
            old = sa.func.coalesce(sa.func.length(RUNS.c.ending), 0)
            ended: dict[str, Any] = {
                "status": result.status,
                "ending": text,
                "sha": sha(text),
                "bytes": RUNS.c.bytes - old + len(text),
            }
            change = sa.update(RUNS).where(_of(run))
            if result.status != "completed" or imported:
                change = change.where(RUNS.c.status != "completed")
            if imported:  # the run may be going on here
                change = change.where(RUNS.c.ending.is_(None) | (result.status == "completed"))
            else:
                ended["busy_until"] = 0.0
            connection.execute(change.values(used=time.time(), **ended))

        self._database.do(save)
        self._make_room(run)

    def _intact_points(self, run: str) -> dict[str, PointValue]:
        """The intact points by key; damaged ones are set aside, so that they are computed again."""
        query = sa.select(POINTS).where(_of(run, POINTS))
        rows = self._database.do(lambda connection: connection.execute(query).all())
        found = {row.key: intact(POINT, row.json, row.sha, f"point {row.key} of {run[:16]}") for row in rows}
        damaged = [row for row in rows if found[row.key] is None]

        def set_aside(connection: sa.Connection) -> None:
            _lock(connection, run)
            _set_points_aside(connection, run, damaged)

        if damaged:
            self._database.do(set_aside)
        return {key: point for key, point in found.items() if point is not None}

    def _touch(self, run: str) -> None:
        """Note that a run is used; what is read must not fail when this cannot be written."""
        now = time.time()
        used = sa.update(RUNS).where(_of(run), RUNS.c.used < now - TOUCH_S).values(used=now)
        with contextlib.suppress(InvalidInput):
            self._database.do(lambda connection: connection.execute(used))

    def _make_room(self, spared: str) -> None:
        if self._database.do(lambda connection: evict(connection, self._max_bytes, spared)):
            self._database.give_back_space()


class StoredPoints:
    """The finished points of one run in a :class:`Store`."""

    def __init__(self, store: Store, spec: Spec, *, imported: bool = False):
        self._store, self._spec, self._run, self._imported = store, spec, digest(spec), imported
        self._lease_s = 0.0 if imported else LEASE_S
        store._database.do(self._begin)

    def finished(self) -> dict[str, PointValue]:
        """The intact points by key; damaged ones are left out, so that they are computed again."""
        return self._store._intact_points(self._run)

    def save(self, key: str, point: Point) -> None:
        """Keep a point durably; an intact one of that key stays as it is."""

        def save(connection: sa.Connection) -> None:
            self._begin(connection)  # it may have been deleted meanwhile
            if _save_point(connection, self._run, key, point) and self._imported:
                connection.execute(sa.update(RUNS).where(_of(self._run)).values(imported=True))

        self._store._database.do(save)
        self._store._make_room(self._run)

    def _begin(self, connection: sa.Connection) -> None:
        _insert_run(connection, self._spec, imported=self._imported)
        _lock(connection, self._run)
        now = time.time()
        due = (RUNS.c.busy_until < now + self._lease_s / 2) | (RUNS.c.used < now - TOUCH_S)
        busy = {"used": now} if self._imported else {"used": now, "busy_until": now + self._lease_s}
        connection.execute(sa.update(RUNS).where(_of(self._run), RUNS.c.status != "completed", due).values(busy))


def _set_older_aside(connection: sa.Connection) -> int:
    """Mark the runs of earlier schema versions; how many were not marked before."""
    older = (RUNS.c.schema_version < SCHEMA_VERSION) & (RUNS.c.status != OLDER)
    if connection.scalar(sa.select(sa.exists().where(older))):  # looking takes no lock
        return connection.execute(sa.update(RUNS).where(older).values(status=OLDER)).rowcount
    return 0


def _of(run: str, table: sa.Table = RUNS) -> sa.ColumnElement[bool]:
    return (table.c.digest == run) & (table.c.schema_version == SCHEMA_VERSION)


def _lock(connection: sa.Connection, run: str) -> None:
    """Who writes points of a run holds its row first: in Postgres two writers would else wait for each other."""
    connection.execute(sa.select(RUNS.c.digest).where(_of(run)).with_for_update()).all()


def _insert_run(connection: sa.Connection, spec: Spec, *, imported: bool = False) -> None:
    """A row for this spec, unless it has one; one that is damaged is repaired."""
    text, now = canonical_json(spec), time.time()
    run: dict[str, Any] = {
        "digest": digest(spec),
        "schema_version": SCHEMA_VERSION,
        "experiment": spec.experiment,
        "swept": swept_words(spec),
        "private": spec.is_private,
        "spec": text,
    }
    begun = {"status": "started", "num_points": 0, "ending": None, "sha": None, "busy_until": 0.0, "bytes": len(text)}
    if not insert_once(connection, RUNS, run | begun | {"imported": imported, "created": now, "used": now}):
        connection.execute(sa.update(RUNS).where(_of(run["digest"]), RUNS.c.spec != text).values(run))


def _save_point(connection: sa.Connection, run: str, key: str, point: PointValue) -> bool:
    """Whether it was new, or the one that was there was damaged."""
    text = point.model_dump_json()
    row = {"digest": run, "schema_version": SCHEMA_VERSION, "key": key, "json": text, "sha": sha(text)}
    if not insert_once(connection, POINTS, row):
        kept = connection.execute(sa.select(POINTS).where(_of(run, POINTS), POINTS.c.key == key)).one()
        if intact(POINT, kept.json, kept.sha, f"point {key} of {run[:16]}") is not None:
            return False
        _set_points_aside(connection, run, [kept])
        insert_once(connection, POINTS, row)
    grown = {"num_points": RUNS.c.num_points + 1, "bytes": RUNS.c.bytes + len(text)}
    connection.execute(sa.update(RUNS).where(_of(run)).values(grown))
    return True


def _set_points_aside(connection: sa.Connection, run: str, rows: Collection[sa.Row[tuple[object, ...]]]) -> None:
    for row in rows:
        same = sa.and_(_of(run, POINTS), POINTS.c.key == row.key, POINTS.c.sha == row.sha)
        if connection.execute(sa.delete(POINTS).where(same)).rowcount:
            _set_aside(connection, run, row.key, row.json)
            shrunk = {"num_points": RUNS.c.num_points - 1, "bytes": RUNS.c.bytes - len(row.json)}
            connection.execute(sa.update(RUNS).where(_of(run)).values(shrunk))


def _set_ending_aside(connection: sa.Connection, run: str, text: str, found_sha: str) -> None:
    damaged = {"status": "damaged", "ending": None, "sha": None, "bytes": RUNS.c.bytes - len(text)}
    if connection.execute(sa.update(RUNS).where(_of(run), RUNS.c.sha == found_sha).values(damaged)).rowcount:
        _set_aside(connection, run, "", text)


def _set_aside(connection: sa.Connection, run: str, key: str, text: str) -> None:
    row = {"digest": run, "key": key, "found": time.time(), "bytes": len(text), "json": text}
    connection.execute(sa.insert(SET_ASIDE).values(row))
