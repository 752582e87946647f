"""One database, SQLite or another one by URL: transactions that wait for each other, damaged files set aside."""

import contextlib
import logging
import os
import shutil
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from ntk_core.environment import data_directory, private_directory
from ntk_core.errors import InvalidInput
from ntk_core.runs.store._damage import is_broken
from ntk_core.runs.store._tables import create_tables

VARIABLE = "LINEARITY_LAB_STORE"
MIN_FREE_BYTES = 20 * 2**20  # a few points
# Others use it, the disk is full or fails, it may not be opened or written: setting it aside would not help.
_NOT_THE_FILE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
)
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Database:
    """Transactions on the tables of the store.

    Args:
        given: path of a SQLite file or SQLAlchemy URL; a file in the user's data directory when empty.
        busy_timeout_s: how long a writer waits for another one (SQLite).

    Raises:
        InvalidInput: when the database cannot be opened for writing; also by :meth:`do`, when it stops working.
    """

    def __init__(self, given: str, busy_timeout_s: float):
        self._shown = given
        self._inode: int | None = None
        try:
            self._url = _url(given)
            self._shown = self._url.render_as_string(hide_password=True)
            self._engine = _engine(self._url, busy_timeout_s)
            # Who lets a store go without closing it leaves no connection open.
            weakref.finalize(self, self._engine.dispose).atexit = False
            self.do(create_tables)
        except InvalidInput:
            raise
        except (sa.exc.SQLAlchemyError, OSError, RuntimeError, ValueError, ImportError) as error:
            raise self._unusable(error) from None

    @property
    def location(self) -> str:
        """With this another process opens the same database; it may hold a password."""
        if self._url.get_backend_name() == "sqlite":
            return str(self._url.database)
        return self._url.render_as_string(hide_password=False)

    def do(self, work: Callable[[sa.Connection], _T]) -> _T:
        """``work`` in one transaction; a damaged SQLite file is set aside and ``work`` tried again in a new one.

        A file that was deleted while it was open is noticed, and a new one begun, too.
        """
        seen = _inode(self._url)
        self._leave_deleted_file(seen)
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except sa.exc.DBAPIError as error:
            if not self._is_damaged(error):
                raise self._unusable(error) from None
        except (ValueError, TypeError, OverflowError) as error:  # a value that its column cannot hold
            if not self._is_damaged(error):
                raise
        try:
            self._set_file_aside(seen)
            with self._engine.begin() as connection:
                create_tables(connection)
                return work(connection)
        except (sa.exc.DBAPIError, OSError) as error:
            raise self._unusable(error) from None

    def check_disk(self) -> None:
        """Refuse to go on where the disk of a SQLite file has less than MIN_FREE_BYTES left.

        Raises:
            InvalidInput: naming the cause.
        """
        if self._url.get_backend_name() != "sqlite":
            return
        free = shutil.disk_usage(Path(str(self._url.database)).parent).free
        if free < MIN_FREE_BYTES:
            raise self._unusable(OSError(f"{free:,} bytes are left on its disk"))

    def give_back_space(self) -> None:
        """After rows have gone, let a SQLite file shrink; elsewhere the database does so by itself."""
        if self._url.get_backend_name() != "sqlite":
            return
        with contextlib.suppress(InvalidInput):  # another process writes for long: the next one gives it back
            self.do(_give_back_pages)

    def close(self) -> None:
        """Close the connections; they are opened again when needed."""
        self._engine.dispose()

    def _leave_deleted_file(self, seen: int | None) -> None:
        """Close the connections to a SQLite file that is not there, or not the same, any more."""
        if self._url.get_backend_name() != "sqlite" or seen == self._inode:
            return
        if self._inode is not None:
            self._engine.dispose()
            if seen is None:
                _LOG.error("The results store was deleted while it was in use; a new one is begun.")
                with self._engine.begin() as connection:
                    create_tables(connection)
                seen = _inode(self._url)
        self._inode = seen

    def _is_damaged(self, error: Exception) -> bool:
        """Whether it is the SQLite file that is to blame, and not who else uses it, the disk or the statement."""
        if self._url.get_backend_name() != "sqlite":
            return False
        code = getattr(getattr(error, "orig", None), "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return True
        return code not in _NOT_THE_FILE and is_broken(Path(str(self._url.database)))

    def _set_file_aside(self, seen: int | None) -> None:
        self._engine.dispose()
        self._inode = None
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
        name = getattr(cause, "sqlite_errorname", type(cause).__name__)
        _LOG.error("The results store cannot be used: %s", reason, extra={"facts": {"cause": f"{name}: {reason}"}})
        return InvalidInput(
            VARIABLE,
            self._shown,
            f"a path or SQLAlchemy URL of a database that can be read and written (here: {reason})",
        )


def _url(given: str) -> sa.URL:
    """The database that ``given`` names; directories that SQLite needs are made."""
    if "://" in given:
        url = sa.make_url(given)
        if url.drivername in ("postgresql", "postgres"):  # as most services write it; SQLAlchemy would want psycopg2
            url = url.set(drivername="postgresql+psycopg")
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
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only before the first table: a new file can shrink
        _use_wal(connection, busy_timeout_s)
        connection.text_factory = lambda text: text.decode(
            "utf-8", "replace"
        )  # a damaged text must not stop its neighbors
        connection.execute("PRAGMA synchronous=FULL")  # in WAL mode the default may lose the last points with the power

    return engine


def _give_back_pages(connection: sa.Connection) -> None:
    raw: Any = connection.connection.driver_connection
    raw.executescript("PRAGMA incremental_vacuum")  # one page per step: execute() would take a single one


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


def _inode(url: sa.URL) -> int | None:
    try:
        return os.stat(url.database or "").st_ino if url.get_backend_name() == "sqlite" else None
    except OSError:
        return None
