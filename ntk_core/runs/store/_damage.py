"""Whether a SQLite file is damaged in a way that SQLite does not call so.

A changed byte in the header makes the file one of a later format (``unsupported file format``) or one that may not be
written (``attempt to write a readonly database``), a changed letter in the schema another table. SQLite then refuses
every statement, for ever.
"""

import contextlib
import sqlite3
import struct
from pathlib import Path

from ntk_core.runs.store._tables import TABLES

_MAGIC = b"SQLite format 3\0"
_HEADER = 100


def is_broken(file: Path) -> bool:
    """Whether header, schema or pages are not what a store of ours has; False where that cannot be looked at."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEADER)
    except OSError:
        return False
    return bool(head) and (_is_wrong_header(head) or _is_wrong_inside(file))


def _is_wrong_header(head: bytes) -> bool:
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        return True
    versions, fractions = head[18:20], head[21:24]
    schema_format, encoding = (struct.unpack_from(">I", head, at)[0] for at in (44, 56))
    return not (set(versions) <= {1, 2} and fractions == bytes((64, 32, 32)) and schema_format <= 4 and encoding <= 3)


def _is_wrong_inside(file: Path) -> bool:
    try:
        with contextlib.closing(_read_only(file)) as connection:
            for table in TABLES.sorted_tables:
                known = {row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")}
                if known and not known >= {column.name for column in table.columns}:
                    return True
            ((found,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except UnicodeDecodeError:  # in the name of a table, or of what is wrong with it
        return True
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return bool(found != "ok")


def _read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=5.0)
