"""Room in the store: beyond its limit the runs that were used longest ago go, never one that is being computed."""

import logging
import os
import time

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.runs.store._tables import POINTS, RUNS, SET_ASIDE

LIMIT_VARIABLE = "LINEARITY_LAB_STORE_BYTES"
DEFAULT_LIMIT = 2_000_000_000
_SMALLEST, _LARGEST = 1_000_000, 10**15
# A run counts as being computed until it ends, or this long after it last saved a point (its worker was killed).
LEASE_S = 24 * 3600.0
_BATCH = 20
_LOCK = 7_224_711_037  # the number after that of the tables
_LOG = logging.getLogger(__name__)


def limit_from_environment() -> int:
    """Most bytes that the store may hold.

    Raises:
        InvalidInput: when ``LINEARITY_LAB_STORE_BYTES`` is no number of bytes.
    """
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return DEFAULT_LIMIT
    if not (given.isascii() and given.isdigit() and len(given) <= 16 and _SMALLEST <= int(given) <= _LARGEST):
        raise InvalidInput(LIMIT_VARIABLE, given, f"a number of bytes from {_SMALLEST:,} to {_LARGEST:,}")
    return int(given)


def total_bytes(connection: sa.Connection) -> int:
    """Bytes of all specs, points and results, what is set aside included."""
    kept = connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(RUNS.c.bytes), 0)))
    aside = connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(SET_ASIDE.c.bytes), 0)))
    return int(kept or 0) + int(aside or 0)


def evict(connection: sa.Connection, most: int, spared: str) -> int:
    """Delete until at most ``most`` bytes are left: damaged entries first, then runs by their last use.

    Args:
        spared: digest of a run that stays: it has just been written.

    Returns:
        The number of runs that went; fewer than needed when all others are being computed.
    """
    if total_bytes(connection) <= most:
        return 0
    if connection.dialect.name == "postgresql":  # one at a time, or two would both make the room that one needs
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    connection.execute(sa.delete(SET_ASIDE))  # in SQLite this keeps other writers out
    excess, gone = total_bytes(connection) - most, 0
    while excess > 0:
        now = time.time()
        idle = (RUNS.c.busy_until < now) & (RUNS.c.digest != spared)
        oldest = (
            sa.select(RUNS.c.digest, RUNS.c.schema_version, RUNS.c.bytes, RUNS.c.used)
            .where(idle)
            .order_by(RUNS.c.used, RUNS.c.digest)
            .limit(_BATCH)
            .with_for_update(skip_locked=True)  # in Postgres: who writes to a run holds it; SQLite has one writer
        )
        rows = connection.execute(oldest).all()
        if not rows:
            break
        for row in rows:
            # As it was seen: between two statements another process may have used or begun it.
            same = (RUNS.c.digest == row.digest) & (RUNS.c.schema_version == row.schema_version)
            if connection.execute(sa.delete(RUNS).where(same, idle, RUNS.c.used == row.used)).rowcount:
                of_run = (POINTS.c.digest == row.digest) & (POINTS.c.schema_version == row.schema_version)
                connection.execute(sa.delete(POINTS).where(of_run))
                excess -= row.bytes
                gone += 1
            if excess <= 0:
                break
    if gone:
        _LOG.info("The results store was full: %d runs that were used longest ago are gone.", gone)
    return gone
