"""Lists of stored runs, filtered and page by page, without their large texts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from ntk_core.errors import InvalidInput
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs.store._database import RUNS
from ntk_core.runs.store._rows import NUM_BYTES, NUM_POINTS, intact_spec

MIN_PREFIX = 16
MAX_NAME, MAX_NOTE = 80, 500
# Longer searches find nothing that shorter ones do not; databases refuse patterns and conditions without end.
MAX_SEARCH, MAX_WORDS = 400, 12
OLDER = "older"
STATUSES = ("completed", "cancelled", "stopped", "failed", "started", OLDER)
LISTED = (*RUNS.c, NUM_POINTS.label("num_points"), NUM_BYTES.label("num_bytes"))


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


@dataclass(frozen=True)
class RunList:
    """One page of a list of runs, most recently used first.

    Attributes:
        total: number of runs on all pages.
    """

    runs: tuple[StoredRun, ...]
    total: int


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


def stored_run(row: sa.Row[tuple[object, ...]]) -> StoredRun:
    """A row of the table as an entry of the list."""
    older = row.schema_version != SCHEMA_VERSION
    found = {name: value for name, value in row._mapping.items() if name in StoredRun.__dataclass_fields__}
    found["spec"] = None if older else intact_spec(row.digest, row.spec)
    return StoredRun(**found | {"status": OLDER if older else row.status})
