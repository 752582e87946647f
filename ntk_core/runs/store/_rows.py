"""Statements on the rows of runs and points, inside a transaction."""

import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from ntk_core.runs._parse import canonical_json, spec_digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._values import PointValue
from ntk_core.runs.store._entries import POINT, intact, sha, swept_words
from ntk_core.runs.store._tables import POINTS, RUNS, insert_once

_EVICTION_LOCK = 7_224_711_037  # the number after that of the tables


def current(run: str, *columns: Any) -> sa.Select[Any]:
    return sa.select(*columns).where(RUNS.c.digest == run, RUNS.c.schema_version == SCHEMA_VERSION)


def lock(connection: sa.Connection, run: str) -> None:
    """Hold the row of a run while its points are written: in Postgres two writers could else deadlock."""
    connection.execute(sa.select(RUNS.c.digest).where(RUNS.c.digest == run).with_for_update()).all()


def insert_run(connection: sa.Connection, spec: Spec, *, imported: bool = False) -> None:
    """Insert a row for this spec, unless it has one; a damaged one is repaired."""
    text, run, now = canonical_json(spec), spec_digest(spec), time.time()
    facts = {"experiment": spec.experiment, "swept": swept_words(spec)[:200], "private": spec.is_private, "spec": text}
    begun = {"schema_version": SCHEMA_VERSION, "status": "started", "num_points": 0, "imported": imported}
    begun |= {
        "created": now,
        "used": now,
        "busy_until": 0.0,
        "bytes": len(text),
        "name": "",
        "note": "",
        "favorite": False,
    }
    if not insert_once(connection, RUNS, {"digest": run} | facts | begun):
        connection.execute(sa.update(RUNS).where(RUNS.c.digest == run, RUNS.c.spec != text).values(facts))


def save_point(connection: sa.Connection, run: str, key: str, point: PointValue) -> bool:
    """Whether the point was new, or replaced a damaged one."""
    text = point.model_dump_json()
    row = {"digest": run, "key": key, "json": text, "sha": sha(text)}
    if not insert_once(connection, POINTS, row):
        kept = connection.execute(sa.select(POINTS).where(POINTS.c.digest == run, POINTS.c.key == key)).one()
        if intact(POINT, kept.json, kept.sha, f"point {key} of {run[:16]}") is not None:
            return False
        delete_points(connection, run, [kept])
        insert_once(connection, POINTS, row)
    grown = {"num_points": RUNS.c.num_points + 1, "bytes": RUNS.c.bytes + len(text)}
    connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(grown))
    return True


def delete_points(connection: sa.Connection, run: str, rows: Collection[sa.Row[Any]]) -> None:
    lock(connection, run)
    for row in rows:
        same = sa.and_(POINTS.c.digest == run, POINTS.c.key == row.key, POINTS.c.sha == row.sha)
        if connection.execute(sa.delete(POINTS).where(same)).rowcount:
            shrunk = {"num_points": RUNS.c.num_points - 1, "bytes": RUNS.c.bytes - len(row.json)}
            connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(shrunk))


def total_bytes(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(RUNS.c.bytes), 0))) or 0)


def evict(connection: sa.Connection, most: int, spared: str) -> int:
    """Delete the least recently used runs until ``most`` bytes are left; the number deleted.

    Runs being computed stay, and so does ``spared``, which was written last.
    """
    if total_bytes(connection) <= most:
        return 0
    if connection.dialect.name == "postgresql":  # one process at a time: two would each free the needed room
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_EVICTION_LOCK)))
    idle = (RUNS.c.busy_until < time.time()) & (RUNS.c.digest != spared)
    query = sa.select(RUNS.c.digest, RUNS.c.bytes, RUNS.c.used).where(idle).order_by(RUNS.c.used, RUNS.c.digest)
    gone, excess = 0, total_bytes(connection) - most
    for row in connection.execute(query.limit(1000).with_for_update(skip_locked=True)).all():
        if excess <= 0:
            break
        # Another process may have used the run between the two statements.
        if connection.execute(
            sa.delete(RUNS).where(RUNS.c.digest == row.digest, idle, RUNS.c.used == row.used)
        ).rowcount:
            connection.execute(sa.delete(POINTS).where(POINTS.c.digest == row.digest))
            excess -= row.bytes
            gone += 1
    return gone
