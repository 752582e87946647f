"""Entries of the store: listed runs, their marks, unfinished jobs; which rows a list shows."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.numbers import width_label
from ntk_core.runs._parse import InvalidSpec, parse_spec, spec_digest
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs.store._database import PARTS, RUNS

MIN_PREFIX = 16
MAX_NAME, MAX_NOTE = 80, 500
# Longer searches find nothing that shorter ones do not; databases refuse patterns and conditions without end.
MAX_SEARCH, MAX_WORDS = 400, 12
OLDER = "older"
STATUSES = ("completed", "cancelled", "stopped", "failed", "started", OLDER)
ENDED = "(ending)"  # key of the part that is no point
_OF_RUN = PARTS.c.digest == RUNS.c.digest
NUM_POINTS = sa.select(sa.func.count()).where(_OF_RUN, PARTS.c.key != ENDED).scalar_subquery()
NUM_BYTES = RUNS.c.bytes + sa.func.coalesce(sa.select(sa.func.sum(PARTS.c.bytes)).where(_OF_RUN).scalar_subquery(), 0)
LISTED = (*RUNS.c, NUM_POINTS.label("num_points"), NUM_BYTES.label("num_bytes"))
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mark:
    """A person's name, note and star on one run; no part of a result.

    Raises:
        InvalidInput: name or note are too long, or not printable.
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
        spec: None where it is damaged or of an older version.
        swept: its points, in a few words.
        status: ``started`` until a result is saved, then the result's status; ``older`` when another version of the lab
            wrote the run.
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
        """The entry of a row."""
        found = {name: value for name, value in row._mapping.items() if name in cls.__dataclass_fields__}
        is_older = row.schema_version != SCHEMA_VERSION
        changes = {"spec": None, "status": OLDER} if is_older else {"spec": intact_spec(row.digest, row.spec)}
        return cls(**found | changes)


@dataclass(frozen=True)
class RunList:
    """One page of a list of runs, most recently used first.

    Attributes:
        total: number of runs on all pages.
    """

    runs: tuple[StoredRun, ...]
    total: int


@dataclass(frozen=True)
class UnfinishedJob:
    """A job that waits or runs.

    Attributes:
        owner: the session that asked for it.
        submitted_s: when, in seconds since 1970.
        spent_s: how long it has run.
        allowed_s: how long it may run; None without a limit.
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

    def as_json(self) -> dict[str, object]:
        """The job for a list, without its owner and without settings that concern uploaded data."""
        shown = {name: value for name, value in asdict(self).items() if name not in ("spec", "owner")}
        spec = None if self.spec.is_private else self.spec.model_dump(mode="json")
        named = {"digest": self.digest, "visitor": self.visitor, "experiment": self.spec.experiment}
        return {**shown, **named, "spec": spec}


def conditions(
    experiment: str,
    status: str,
    text: str,
    visible: Collection[str] | None,
    marked: Mapping[str, Mark],
    *,
    only_favorites: bool,
) -> list[sa.ColumnElement[bool]]:
    """Conditions on rows; empty texts add none, ``visible`` names the private runs that may be seen."""
    wanted: list[sa.ColumnElement[bool]] = []
    if experiment:
        wanted.append(RUNS.c.experiment == experiment)
    if status == OLDER:
        wanted.append(RUNS.c.schema_version != SCHEMA_VERSION)
    elif status:
        wanted += [RUNS.c.status == status, RUNS.c.schema_version == SCHEMA_VERSION]
    for word in text[:MAX_SEARCH].replace("\0", " ").split()[:MAX_WORDS]:
        columns = (RUNS.c.experiment, RUNS.c.swept, RUNS.c.spec)
        found = [column.icontains(word, autoescape=True) for column in columns]
        marks = [run for run, mark in marked.items() if word.lower() in f"{mark.name} {mark.note}".lower()]
        found.append(RUNS.c.digest.in_(marks))
        wanted.append(sa.or_(RUNS.c.digest.istartswith(word, autoescape=True), *found))
    if only_favorites:
        wanted.append(RUNS.c.digest.in_([run for run, mark in marked.items() if mark.favorite]))
    if visible is not None:
        known = [name[:MIN_PREFIX] for name in visible]
        wanted.append(~RUNS.c.private | sa.func.substr(RUNS.c.digest, 1, MIN_PREFIX).in_(known))
    return wanted


def intact_spec(run: str, text: str | None) -> Spec | None:
    """The spec with this digest; None, and a warning, when ``text`` is not its JSON."""
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
