"""Open a database, SQLite or another by URL; run transactions; refuse foreign files."""

import contextlib
import functools
import logging
import os
import shutil
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from linearity_lab.files import data_directory, private_directory
from linearity_lab.runs.store._packages import FileLock, Timeout, postgresql, sa, sqlite
from ntk_core.errors import InvalidInput

VARIABLE = "LINEARITY_LAB_STORE"
MIN_FREE_BYTES = 20 * 2**20  # a few points
# In the header of every SQLite file of this lab. Version 0.2.0 renames files of another layout if
# they have its own mark, and refuses any other mark without touching the file; so layouts after 3
# have a mark of their own.
APPLICATION_ID = int.from_bytes(b"LLb4")
EARLIER_ID = int.from_bytes(b"LLab")  # up to layout 3
LAYOUT = 4  # of the tables; the user_version of the file
OLDEST_LAYOUT = 3  # that is migrated: version 0.2.0
# https://www.sqlite.org/fileformat2.html, section 1.3: user_version at 60, application_id at 68.
_HEADER_BYTES = 100
# Other errors have other causes: the file is busy, the disk is full or fails, or access is denied.
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_locked_here: set[Path] = set()  # files that a server in this process has locked


class Database:
    """Transactions on the tables of the store.

    Args:
        given: path of a SQLite file or SQLAlchemy URL; a file in the user's data
            directory when empty.
        busy_timeout_s: how long a writer waits for another one (SQLite).

    Raises:
        InvalidInput: if the database cannot be opened for writing, if its file belongs to another
            program or to a newer version of the lab, or if an earlier layout is in use; also by
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
            self._busy_timeout_s = busy_timeout_s
            self._server_lock = FileLock(f"{self._file}.lock", timeout=0, thread_local=False)
            # To create or rename it.
            self._file_lock = FileLock(f"{self._file}.open.lock", timeout=busy_timeout_s)
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
        """Run ``work`` in one transaction.

        If the SQLite file is damaged, move it away and repeat in a new one.
        """
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
        """Lock the SQLite file against other servers.

        The lock lasts until :meth:`close` or the end of this process.

        Raises:
            InvalidInput: if another server uses it.
        """
        if self._file and not self._server_lock.is_locked:
            try:
                self._server_lock.acquire()
                _locked_here.add(self._file)
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
        if self._server_lock.is_locked and self._file:
            _locked_here.discard(self._file)
        self._server_lock.release()

    def back_up(self, target: Path) -> int:
        """Write a consistent copy of the SQLite file, also while other processes write.

        SQLite's backup API copies all pages in one step, including those in the write-ahead log.
        Writers continue, since readers of a write-ahead log do not block them.

        Returns:
            The number of runs in the copy.

        Raises:
            InvalidInput: if the store is a database of another kind.
            OSError: if the copy cannot be written or is damaged.
        """
        if self._file is None:
            allowed = "a store in a SQLite file; pg_dump copies a database of Postgres"
            raise InvalidInput(VARIABLE, self._shown, allowed)
        try:
            _copy(self._file, target, self._busy_timeout_s)
        except sqlite3.Error as error:
            raise OSError(str(error)) from None
        with contextlib.closing(
            sqlite3.connect(f"{target.resolve().as_uri()}?mode=ro", uri=True)
        ) as copy:
            (count,) = copy.execute(f"SELECT count(*) FROM {RUNS.name}").fetchone()
        return int(count)

    def _begin(self) -> None:
        """Create or migrate the tables; refuse files of other programs and of newer versions."""
        if self._file is None:
            return self.do(self._create_or_migrate_tables)
        if not _is_empty(self._file) and not _is_ours(self._file):
            allowed = "a new file, or a results file of this lab; this file was left as it is"
            raise InvalidInput(VARIABLE, self._shown, allowed)
        with self._file_lock:
            if _is_empty(self._file):
                _create(self._file)
            else:
                self._bring_up_to_date(self._file)
            return self.do(create_tables)

    def _bring_up_to_date(self, file: Path) -> None:
        """Migrate an earlier layout; set a damaged or too old file aside; refuse a newer one."""
        header = _header(file)
        layout = _layout_in(header)
        # Other versions in bytes 18 and 19 make SQLite treat a file as read-only or unknown.
        if not {1, 2}.issuperset(header[18:20]):
            self._set_aside(file, "damaged", f"damaged-{time.time_ns()}")
        elif layout > LAYOUT:
            raise self._newer(layout)
        elif layout < OLDEST_LAYOUT:
            advice = "the version that wrote the file can export its runs"
            why = f"of layout {layout}, which this version cannot read ({advice})"
            self._set_aside(file, why, f"layout-{layout}-{time.time_ns()}")
        elif layout < LAYOUT:
            try:
                self._migrate(file, layout)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not _means_damage(error):
                    raise
                self._set_aside(file, "damaged", f"damaged-{time.time_ns()}")
        elif 1 in header[18:20]:  # a migration ended before its last step
            with contextlib.closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")

    def _migrate(self, file: Path, layout: int) -> None:
        """Copy a file of an earlier layout, then add the missing columns in one transaction.

        Raises:
            InvalidInput: if another process has the file open.
        """
        aside = file.with_name(f"{file.name}.layout-{layout}-{time.time_ns()}")
        in_use = (
            f"a file in no use, to migrate layout {layout} to {LAYOUT}; end the server of the "
            "earlier version"
        )
        with self._no_server(in_use):
            connection = sqlite3.connect(file, timeout=self._busy_timeout_s, isolation_level=None)
            with contextlib.closing(connection):
                # SQLite leaves the mode with a write-ahead log only if no other connection is open.
                try:
                    (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
                except sqlite3.OperationalError as error:
                    if _means_damage(error):
                        raise
                    raise InvalidInput(VARIABLE, self._shown, in_use) from None
                if mode != "delete":
                    raise InvalidInput(VARIABLE, self._shown, in_use)
                _copy(file, aside, self._busy_timeout_s)
                connection.text_factory = _readable_text
                engine = sa.create_engine(
                    "sqlite://", creator=lambda: connection, poolclass=sa.StaticPool
                )
                with engine.connect() as tables:
                    tables.exec_driver_sql("BEGIN EXCLUSIVE")
                    self._change_layout(tables)
                    tables.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
                    tables.exec_driver_sql(f"PRAGMA user_version={LAYOUT}")
                    tables.exec_driver_sql("COMMIT")
                connection.execute("PRAGMA journal_mode=WAL")
        _LOG.warning(
            "The results in %s were migrated from layout %d to %d; a copy of the earlier file is "
            "%s.",
            file,
            layout,
            LAYOUT,
            aside,
        )

    def _create_or_migrate_tables(self, connection: sa.Connection) -> None:
        """Create or migrate the tables of Postgres, once; refuse a newer layout."""
        alone(connection)
        layout = 0
        known = sa.inspect(connection)
        if known.has_table(_LAYOUTS.name):
            layout = int(connection.scalar(sa.select(sa.func.max(_LAYOUTS.c.layout))) or 0)
        elif known.has_table(RUNS.name):
            layout = OLDEST_LAYOUT
        if layout > LAYOUT:
            raise self._newer(layout)
        if 0 < layout < LAYOUT:
            self._change_layout(connection)
        TABLES.create_all(connection)
        _LAYOUTS.create(connection, checkfirst=True)
        insert(connection, _LAYOUTS, {"layout": LAYOUT})

    def _change_layout(self, connection: sa.Connection) -> None:
        """Bring the tables of layout 3 to this layout: new tables, columns and checksums."""
        known = sa.inspect(connection)
        for table in TABLES.sorted_tables:
            if not known.has_table(table.name):
                continue
            present = {column["name"] for column in known.get_columns(table.name)}
            for column in table.columns:
                if column.name not in present:
                    kind = column.type.compile(connection.dialect)
                    change = f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}"
                    connection.exec_driver_sql(change)
        TABLES.create_all(connection)
        self.change_rows(connection)

    def change_rows(self, connection: sa.Connection) -> None:
        """Adapt the rows of layout 3 to this layout; a subclass knows their content."""

    def _newer(self, layout: int) -> InvalidInput:
        allowed = (
            f"a store of layout {LAYOUT} or earlier. A newer version of the lab wrote layout "
            f"{layout}. The file is unchanged: update the lab, or choose another file"
        )
        return InvalidInput(VARIABLE, self._shown, allowed)

    @contextlib.contextmanager
    def _no_server(self, allowed: str) -> Iterator[None]:
        """Hold the lock of servers; refuse if a server in another process holds it."""
        if self._file in _locked_here:
            yield
            return
        try:
            self._server_lock.acquire()
        except Timeout:
            raise InvalidInput(VARIABLE, self._shown, allowed) from None
        try:
            yield
        finally:
            self._server_lock.release()

    def _set_aside_if_damaged(self, error: Exception) -> bool:
        """Replace our damaged file by a new one.

        Return whether it was replaced, here or by another process.

        Raises:
            InvalidInput: if it is damaged, and a server in another process uses it.
        """
        if self._file is None or not _means_damage(getattr(error, "orig", None) or error):
            return False
        with contextlib.suppress(OSError, Timeout), self._file_lock:
            self._engine.dispose()
            if _is_ours(self._file) and _is_damaged(self._file):
                self._set_aside(self._file, "damaged", f"damaged-{time.time_ns()}")
            self._begin()
            return True
        return False

    def _set_aside(self, file: Path, why: str, suffix: str) -> None:
        """Rename a file with its log, and create a new one.

        Raises:
            InvalidInput: if a server in another process uses it.
        """
        aside = file.with_name(f"{file.name}.{suffix}")
        in_use = (
            f"a file that can be read: this one is {why}, and a running server uses it; "
            "restart that server"
        )
        with self._no_server(in_use):
            for part in ("", "-wal", "-shm"):
                if Path(f"{file}{part}").exists():
                    os.replace(f"{file}{part}", f"{aside}{part}")
            _create(file)
        _LOG.warning(
            "The results in %s are %s; they are kept as %s, and a new file is created.",
            file,
            why,
            aside,
        )

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
        # One commit: another process finds the file empty, or with our mark.
        connection.execute("BEGIN")
        connection.execute("PRAGMA auto_vacuum=FULL")  # the file shrinks when rows are deleted
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={LAYOUT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode=WAL")


def _header(file: Path) -> bytes:
    """Return the first bytes of a file, read by a descriptor that stays open.

    On POSIX systems, closing any descriptor of a file releases all locks of the process on it,
    including SQLite's. Another process could then delete the write-ahead log while it is in use.
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
    return int.from_bytes(_header(file)[68:72]) in (APPLICATION_ID, EARLIER_ID)


def _layout_in(header: bytes) -> int:
    """Return the layout of the tables from the header of a file."""
    return int.from_bytes(header[60:64])


def _means_damage(error: object) -> bool:
    """Whether an error means that the file is damaged.

    The error is one of SQLite, or of a text in its schema.
    """
    return (getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF) in _DAMAGE


def _is_damaged(file: Path) -> bool:
    """Return whether SQLite cannot read or write the file, or a table lacks a column."""
    header = _header(file)
    if not {1, 2}.issuperset(header[18:20]) or _layout_in(header) != LAYOUT:
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
        return _means_damage(error)


def _readable_text(text: bytes) -> str:
    """Return a stored text; a damaged one affects only its row."""
    return text.decode("utf-8", "replace")


def _copy(file: Path, target: Path, busy_timeout_s: float) -> None:
    """Copy a SQLite file with its log to a new file, by way of a temporary one."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with (
            contextlib.closing(sqlite3.connect(file, timeout=busy_timeout_s)) as source,
            contextlib.closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(f"the store is damaged: {found}")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def check_location(given: str) -> None:
    """Check the form of a store's location, without opening it.

    Raises:
        InvalidInput: for a malformed URL, a database without its driver, or a directory.
    """
    shown = given
    try:
        if "://" in given:
            url = sa.make_url(given)
            shown = url.render_as_string(hide_password=True)
            _with_driver(url).get_dialect()
        elif given and Path(given).expanduser().is_dir():
            raise IsADirectoryError("this is a directory")
    except (sa.exc.SQLAlchemyError, OSError, RuntimeError, ValueError, ImportError) as error:
        allowed = f"the path of a SQLite file or the URL of a database (here: {error})"
        raise InvalidInput(VARIABLE, shown, allowed) from None


def _with_driver(url: sa.URL) -> sa.URL:
    """Select psycopg 3 for the usual form ``postgresql://``; SQLAlchemy would select psycopg2."""
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    return url


def _url(given: str) -> sa.URL:
    """Return the URL of the database ``given``; create the directory of a SQLite file."""
    if "://" in given:
        url = _with_driver(sa.make_url(given))
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
        connection.text_factory = _readable_text
        # The default in WAL mode may lose points at a power failure.
        connection.execute("PRAGMA synchronous=FULL")

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
    # Checksums cover the digest and the content, see _entries.
    sa.Column("checksum", sa.String(64)),
    sa.Column("ending_checksum", sa.String(64)),
    # Fingerprint of the settings by which the digest was computed; rows of other
    # fingerprints are named again.
    sa.Column("naming", sa.String(64)),
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
    sa.Column("version", sa.Integer),  # of the experiment that wrote it
    sa.Column("checksum", sa.String(64)),
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
    sa.Column("checksum", sa.String(64)),
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
# Runs that started by themselves and that no user has asked for; not listed, and the
# first to be deleted.
PREVIEWS = sa.Table(
    "lab_previews",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),
)
ALIASES = sa.Table(
    "lab_aliases",
    TABLES,
    sa.Column("digest", sa.String(64), primary_key=True),  # an earlier name of a run
    sa.Column("run", sa.String(64), nullable=False, index=True),  # its digest in lab_results
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
# In Postgres, which has no header of a file; with its own MetaData, since SQLite does not need it.
_LAYOUTS = sa.Table("lab_layout", sa.MetaData(), sa.Column("layout", sa.Integer, primary_key=True))
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
