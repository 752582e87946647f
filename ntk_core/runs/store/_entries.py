"""Entries of the store: listed runs, marks, unfinished jobs; deletion of old runs."""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.numbers import size, width_label
from ntk_core.runs._parse import InvalidSpec, parse_spec, spec_digest
from ntk_core.runs._spec import Spec
from ntk_core.runs.store._database import ARRAYS, JOBS, OWNERS, POINTS, RUNS, alone

MIN_PREFIX = 16
MAX_NAME, MAX_NOTE = 80, 500
STATUSES = ("completed", "cancelled", "stopped", "failed", "started")
_OF_RUN = POINTS.c.digest == RUNS.c.digest
NUM_POINTS = sa.select(sa.func.count()).where(_OF_RUN).scalar_subquery()
_POINT_BYTES = sa.select(sa.func.sum(POINTS.c.bytes)).where(_OF_RUN).scalar_subquery()
_ARRAY_BYTES = (
    sa.select(sa.func.sum(ARRAYS.c.bytes)).where(ARRAYS.c.digest == RUNS.c.digest).scalar_subquery()
)
NUM_BYTES = RUNS.c.bytes + sa.func.coalesce(_POINT_BYTES, 0) + sa.func.coalesce(_ARRAY_BYTES, 0)
USE_STEP_S = 1e-3  # between two uses, if the clock does not separate them
MAX_SHARE = 2  # a run may take at most half of the store; our choice
LISTED = (*RUNS.c, NUM_POINTS.label("num_points"), NUM_BYTES.label("num_bytes"))
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mark:
    """A user's name, note and star of one run, stored beside its result.

    Raises:
        InvalidInput: if name or note is too long or not printable.
    """

    name: str = ""
    note: str = ""
    favorite: bool = False

    def __post_init__(self) -> None:
        for field, text, most in (("name", self.name, MAX_NAME), ("note", self.note, MAX_NOTE)):
            if len(text) > most or not text.replace("\n", " ").isprintable():
                raise InvalidInput(field, text, f"at most {most} printable letters")


@dataclass(frozen=True)
class StoredRun:
    """One entry of a list of runs.

    Attributes:
        spec: None if it is damaged or from another version of the lab.
        swept: description of its points in a few words.
        status: ``started`` until a result is saved, then the result's status.
        num_points: finished points.
        created, used: seconds since 1970.
        num_bytes: size in the store.
        private: computed on uploaded data.
        imported: read from a file, not computed here.
    """

    digest: str
    spec: Spec | None
    experiment: str
    swept: str
    status: str
    num_points: int
    created: float
    used: float
    num_bytes: int
    private: bool
    imported: bool

    @classmethod
    def of(cls, row: sa.Row[tuple[object, ...]]) -> StoredRun:
        """Return the entry of a row."""
        found = {
            name: value for name, value in row._mapping.items() if name in cls.__dataclass_fields__
        }
        return cls(**found | {"spec": intact_spec(row.digest, row.spec)})


class RunList(NamedTuple):
    """One page of a list of runs, most recently used first; the number of runs on all pages."""

    runs: tuple[StoredRun, ...]
    total: int


@dataclass(frozen=True)
class UnfinishedJob:
    """A waiting or running job.

    Attributes:
        owner: the session that submitted it.
        submitted_s: time of submission, in seconds since 1970.
        spent_s: elapsed run time in seconds.
        allowed_s: time limit in seconds, or None.
        ending: whether the command line has requested its end.
    """

    spec: Spec
    owner: str
    submitted_s: float
    running: bool = False
    spent_s: float = 0.0
    allowed_s: float | None = None
    ending: bool = False

    @property
    def digest(self) -> str:
        """Digest of the spec, which names the job."""
        return spec_digest(self.spec)

    @property
    def visitor(self) -> str:
        """Six digits that distinguish owners without identifying them."""
        return hashlib.sha256(self.owner.encode()).hexdigest()[:6] if self.owner else ""


def intact_spec(run: str, text: str | None) -> Spec | None:
    """Return the spec with this digest; None with a warning if ``text`` is not its JSON."""
    if text is None:
        return None
    try:
        spec = parse_spec(text)
    except InvalidSpec:
        spec = None
    if spec is None or spec_digest(spec) != run:
        warn(f"spec {run[:16]}")
        return None
    return spec


def warn(name: str) -> None:
    """Log that an entry is damaged."""
    _LOG.warning("The stored %s is damaged; it is dropped and will be recomputed.", name)


def swept_words(spec: Spec) -> str:
    """Describe the points of a spec: ``6 widths, 30 to 10,000``."""
    count = len(spec.point_keys())
    words = f"{count} {spec.point_words[count != 1]}"
    values = [value for value in getattr(spec, spec.swept_field) if isinstance(value, int | float)]
    if not values:
        return words
    low, high = min(values), max(values)
    return f"{words}, {' to '.join(dict.fromkeys(map(width_label, (low, high))))}"


def delete_run(connection: sa.Connection, run: str) -> None:
    """Delete a run, its points and its job."""
    for table in (
        RUNS,
        POINTS,
        ARRAYS,
        OWNERS,
        JOBS,
    ):  # the run first, since other transactions lock its row
        connection.execute(sa.delete(table).where(table.c.digest == run))


def total_bytes(connection: sa.Connection) -> int:
    return sum(
        int(connection.scalar(sa.select(sa.func.sum(table.c.bytes))) or 0)
        for table in (RUNS, POINTS, ARRAYS)
    )


def next_use(connection: sa.Connection) -> float:
    """Return the time of a new use: the clock's, but later than all stored uses.

    Eviction orders runs by these times. A clock that was ahead for a while leaves late times behind. By the bare
    clock, each new run of a full store would then be the oldest and be deleted first.
    """
    newest = connection.scalar(sa.select(sa.func.max(RUNS.c.used)))
    if newest is None:
        return time.time()
    return max(time.time(), newest + USE_STEP_S)


def mark_as_used(connection: sa.Connection, run: str) -> None:
    """Make a run the most recently used one."""
    used = next_use(connection)
    connection.execute(sa.update(RUNS).where(RUNS.c.digest == run).values(used=used))


def evict(connection: sa.Connection, most: int, spared: str) -> None:
    """Delete the least recently used runs of the heaviest owner until ``most`` bytes are left.

    Runs with unfinished jobs, and the run ``spared``, are kept. Runs without an owner count as those of one owner, so
    on a local server the least recently used run goes first. On a shared server a visitor with many or large runs
    displaces those of the same visitor before those of others.
    """
    if total_bytes(connection) <= most:
        return
    alone(connection)  # avoids that two processes both free the needed space
    first_owner = (
        sa.select(sa.func.min(OWNERS.c.owner))
        .where(OWNERS.c.digest == RUNS.c.digest)
        .scalar_subquery()
    )
    sizes = sa.select(
        RUNS.c.digest, RUNS.c.used, first_owner.label("owner"), NUM_BYTES.label("num_bytes")
    )
    busy = set(connection.scalars(sa.select(JOBS.c.digest)))
    held: dict[str, int] = {}  # owner → bytes of all runs, also of those that stay
    idle: dict[str, list[tuple[str, int]]] = {}  # owner → (digest, bytes), oldest first
    for row in connection.execute(sizes.order_by(RUNS.c.used, RUNS.c.digest)):
        owner = row.owner or ""
        held[owner] = held.get(owner, 0) + int(row.num_bytes)
        if row.digest not in busy and row.digest != spared:
            idle.setdefault(owner, []).append((row.digest, int(row.num_bytes)))
    left = sum(held.values())
    while left > most and idle:
        heaviest = max(idle, key=lambda owner: held[owner])
        digest, num_bytes = idle[heaviest].pop(0)
        delete_run(connection, digest)
        held[heaviest] -= num_bytes
        left -= num_bytes
        if not idle[heaviest]:
            del idle[heaviest]


class RunTooLarge(InvalidInput):
    """Error for a run that would take more than its share of the store."""

    template = "{}: {} cannot be stored; use {}"


def check_share(connection: sa.Connection, run: str, key: str, added: int, most: int) -> None:
    """Refuse a point that makes its run larger than half of the store.

    Raises:
        RunTooLarge: with the size of the run.
    """
    others = [
        sa.select(sa.func.coalesce(sa.func.sum(table.c.bytes), 0)).where(
            table.c.digest == run, table.c.key != key
        )
        for table in (POINTS, ARRAYS)
    ]
    num_bytes = added + sum(int(connection.scalar(query) or 0) for query in others)
    if num_bytes > most // MAX_SHARE:
        allowed = (
            f"fewer points, seeds or kept kernels: one run may take {size(most // MAX_SHARE)}, "
            "half of the store"
        )
        raise RunTooLarge("result", size(num_bytes), allowed)
