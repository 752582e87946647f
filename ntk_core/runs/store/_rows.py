"""Statements on the rows of runs and points, inside a transaction."""

import contextlib
import hashlib
import logging
import time
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError

from ntk_core.numbers import width_label
from ntk_core.runs._parse import InvalidSpec, canonical_json, parse_spec, spec_digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._table import Point, Result, experiment_of
from ntk_core.runs._values import EndStatus, PointValue, Provenance, Value, latest_provenance
from ntk_core.runs.store._database import JOBS, PARTS, RUNS, insert_once

ENDED = "(ending)"  # key of the part that is no point
_EVICTION_LOCK = 7_224_711_037  # the number after that of the tables
_LOG = logging.getLogger(__name__)


class Ending(Value):
    """A result without its spec and points, which are stored by themselves."""

    status: EndStatus
    provenance: Provenance
    runtime_s: float


POINT: TypeAdapter[Point] = TypeAdapter(Point)
_OF_RUN = PARTS.c.digest == RUNS.c.digest
NUM_POINTS = sa.select(sa.func.count()).where(_OF_RUN, PARTS.c.key != ENDED).scalar_subquery()
NUM_BYTES = RUNS.c.bytes + sa.func.coalesce(sa.select(sa.func.sum(PARTS.c.bytes)).where(_OF_RUN).scalar_subquery(), 0)


def current(run: str, *columns: Any) -> sa.Select[Any]:
    return sa.select(*columns).where(RUNS.c.digest == run, RUNS.c.schema_version == SCHEMA_VERSION)


def begin_run(connection: sa.Connection, spec: Spec, *, imported: bool = False) -> None:
    """Insert the row of this spec, or mark it as used and repair it; the transaction holds it from here on."""
    text, run, now = canonical_json(spec), spec_digest(spec), time.time()
    facts = {"experiment": spec.experiment, "swept": swept_words(spec)[:200], "private": spec.is_private}
    facts |= {"spec": text, "bytes": len(text), "used": now}
    if not insert_once(connection, RUNS, {"digest": run, "created": now, "imported": imported, **facts}):
        connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(facts))


def save_part(connection: sa.Connection, run: str, key: str, part: PointValue | Ending, replace: bool = False) -> bool:
    """Store a point, or the ending; whether there was none, or it replaced a damaged one, or any with ``replace``."""
    text = part.model_dump_json()
    row = {"digest": run, "key": key, "sha": sha(text), "seconds": part.runtime_s, "bytes": len(text), "json": text}
    if insert_once(connection, PARTS, row):
        return True
    same = (PARTS.c.digest == run) & (PARTS.c.key == key)
    if not replace and intact(connection.execute(sa.select(PARTS).where(same)).one()) is not None:
        return False
    connection.execute(sa.update(PARTS).where(same).values(row))
    return True


def reopen(connection: sa.Connection, run: str, keys: Collection[str]) -> None:
    """Delete the ending and these points: the run waits for them again."""
    connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(status="started"))
    connection.execute(sa.delete(PARTS).where(PARTS.c.digest == run, PARTS.c.key.in_([*keys, ENDED])))


def delete_run(connection: sa.Connection, run: str, *conditions: sa.ColumnElement[bool]) -> bool:
    """Delete a run, its parts and its job; whether it was there and met the conditions."""
    if not connection.execute(sa.delete(RUNS).where(RUNS.c.digest == run, *conditions)).rowcount:
        return False
    for table in (PARTS, JOBS):
        connection.execute(sa.delete(table).where(table.c.digest == run))
    return True


def total_bytes(connection: sa.Connection) -> int:
    return sum(int(connection.scalar(sa.select(sa.func.sum(table.c.bytes))) or 0) for table in (RUNS, PARTS))


def evict(connection: sa.Connection, most: int, spared: str) -> bool:
    """Delete the least recently used runs until ``most`` bytes are left; whether any was.

    Runs with an unfinished job stay, and so does ``spared``, which was written last.
    """
    if total_bytes(connection) <= most:
        return False
    if connection.dialect.name == "postgresql":  # one process at a time: two would each free the needed space
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_EVICTION_LOCK)))
    idle = RUNS.c.digest.not_in(sa.select(JOBS.c.digest)) & (RUNS.c.digest != spared)
    query = sa.select(RUNS.c.digest, RUNS.c.used, NUM_BYTES).where(idle).order_by(RUNS.c.used, RUNS.c.digest)
    excess, has_deleted = total_bytes(connection) - most, False
    for run, used, num_bytes in connection.execute(query.limit(1000).with_for_update(of=RUNS, skip_locked=True)).all():
        if excess > 0 and delete_run(connection, run, RUNS.c.used == used):  # another process may have used it since
            excess, has_deleted = excess - num_bytes, True
    return has_deleted


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
    latest = latest_provenance(points.values())
    if latest is None:
        return None
    runtime_s = sum(point.runtime_s for point in points.values())
    return result_of(spec, Ending(status=status, provenance=latest, runtime_s=runtime_s), points)


def intact(row: sa.Row[Any]) -> PointValue | Ending | None:
    """The value of a part; None, and a warning, when it is damaged."""
    if isinstance(row.json, str) and sha(row.json) == row.sha:
        with contextlib.suppress(ValidationError):
            ended = row.key == ENDED
            return Ending.model_validate_json(row.json) if ended else POINT.validate_json(row.json)
    warn(f"point {row.key} of {row.digest[:16]}")
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
    """The points of a spec in a few words: ``6 widths, 30 to 10,000``."""
    count = len(spec.point_keys())
    words = f"{count} {spec.point_words[count != 1]}"
    values = [value for value in getattr(spec, spec.swept_field) if isinstance(value, int | float)]
    if not values:
        return words
    low, high = min(values), max(values)
    return f"{words}, {' to '.join(dict.fromkeys(map(width_label, (low, high))))}"


def sha(text: str) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
