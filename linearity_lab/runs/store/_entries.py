"""Entries of the store: listed runs, marks, unfinished jobs; deletion of old runs."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from linearity_lab.runs._documents import (
    Damaged,
    Document,
    OtherVersion,
    Readable,
    Reading,
    Settings,
    naming,
    read_point,
    read_settings,
)
from linearity_lab.runs._parse import spec_digest
from linearity_lab.runs._spec import SCHEMA_VERSION, Spec
from linearity_lab.runs._table import KINDS
from linearity_lab.runs._values import PointValue
from linearity_lab.runs.store._database import (
    ALIASES,
    ARRAYS,
    JOBS,
    OWNERS,
    POINTS,
    PREVIEWS,
    RUNS,
    alone,
    insert,
)
from linearity_lab.runs.store._packages import sa
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size, width_label

MIN_PREFIX = 16
MAX_NAME = 80
MAX_NOTE = 500
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
        spec: None unless ``reading`` is ``READABLE``.
        reading: whether this version understands the settings, and if not, why.
        document: the settings as stored, if they are of another version.
        reason: one clause on settings of another version.
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
    reading: Reading = Reading.READABLE
    document: Document | None = None
    reason: str = ""

    @classmethod
    def of(cls, row: sa.Row[tuple[object, ...]]) -> StoredRun:
        """Return the entry of a row; facts that follow from its settings come from them."""
        found = {
            name: value for name, value in row._mapping.items() if name in cls.__dataclass_fields__
        }
        found["spec"] = None
        if not is_intact_ending(row):
            found["status"] = "started"
        outcome = settings_in(row)
        if isinstance(outcome, Readable):
            spec = outcome.spec
            found |= {
                "spec": spec,
                "experiment": spec.experiment,
                "swept": swept_words(spec)[:200],
                "private": spec.is_private,
            }
        elif isinstance(outcome, OtherVersion):
            found |= {
                "reading": outcome.reading,
                "document": outcome.document,
                "reason": outcome.reason,
            }
        else:
            found["reading"] = Reading.DAMAGED
        return cls(**found)


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


def checksum(*parts: object) -> str:
    """Return the SHA-256 of a key and its content.

    The length of each part precedes it, so that different parts never give the same bytes. Texts
    are hashed apart from the other values, without a copy in JSON.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, bytes):
            content = part
        elif isinstance(part, str):
            content = part.encode("utf-8", "surrogatepass")
        else:
            content = json.dumps(part).encode()
        digest.update(f"{type(part).__name__} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def spec_checksum(run: str, is_private: bool, text: str) -> str:
    """Return the checksum of a run's settings."""
    return checksum("spec", run, is_private, text)


def ending_checksum(run: str, status: str, is_imported: bool, ending: str) -> str:
    """Return the checksum of the ending of a run."""
    return checksum("ending", run, status, is_imported, ending)


def point_checksum(run: str, key: str, version: int, seconds: float, text: str) -> str:
    """Return the checksum of a point. It covers the key, so points of exchanged rows fail it."""
    return checksum("point", run, key, version, seconds, text)


def array_checksum(run: str, key: str, archive: bytes) -> str:
    """Return the checksum of the arrays of a point."""
    return checksum("arrays", run, key, archive)


def is_intact_settings(run: str, row: sa.Row[Any]) -> bool:
    """Return whether the settings of a run are as they were stored."""
    return bool(row.checksum == spec_checksum(run, bool(row.private), row.spec))


def is_intact_ending(row: sa.Row[Any]) -> bool:
    """Return whether the ending of a run is as it was stored."""
    if row.ending_checksum is None:
        return not row.ending
    found = ending_checksum(row.digest, row.status, bool(row.imported), row.ending)
    return bool(row.ending_checksum == found)


def is_intact_point(row: sa.Row[Any]) -> bool:
    """Return whether a point is as it was stored."""
    if not isinstance(row.seconds, float):
        return False
    found = point_checksum(row.digest, row.key, row.version, row.seconds, row.json)
    return bool(row.checksum == found)


def is_intact_array(row: sa.Row[Any]) -> bool:
    """Return whether the arrays of a point are as they were stored."""
    return bool(row.checksum == array_checksum(row.digest, row.key, row.npz))


def seal(connection: sa.Connection) -> None:
    """Add checksums to all rows of layout 3, which has none.

    Rows that are damaged already get none.

    Changes before this step can be noticed only in the settings, whose digest was the
    SHA-256 of their text, and in points under the key of another point. Layout 3 notes an
    import in its run alone; all points of such a run get the note, since it is not known
    which of them were computed here.
    """
    imported = set()
    for row in connection.execute(sa.select(RUNS)).all():
        if not isinstance(row.spec, str) or sha256(row.spec) != row.digest:
            continue
        facts = {"checksum": spec_checksum(row.digest, bool(row.private), row.spec)}
        if row.imported:
            imported.add(row.digest)
        if row.ending:
            ending = marked_imported(row.ending) if row.imported else row.ending
            facts["ending"] = ending
            content = (row.status, bool(row.imported), ending)
            facts["ending_checksum"] = ending_checksum(row.digest, *content)
        connection.execute(sa.update(RUNS).where(RUNS.c.digest == row.digest).values(facts))
    for digest, key in connection.execute(sa.select(POINTS.c.digest, POINTS.c.key)).all():
        chosen = (POINTS.c.digest == digest) & (POINTS.c.key == key)
        row = connection.execute(sa.select(POINTS).where(chosen)).one()
        seconds = row.seconds
        if not isinstance(seconds, float) or json_object(row.json) is None:
            continue
        text = marked_imported(row.json) if digest in imported else row.json
        sealed = point_checksum(digest, key, SCHEMA_VERSION, seconds, text)
        values = {"version": SCHEMA_VERSION, "checksum": sealed, "json": text, "bytes": len(text)}
        connection.execute(sa.update(POINTS).where(chosen).values(values))
    for digest, key in connection.execute(sa.select(ARRAYS.c.digest, ARRAYS.c.key)).all():
        chosen = (ARRAYS.c.digest == digest) & (ARRAYS.c.key == key)
        archive = connection.execute(sa.select(ARRAYS.c.npz).where(chosen)).scalar_one()
        sealed = array_checksum(digest, key, archive)
        connection.execute(sa.update(ARRAYS).where(chosen).values(checksum=sealed))


def marked_imported(text: str) -> str:
    """Return the JSON of a point or ending with "imported" in its provenance.

    Other text unchanged.
    """
    document = json_object(text)
    if document is None or not isinstance(document.get("provenance"), dict):
        return text
    document["provenance"]["imported"] = True
    return json.dumps(document, separators=(",", ":"))


def settings_in(row: sa.Row[Any]) -> Settings:
    """Return the outcome of reading the settings of a row of ``RUNS``; log damage."""
    return settings_of(row.digest, row)


def settings_of(run: str, row: sa.Row[Any]) -> Settings:
    """Return the outcome of reading the settings of this run; log damage."""
    outcome = read_settings(row.spec) if is_intact_settings(run, row) else Damaged()
    if isinstance(outcome, Damaged):
        warn(f"settings of {run[:MIN_PREFIX]}")
    return outcome


def point_in(run: sa.Row[Any], row: sa.Row[Any]) -> PointValue | None:
    """Return the point of a row; None, with a warning, if it is damaged or cannot be read.

    Args:
        run: the row of its run.
    """
    point = None
    if is_intact_point(row):
        point = read_point(run.experiment, row.version, row.json)
    if point is None or point.key != row.key:
        warn(f"point {row.key} of {row.digest[:MIN_PREFIX]}")
        return None
    return point


def json_object(text: str) -> dict[str, Any] | None:
    """Return a JSON object; None for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def sha256(text: str) -> str:
    """Return the SHA-256 of a text as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def spec_of(run: str, row: sa.Row[Any]) -> Spec | None:
    """Return the spec of this run; None unless this version can read it."""
    outcome = settings_of(run, row)
    return outcome.spec if isinstance(outcome, Readable) else None


def spec_in(row: sa.Row[Any] | None) -> Spec | None:
    """Return the spec of a row of ``RUNS``; None unless this version can read it."""
    return None if row is None else spec_of(row.digest, row)


def warn(name: str) -> None:
    """Log that an entry is damaged."""
    _LOG.warning("The stored %s: damaged; dropped, to be recomputed.", name)


def actual_digest(connection: sa.Connection, run: str) -> str:
    """Return the digest under which a run is stored, given this digest or an earlier name."""
    found = connection.scalar(sa.select(ALIASES.c.run).where(ALIASES.c.digest == run))
    return str(found) if found else run


def name_again(connection: sa.Connection) -> None:
    """Store runs under the digests of this version; their earlier digests become aliases.

    Only rows whose fingerprint of settings differs from that of this version are read.
    """
    present = sa.select(RUNS.c.experiment, RUNS.c.naming).distinct()
    outdated = []
    for experiment, stored in connection.execute(present).all():
        if experiment not in KINDS:
            continue
        kind: type[Spec] = KINDS[experiment].spec
        if stored != naming(kind):
            outdated.append((experiment, stored))
    if outdated:
        alone(connection)
    for experiment, stored in outdated:
        is_outdated = RUNS.c.naming.is_not_distinct_from(stored)
        query = sa.select(RUNS).where(RUNS.c.experiment == experiment, is_outdated)
        for row in connection.execute(query).all():
            spec = spec_in(row)
            if spec is not None:
                _rename(connection, row, spec)


def _rename(connection: sa.Connection, row: sa.Row[Any], spec: Spec) -> None:
    """Store a run under the digest of its spec, with new checksums for what is intact."""
    old = row.digest
    new = spec_digest(spec)
    facts: dict[str, object] = {"naming": naming(type(spec))}
    if new == old:
        connection.execute(sa.update(RUNS).where(RUNS.c.digest == old).values(facts))
        return
    # If the run was computed again under its new name, that run only takes the points that it
    # lacks.
    if connection.scalar(sa.select(RUNS.c.digest).where(RUNS.c.digest == new)) is None:
        facts["digest"] = new
        facts["checksum"] = spec_checksum(new, bool(row.private), row.spec)
        if row.ending and is_intact_ending(row):
            imported = bool(row.imported)
            facts["ending_checksum"] = ending_checksum(new, row.status, imported, row.ending)
        connection.execute(sa.update(RUNS).where(RUNS.c.digest == old).values(facts))
    _move_points(connection, old, new)
    _move_arrays(connection, old, new)
    for owner in connection.scalars(sa.select(OWNERS.c.owner).where(OWNERS.c.digest == old)).all():
        insert(connection, OWNERS, {"digest": new, "owner": owner})
    if connection.scalar(sa.select(JOBS.c.digest).where(JOBS.c.digest == new)) is None:
        connection.execute(sa.update(JOBS).where(JOBS.c.digest == old).values(digest=new))
    connection.execute(sa.update(ALIASES).where(ALIASES.c.run == old).values(run=new))
    is_preview = sa.select(PREVIEWS.c.digest).where(PREVIEWS.c.digest == old)
    if connection.scalar(is_preview) is not None:
        insert(connection, PREVIEWS, {"digest": new})
    for table in (RUNS, POINTS, ARRAYS, OWNERS, JOBS, PREVIEWS):
        connection.execute(sa.delete(table).where(table.c.digest == old))
    connection.execute(sa.delete(ALIASES).where(ALIASES.c.digest == new))
    insert(connection, ALIASES, {"digest": old, "run": new}, update=["run"])


def _move_points(connection: sa.Connection, old: str, new: str) -> None:
    """Move the points that a run lacks from its old name; damaged ones get no new checksum."""
    present = set(connection.scalars(sa.select(POINTS.c.key).where(POINTS.c.digest == new)))
    for key in connection.scalars(sa.select(POINTS.c.key).where(POINTS.c.digest == old)).all():
        if key in present:
            continue
        chosen = (POINTS.c.digest == old) & (POINTS.c.key == key)
        row = connection.execute(sa.select(POINTS).where(chosen)).one()
        values: dict[str, object] = {"digest": new}
        if is_intact_point(row):
            values["checksum"] = point_checksum(new, key, row.version, row.seconds, row.json)
        connection.execute(sa.update(POINTS).where(chosen).values(values))


def _move_arrays(connection: sa.Connection, old: str, new: str) -> None:
    """Move the arrays that a run lacks from its old name; damaged ones get no new checksum."""
    present = set(connection.scalars(sa.select(ARRAYS.c.key).where(ARRAYS.c.digest == new)))
    for key in connection.scalars(sa.select(ARRAYS.c.key).where(ARRAYS.c.digest == old)).all():
        if key in present:
            continue
        chosen = (ARRAYS.c.digest == old) & (ARRAYS.c.key == key)
        row = connection.execute(sa.select(ARRAYS).where(chosen)).one()
        values: dict[str, object] = {"digest": new}
        if is_intact_array(row):
            values["checksum"] = array_checksum(new, key, row.npz)
        connection.execute(sa.update(ARRAYS).where(chosen).values(values))


def swept_words(spec: Spec) -> str:
    """Describe the points of a spec: ``6 widths, 30 to 10,000``."""
    count = len(spec.point_keys())
    words = f"{count} {spec.point_words[count != 1]}"
    values = [value for value in getattr(spec, spec.swept_field) if isinstance(value, int | float)]
    if not values:
        return words
    low = min(values)
    high = max(values)
    return f"{words}, {' to '.join(dict.fromkeys(map(width_label, (low, high))))}"


def delete_run(connection: sa.Connection, run: str) -> None:
    """Delete a run, its points and its job."""
    names = {run, *connection.scalars(sa.select(ALIASES.c.digest).where(ALIASES.c.run == run))}
    # The run first, since other transactions lock its row.
    for table in (RUNS, POINTS, ARRAYS, OWNERS, JOBS, PREVIEWS):
        connection.execute(sa.delete(table).where(table.c.digest.in_(names)))
    connection.execute(sa.delete(ALIASES).where(ALIASES.c.run == run))


def total_bytes(connection: sa.Connection) -> int:
    return sum(
        int(connection.scalar(sa.select(sa.func.sum(table.c.bytes))) or 0)
        for table in (RUNS, POINTS, ARRAYS)
    )


def next_use(connection: sa.Connection) -> float:
    """Return the time of a new use: the clock's, but later than all stored uses.

    Eviction orders runs by these times. A clock that was ahead for a while leaves late
    times behind. By the bare clock, each new run of a full store would then be the oldest
    and be deleted first.
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
    """Delete runs until ``most`` bytes are left.

    Previews go first, then the least recently used runs of the heaviest owner.

    Runs with unfinished jobs, and the run ``spared``, are kept. Runs without an owner count
    as those of one owner, so on a local server the least recently used run goes first. On a
    shared server a visitor with many or large runs displaces those of the same visitor
    before those of others.
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
    busy = {
        actual_digest(connection, job) for job in connection.scalars(sa.select(JOBS.c.digest)).all()
    }
    previews = set(connection.scalars(sa.select(PREVIEWS.c.digest)))
    held: dict[str, int] = {}  # owner → bytes of all runs, also of those that stay
    idle: dict[str, list[tuple[str, int]]] = {}  # owner → (digest, bytes), oldest first
    idle_previews: list[tuple[str, int]] = []
    for row in connection.execute(sizes.order_by(RUNS.c.used, RUNS.c.digest)):
        owner = row.owner or ""
        num_bytes = int(row.num_bytes)
        held[owner] = held.get(owner, 0) + num_bytes
        if row.digest in busy or row.digest == spared:
            continue
        if row.digest in previews:
            idle_previews.append((row.digest, num_bytes))
        else:
            idle.setdefault(owner, []).append((row.digest, num_bytes))
    left = sum(held.values())
    for digest, num_bytes in idle_previews:
        if left <= most:
            return
        delete_run(connection, digest)
        held[""] = held.get("", 0) - num_bytes
        left -= num_bytes
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
