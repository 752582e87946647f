"""Open a database, SQLite or another by URL; run transactions; refuse foreign files."""

import contextlib
import functools
import logging
import os
import shutil
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from filelock import FileLock, Timeout
from sqlalchemy.dialects import postgresql, sqlite

from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput

VARIABLE = "LINEARITY_LAB_STORE"
MIN_FREE_BYTES = 20 * 2**20  # a few points
APPLICATION_ID = int.from_bytes(b"LLab")  # in the header of every SQLite file of this lab
LAYOUT = 3  # of the tables; its user_version
_HEADER_BYTES = 100  # https://www.sqlite.org/fileformat2.html, section 1.3: user_version at 60, application_id at 68
# Other errors have other causes: the file is busy, the disk is full or fails, or access is denied.
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Database:
    """Transactions on the tables of the store.

    Args:
        given: path of a SQLite file or SQLAlchemy URL; a file in the user's data directory when empty.
        busy_timeout_s: how long a writer waits for another one (SQLite).

    Raises:
        InvalidInput: if the database cannot be opened for writing, or its file belongs to another program; also by
            :meth:`do`, if the database stops working.
    """

    def __init__(self, given: str, busy_timeout_s: float):
        self._shown = given
        try:
            self._url = _url(given)
            self._shown = self._url.render_as_string(hide_password=True)
            self._file = (
                Path(str(self._url.database)) if self._url.get_backend_name() == "sqlite" else None
            )
            self._engine = _engine(self._url, busy_timeout_s)
            self._server_lock = FileLock(f"{self._file}.lock", timeout=0, thread_local=False)
            self._file_lock = FileLock(
                f"{self._file}.open.lock", timeout=busy_timeout_s
            )  # to create or rename it
            # close connections even if the store is never closed
            weakref.finalize(self, self._engine.dispose).atexit = False
            self._begin()
        except InvalidInput:
            raise
        except (
            sa.exc.SQLAlchemyError,
            sqlite3.Error,
            OSError,
            RuntimeError,
            ValueError,
            ImportError,
        ) as error:
            raise self._unusable(error) from None

    @property
    def location(self) -> str:
        """Path or URL for another process to open the same database; may contain a password."""
        return str(self._file) if self._file else self._url.render_as_string(hide_password=False)

    def do(self, work: Callable[[sa.Connection], _T]) -> _T:
        """Run ``work`` in one transaction; if the SQLite file is damaged, move it away and repeat in a new one."""
        is_repeated = False
        while True:
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except (
                sa.exc.DBAPIError,
                UnicodeDecodeError,
            ) as error:  # the latter from a damaged schema
                if is_repeated or not self._set_aside_if_damaged(error):
                    raise self._unusable(error) from None
                is_repeated = True

    def lock_for_server(self) -> None:
        """Lock the SQLite file against other servers until :meth:`close` or the end of this process.

        Raises:
            InvalidInput: if another server uses it.
        """
        if self._file and not self._server_lock.is_locked:
            try:
                self._server_lock.acquire()
            except Timeout:
                raise InvalidInput(
                    VARIABLE, self._shown, "a file that no other running server uses"
                ) from None
            except OSError as error:
                raise self._unusable(error) from None

    def check_disk(self) -> None:
        """Check that the SQLite file exists and its disk has MIN_FREE_BYTES left."""
        if self._file is None:
            return
        if not self._file.exists():
            raise self._unusable(OSError("the file was deleted; restart the server"))
        free = shutil.disk_usage(self._file.parent).free
        if free < MIN_FREE_BYTES:
            raise self._unusable(OSError(f"{free:,} bytes are left on its disk"))

    def close(self) -> None:
        """Close the connections, which open again when needed, and release the server's lock."""
        self._engine.dispose()
        self._server_lock.release()

    def _begin(self) -> None:
        """Create the SQLite file with our mark and missing tables; refuse files of other programs."""
        if self._file is None:
            return self.do(create_tables)
        if _is_empty(self._file) or _is_ours(self._file):
            with self._file_lock:
                if _is_empty(self._file):
                    _create(self._file)
                elif not _has_our_layout(self._file):
                    self._set_aside(self._file)
                return self.do(create_tables)
        allowed = "a new file, or a results file of this lab; this file was left as it is"
        raise InvalidInput(VARIABLE, self._shown, allowed)

    def _set_aside_if_damaged(self, error: Exception) -> bool:
        """Replace our damaged file by a new one; return whether it was replaced, here or by another process."""
        code = (
            getattr(getattr(error, "orig", None), "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        )
        if self._file is None or code not in _DAMAGE:
            return False
        with contextlib.suppress(OSError, Timeout), self._file_lock:
            self._engine.dispose()
            if _is_ours(self._file) and _is_damaged(self._file):
                self._set_aside(self._file)
            self._begin()
            return True
        return False

    def _set_aside(self, file: Path) -> None:
        aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
        why = "damaged, or of an earlier version"
        _LOG.warning(
            "The results in %s are %s; they are kept as %s, and a new file is created.",
            file,
            why,
            aside,
        )
        for suffix in ("", "-wal", "-shm"):
            if Path(f"{file}{suffix}").exists():
                os.replace(f"{file}{suffix}", f"{aside}{suffix}")
        _create(file)

    def _unusable(self, error: BaseException) -> InvalidInput:
        cause = getattr(error, "orig", None) or error
        reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        name = getattr(cause, "sqlite_errorname", type(cause).__name__)
        _LOG.error(
            "The results store cannot be used: %s",
            reason,
            extra={"facts": {"cause": f"{name}: {reason}"}},
        )
        allowed = (
            f"a path or SQLAlchemy URL of a database that can be read and written (here: {reason})"
        )
        return InvalidInput(VARIABLE, self._shown, allowed)


def _is_empty(file: Path) -> bool:
    return not file.exists() or file.stat().st_size == 0


def _create(file: Path) -> None:
    """Create a SQLite file with our mark."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "BEGIN"
        )  # one commit: another process finds the file empty, or with our mark
        connection.execute("PRAGMA auto_vacuum=FULL")  # the file shrinks when rows are deleted
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={LAYOUT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")


def _header(file: Path) -> bytes:
    """Return the first bytes of a file, read by a descriptor that stays open.

    On POSIX systems, closing any descriptor of a file releases all locks of the process on it, including SQLite's.
    Another process could then delete the write-ahead log while it is in use.
    """
    if os.name != "posix":
        with file.open("rb") as stream:
            return stream.read(_HEADER_BYTES)
    status = file.stat()
    return os.pread(_descriptor(file, status.st_dev, status.st_ino), _HEADER_BYTES, 0)


@functools.cache
def _descriptor(file: Path, _device: int, _inode: int) -> int:
    return os.open(file, os.O_RDONLY)


def _is_ours(file: Path) -> bool:
    return int.from_bytes(_header(file)[68:72]) == APPLICATION_ID


def _has_our_layout(file: Path) -> bool:
    header = _header(
        file
    )  # other versions in bytes 18 and 19 make SQLite treat a file as read-only or unknown
    return {1, 2}.issuperset(header[18:20]) and int.from_bytes(header[60:64]) == LAYOUT


def _is_damaged(file: Path) -> bool:
    """Return whether SQLite cannot read or write the file, or a table lacks a column."""
    if not _has_our_layout(file):
        return True
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        ) as connection:
            for table in TABLES.sorted_tables:
                connection.execute(
                    f"SELECT {', '.join(table.columns.keys())} FROM {table.name} LIMIT 0"
                )
            return connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",)
    except UnicodeDecodeError:  # in the name of a table
        return True
    except sqlite3.Error as error:
        return (getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF) in _DAMAGE


def _url(given: str) -> sa.URL:
    """Return the URL of the database ``given``; create the directory of a SQLite file."""
    if "://" in given:
        url = sa.make_url(given)
        if url.drivername in (
            "postgresql",
            "postgres",
        ):  # the usual form; SQLAlchemy would select psycopg2 for it
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() != "sqlite" or not url.database:
            return url
        file = Path(url.database)
    else:
        url = sa.URL.create("sqlite")
        file = (
            Path(given).expanduser()
            if given
            else private_directory(data_directory()) / "runs.sqlite"
        )
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return url.set(database=str(file.resolve()))


def _engine(url: sa.URL, busy_timeout_s: float) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout_s})

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.text_factory = lambda text: text.decode(
            "utf-8", "replace"
        )  # a damaged text affects only its row
        connection.execute(
            "PRAGMA synchronous=FULL"
        )  # the default in WAL mode may lose points at a power failure

    return engine


TABLES = sa.MetaData()
# Large texts are the last columns, so SQLite lists rows without reading them.
RUNS = sa.Table(
    "lab_results",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("experiment", sa.String(40), nullable=False),
    sa.Column("swept", sa.String(200), nullable=False),
    sa.Column("status", sa.String(16), nullable=False, default="started"),
    sa.Column("private", sa.Boolean, nullable=False),
    sa.Column("imported", sa.Boolean, nullable=False, default=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("used", sa.Float, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),  # of the spec
    sa.Column("name", sa.Text, nullable=False, default=""),
    sa.Column("note", sa.Text, nullable=False, default=""),
    sa.Column("favorite", sa.Boolean, nullable=False, default=False),
    sa.Column(
        "ending", sa.Text, nullable=False, default=""
    ),  # of its result, in JSON; empty before
    sa.Column("spec", sa.Text, nullable=False),
    sa.Index("lab_results_by_use", "used", "bytes"),
)
POINTS = sa.Table(
    "lab_points",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("json", sa.Text, nullable=False),
    sa.Index("lab_points_by_run", "digest", "bytes"),
)
# Large arrays of a point, as an npz archive beside its JSON.
ARRAYS = sa.Table(
    "lab_arrays",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(200), primary_key=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("npz", sa.LargeBinary, nullable=False),
    sa.Index("lab_arrays_by_run", "digest", "bytes"),
)
# Visitors of shared servers who started a run.
OWNERS = sa.Table(
    "lab_owners",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Index("lab_owners_by_owner", "owner"),
)
JOBS = sa.Table(
    "lab_jobs",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("server", sa.Text, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("submitted", sa.Float, nullable=False),
    sa.Column("running", sa.Boolean, nullable=False),
    sa.Column("spent", sa.Float, nullable=False),
    sa.Column("allowed", sa.Float),
    sa.Column("ending", sa.Boolean, nullable=False),
)
_LOCK = 7_224_711_036  # any number that other programs are unlikely to lock in the same database


def create_tables(connection: sa.Connection) -> None:
    """Create missing tables; safe for several processes at the same time."""
    alone(connection)
    TABLES.create_all(connection)


def alone(connection: sa.Connection) -> None:
    """Serialize transactions in Postgres, as SQLite always does for writers."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def insert(
    connection: sa.Connection,
    table: sa.Table,
    row: Mapping[str, object],
    update: Collection[str] = (),
) -> None:
    """Insert ``row``; if its key exists, update these columns, if any."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table).values(row)
    if update:
        statement = statement.on_conflict_do_update(
            index_elements=table.primary_key, set_={n: row[n] for n in update}
        )
    else:
        statement = statement.on_conflict_do_nothing()
    connection.execute(statement)
