"""How long unfinished jobs have run and may run, and which of them an operator wants ended: a table of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ntk_core.runs.store._entries import intact_spec
from ntk_core.runs.store._tables import CLOCKS, JOBS, insert_once

if TYPE_CHECKING:
    from ntk_core.runs._spec import Spec
    from ntk_core.runs.store._database import Database


@dataclass(frozen=True)
class JobClock:
    """The clock of one job.

    Attributes:
        running: False while it waits.
        spent_s: how long it has run, on earlier servers too.
        allowed_s: how long it may run; None for any time.
    """

    digest: str
    running: bool
    spent_s: float
    allowed_s: float | None


@dataclass(frozen=True)
class ListedJob:
    """An unfinished job as an operator sees it.

    Attributes:
        visitor: digits that tell those who asked for jobs apart, and nothing about them.
        submitted_s: when, in seconds since 1970.
        spec: None where it cannot be read.
        ending: an operator has asked to end it, and its server has not done so yet.
    """

    digest: str
    spec: Spec | None
    visitor: str
    submitted_s: float
    running: bool
    spent_s: float
    allowed_s: float | None
    ending: bool

    def as_json(self) -> dict[str, object]:
        """As an operator is told of it; the settings of runs on somebody's own data are not."""
        told = {name: value for name, value in asdict(self).items() if name != "spec"}
        spec = self.spec if self.spec is not None and not self.spec.is_private else None
        experiment = "" if self.spec is None else self.spec.experiment
        return {**told, "experiment": experiment, "spec": spec and spec.model_dump(mode="json")}


def write_clocks(database: Database, clocks: Iterable[JobClock]) -> None:
    """Write down the clocks of these jobs; what an operator has asked of them stays.

    Raises:
        InvalidInput: when the database does not answer.
    """
    rows = [_row(clock) for clock in clocks]

    def write(connection: sa.Connection) -> None:
        for row in rows:
            if not insert_once(connection, CLOCKS, {**row, "ending": False}):
                connection.execute(sa.update(CLOCKS).where(CLOCKS.c.digest == row["digest"]).values(row))

    if rows:
        database.do(write)


def jobs_to_end(database: Database) -> frozenset[str]:
    """Digests of the jobs that an operator wants ended.

    Raises:
        InvalidInput: when the database does not answer.
    """
    query = sa.select(CLOCKS.c.digest).where(CLOCKS.c.ending)
    return frozenset(database.do(lambda connection: connection.scalars(query).all()))


def unfinished_jobs(database: Database) -> tuple[ListedJob, ...]:
    """The unfinished jobs of all servers of this store, the oldest first.

    Raises:
        InvalidInput: when the database does not answer.
    """
    joined = JOBS.outerjoin(CLOCKS, JOBS.c.digest == CLOCKS.c.digest)
    columns = (JOBS.c.digest, JOBS.c.spec, JOBS.c.owner, JOBS.c.submitted, *(c for c in CLOCKS.c if c.name != "digest"))
    query = sa.select(*columns).select_from(joined).order_by(JOBS.c.submitted)
    found = {}
    for row in database.do(lambda connection: connection.execute(query).all()):
        found[row.digest] = ListedJob(
            row.digest,
            intact_spec(row.digest, row.spec),
            hashlib.sha256(row.owner.encode()).hexdigest()[:6] if row.owner else "",
            row.submitted,
            bool(row.running),
            row.spent or 0.0,
            row.allowed,
            bool(row.ending),
        )
    return tuple(found.values())


def ask_to_end(database: Database, run: str) -> None:
    """Let the server whose job this is end it; a server that starts later does so when it inherits the job.

    Raises:
        InvalidInput: when the database does not answer.
    """

    def ask(connection: sa.Connection) -> None:
        row = {**_row(JobClock(run, False, 0.0, None)), "ending": True}
        if not insert_once(connection, CLOCKS, row):
            connection.execute(sa.update(CLOCKS).where(CLOCKS.c.digest == run).values(ending=True))

    database.do(ask)


def _row(clock: JobClock) -> dict[str, object]:
    return {
        "digest": clock.digest,
        "running": clock.running,
        "spent": clock.spent_s,
        "allowed": clock.allowed_s,
    }
