"""Statements on the rows of runs and points, inside a transaction."""

import hashlib
import logging
import time
from collections.abc import Collection
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError

from ntk_core.runs._parse import InvalidSpec, canonical_json, parse_spec, spec_digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._table import Point, Result, experiment_of
from ntk_core.runs._values import EndStatus, PointValue, Provenance, Value
from ntk_core.runs.store._database import POINTS, RUNS, insert_once

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
    if connection.dialect.name == "postgresql":  # one process at a time: two would each free the needed space
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


_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Ending(Value):
    """A result without its spec and points, which have rows of their own."""

    status: EndStatus
    provenance: Provenance
    runtime_s: float


POINT: TypeAdapter[Point] = TypeAdapter(Point)
ENDING: TypeAdapter[Ending] = TypeAdapter(Ending)


def ending_of(result: Result) -> Ending:
    """The part of a result that is stored beside its spec and points."""
    return Ending(status=result.status, provenance=result.provenance, runtime_s=result.runtime_s)


def result_of(spec: Spec, ending: Ending, points: dict[str, PointValue]) -> Result | None:
    """The inverse of :func:`ending_of`; None when a completed run lacks a point or a point is not one of the spec."""
    keys = spec.point_keys()
    if ending.status == "completed" and not points.keys() >= set(keys):
        return None
    found = tuple(points[key] for key in keys if key in points)
    try:
        return experiment_of(spec).result(
            spec=spec, points=found, provenance=ending.provenance, status=ending.status, runtime_s=ending.runtime_s
        )
    except ValidationError:
        return None


def partial_result(spec: Spec, points: dict[str, PointValue], status: EndStatus = "cancelled") -> Result | None:
    """A result of the finished points of a run that has not ended; None without points."""
    known = [point.provenance for point in points.values() if point.provenance is not None]
    if not known:
        return None
    latest = max(known, key=lambda each: each.started_at)
    runtime_s = sum(point.runtime_s for point in points.values())
    return result_of(spec, Ending(status=status, provenance=latest, runtime_s=runtime_s), points)


def intact(adapter: TypeAdapter[_T], text: Any, expected: str | None, name: str) -> _T | None:
    """The value of ``text``; None, and a warning, when it is damaged."""
    if isinstance(text, str) and sha(text) == expected:
        try:
            return adapter.validate_json(text)
        except ValidationError:
            pass
    warn(name)
    return None


def intact_spec(run: str, text: str) -> Spec | None:
    """The spec with this digest; None, and a warning, when ``text`` is not its JSON."""
    try:
        spec = parse_spec(text)
    except InvalidSpec:
        spec = None
    if spec is None or spec_digest(spec) != run:
        warn(f"spec {run[:16]}")
        return None
    return spec


def warn(name: str) -> None:
    """Log that an entry cannot be used."""
    _LOG.warning("The stored %s is damaged; it is dropped and will be recomputed.", name)


def swept_words(spec: Spec) -> str:
    """The points of a spec in a few words: ``6 widths, 30 to 10000``."""
    count = len(spec.point_keys())
    words = f"{count} {spec.point_words[count != 1]}"
    values = [value for value in getattr(spec, spec.swept_field) if isinstance(value, int | float)]
    if not values:
        return words
    low, high = min(values), max(values)
    return f"{words}, {low:g}" if low == high else f"{words}, {low:g} to {high:g}"


def sha(text: str) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
