"""Results by digest: finished points are durable at once, damaged entries are set aside and recomputed. Free of JAX.

``LINEARITY_LAB_STORE`` is the path of a SQLite file (not on a network file system) or the SQLAlchemy URL of a database;
by default a file in the user's data directory. Several threads and processes may read and write one store.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from ntk_core.errors import InvalidInput
from ntk_core.places import data_directory, private_directory
from ntk_core.results import Point, Result
from ntk_core.specs import SCHEMA_VERSION, InvalidSpec, Spec, canonical_json, digest, parse_spec

VARIABLE = "LINEARITY_LAB_STORE"
MIN_PREFIX = 16
_HEX = frozenset("0123456789abcdef")
_LOG = logging.getLogger(__name__)
_POINT: TypeAdapter[Point] = TypeAdapter(Point)
_RESULT: TypeAdapter[Result] = TypeAdapter(Result)
_T = TypeVar("_T")

_TABLES = sa.MetaData()
_RUNS = sa.Table(
    "runs",
    _TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("result", sa.Text),
    sa.Column("sha", sa.String(64)),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("used", sa.Float, nullable=False, index=True),
)
_POINTS = sa.Table(
    "points",
    _TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("json", sa.Text, nullable=False),
    sa.Column("sha", sa.String(64), nullable=False),
)


@dataclass(frozen=True)
class StoredRun:
    """One line of :meth:`Store.recent`.

    Attributes:
        status: ``started`` until a result is saved, then the result's status.
        created, used: seconds since 1970.
        num_points: finished points.
    """

    digest: str
    spec: Spec
    status: str
    created: float
    used: float
    num_points: int


class Store:
    """Specs, finished points and results in a database.

    Args:
        location: path of a SQLite file or SQLAlchemy URL; by default as ``LINEARITY_LAB_STORE`` says.
        busy_timeout_s: how long a writer waits for another one (SQLite).

    Raises:
        InvalidInput: when the database cannot be opened for writing; also by every method, when it stops working.
    """

    def __init__(self, location: str | Path | None = None, *, busy_timeout_s: float = 30.0):
        given = str(location or os.environ.get(VARIABLE) or "")
        self._shown = given
        try:
            self._url = _url(given)
            self._shown = self._url.render_as_string(hide_password=True)
            self._engine = _engine(self._url, busy_timeout_s)
            self._do(_create_tables)
        except InvalidInput:
            raise
        except (sa.exc.SQLAlchemyError, OSError, RuntimeError, ValueError, ImportError) as error:
            raise self._unusable(error) from None

    @property
    def location(self) -> str:
        """With this another process opens the same store; it may hold a password."""
        if self._url.get_backend_name() == "sqlite":
            return str(self._url.database)
        return self._url.render_as_string(hide_password=False)

    def points(self, spec: Spec) -> StoredPoints:
        """Where the finished points of ``spec`` are kept between runs."""
        self.save_spec(spec)
        return StoredPoints(self, digest(spec))

    def save_spec(self, spec: Spec) -> None:
        """Remember ``spec``, so that :meth:`spec` finds it by its digest."""
        text, now = canonical_json(spec), time.time()
        run = {
            "digest": digest(spec),
            "schema_version": SCHEMA_VERSION,
            "spec": text,
            "status": "started",
            "result": None,
        }
        damaged = (_RUNS.c.digest == run["digest"]) & (_RUNS.c.spec != text)

        def insert_or_repair(connection: sa.Connection) -> None:
            if not _insert_once(connection, _RUNS, run | {"created": now, "used": now}):
                connection.execute(sa.update(_RUNS).where(damaged).values(run))

        self._do(insert_or_repair)

    def save_result(self, result: Result) -> None:
        """Keep a result under its spec's digest; a completed one is not replaced by one that is not."""
        text = result.model_dump_json()
        values = {"status": result.status, "result": text, "sha": _sha(text), "used": time.time()}
        change = sa.update(_RUNS).where(_RUNS.c.digest == digest(result.spec)).values(values)
        if result.status != "completed":
            change = change.where(_RUNS.c.status != "completed")
        self.save_spec(result.spec)
        self._do(lambda connection: connection.execute(change))

    def result(self, run: str) -> Result | None:
        """The result saved under this digest; None when there is none or it is damaged."""
        row = self._do(
            lambda connection: connection.execute(sa.select(_RUNS).where(_RUNS.c.digest == run)).one_or_none()
        )
        if row is None or row.result is None:
            return None
        found = _intact(_RESULT, row.result, row.sha, f"result {run[:16]}")
        if found is not None:
            used = sa.update(_RUNS).where(_RUNS.c.digest == run).values(used=time.time())
            self._do(lambda connection: connection.execute(used))
        return found

    def spec(self, prefix: str) -> Spec | None:
        """The one spec whose digest begins with ``prefix`` (at least 16 hexadecimal digits), else None."""
        if not MIN_PREFIX <= len(prefix) <= 64 or not _HEX.issuperset(prefix):
            return None
        query = sa.select(_RUNS).where(_RUNS.c.digest >= prefix, _RUNS.c.digest < prefix + "g").limit(2)
        rows = self._do(lambda connection: connection.execute(query).all())
        return _intact_spec(rows[0].digest, rows[0].spec) if len(rows) == 1 else None

    def recent(self, limit: int = 50) -> tuple[StoredRun, ...]:
        """The runs used last, newest first."""
        count = sa.select(sa.func.count()).where(_POINTS.c.digest == _RUNS.c.digest).scalar_subquery()
        query = sa.select(_RUNS, count.label("num_points")).order_by(_RUNS.c.used.desc(), _RUNS.c.digest).limit(limit)
        rows = self._do(lambda connection: connection.execute(query).all())
        found = ((row, _intact_spec(row.digest, row.spec)) for row in rows)
        return tuple(
            StoredRun(row.digest, spec, row.status, row.created, row.used, row.num_points)
            for row, spec in found
            if spec is not None
        )

    def delete(self, run: str) -> None:
        """Forget the run with this digest and its points."""

        def delete(connection: sa.Connection) -> None:
            for table in (_RUNS, _POINTS):
                connection.execute(sa.delete(table).where(table.c.digest == run))

        self._do(delete)

    def close(self) -> None:
        """Close the connections; the store opens new ones when it is used again."""
        self._engine.dispose()

    def _do(self, work: Callable[[sa.Connection], _T]) -> _T:
        """``work`` in one transaction; a damaged SQLite file is set aside and ``work`` tried again in a new one."""
        seen = _inode(self._url)
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except sa.exc.DBAPIError as error:
            if not _damaged(error):
                raise self._unusable(error) from None
        try:
            self._set_file_aside(seen)
            with self._engine.begin() as connection:
                _create_tables(connection)
                return work(connection)
        except (sa.exc.DBAPIError, OSError) as error:
            raise self._unusable(error) from None

    def _set_file_aside(self, seen: int | None) -> None:
        self._engine.dispose()
        if _inode(self._url) != seen:  # another process has set it aside already
            return
        file = Path(str(self._url.database))
        aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
        _LOG.warning("The results store %s is damaged; it is kept as %s and a new one is begun.", file, aside.name)
        for suffix in ("", "-wal", "-shm"):
            if Path(f"{file}{suffix}").exists():
                os.replace(f"{file}{suffix}", f"{aside}{suffix}")

    def _unusable(self, error: BaseException) -> InvalidInput:
        cause = getattr(error, "orig", None) or error
        reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        return InvalidInput(
            VARIABLE,
            self._shown,
            f"a path or SQLAlchemy URL of a database that can be read and written (here: {reason})",
        )


class StoredPoints:
    """The finished points of one run in a :class:`Store`."""

    def __init__(self, store: Store, run: str):
        self._store, self._run = store, run

    def finished(self) -> dict[str, Point]:
        """The intact points by key; damaged ones are left out, so that they are computed again."""
        query = sa.select(_POINTS).where(_POINTS.c.digest == self._run)
        rows = self._store._do(lambda connection: connection.execute(query).all())
        found = {row.key: _intact(_POINT, row.json, row.sha, f"point {row.key} of {self._run[:16]}") for row in rows}
        return {key: point for key, point in found.items() if point is not None}

    def save(self, key: str, point: Point) -> None:
        """Keep a point durably; an intact one of that key stays as it is."""
        text = point.model_dump_json()
        row = {"digest": self._run, "key": key, "json": text, "sha": _sha(text)}
        same = (_POINTS.c.digest == self._run) & (_POINTS.c.key == key)

        def insert_or_repair(connection: sa.Connection) -> None:
            if _insert_once(connection, _POINTS, row):
                return
            kept = connection.execute(sa.select(_POINTS).where(same)).one()
            if _intact(_POINT, kept.json, kept.sha, f"point {key} of {self._run[:16]}") is None:
                connection.execute(sa.update(_POINTS).where(same).values(row))

        self._store._do(insert_or_repair)


def _url(given: str) -> sa.URL:
    """The database that ``given`` names; directories that SQLite needs are made."""
    if "://" in given:
        url = sa.make_url(given)
        if url.get_backend_name() != "sqlite" or not url.database:
            return url
        file = Path(url.database)
    elif given:
        url, file = sa.URL.create("sqlite"), Path(given).expanduser()
    else:
        url, file = sa.URL.create("sqlite"), private_directory(data_directory()) / "results.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return url.set(database=str(file.resolve()))


def _engine(url: sa.URL, busy_timeout_s: float) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout_s})

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        _use_wal(connection, busy_timeout_s)
        connection.text_factory = lambda text: text.decode(
            "utf-8", "replace"
        )  # a damaged text must not stop its neighbors
        connection.execute("PRAGMA synchronous=FULL")  # in WAL mode the default may lose the last points with the power

    return engine


def _use_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    # The first change to WAL does not wait for other connections by itself.
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _create_tables(connection: sa.Connection) -> None:
    for table in _TABLES.sorted_tables:
        connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        for index in table.indexes:
            connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))


def _insert_once(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Insert ``row`` unless its key is there; whether it was inserted."""
    dialect = connection.dialect.name
    if dialect == "sqlite":
        return connection.execute(sqlite.insert(table).values(row).on_conflict_do_nothing()).rowcount > 0
    if dialect == "postgresql":
        return connection.execute(postgresql.insert(table).values(row).on_conflict_do_nothing()).rowcount > 0
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(row))
    except sa.exc.IntegrityError:
        return False
    return True


def _intact(adapter: TypeAdapter[_T], text: str, sha: str | None, name: str) -> _T | None:
    if isinstance(text, str) and _sha(text) == sha:
        try:
            return adapter.validate_json(text)
        except ValidationError:
            pass
    _LOG.warning("The stored %s is damaged or of an older version; it is left aside.", name)
    return None


def _intact_spec(run: str, text: str) -> Spec | None:
    try:
        spec = parse_spec(text)
    except InvalidSpec:
        spec = None
    if spec is None or digest(spec) != run:
        _LOG.warning("The stored spec %s is damaged or of an older version; it is left aside.", run[:16])
        return None
    return spec


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _damaged(error: sa.exc.DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _inode(url: sa.URL) -> int | None:
    try:
        return os.stat(url.database or "").st_ino if url.get_backend_name() == "sqlite" else None
    except OSError:
        return None
