"""Unfinished jobs in the store: the next server resumes them, and the command line lists and ends them."""

from __future__ import annotations

import hashlib
import socket
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ntk_core.runs._parse import spec_digest
from ntk_core.runs.store._database import JOBS, RUNS
from ntk_core.runs.store._rows import intact_spec

if TYPE_CHECKING:
    from ntk_core.runs._spec import Spec

# In a database of several servers, the jobs of one that was silent for this long go to the next one that starts.
SILENT_S = 60.0


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
        return {
            **shown,
            "digest": self.digest,
            "visitor": self.visitor,
            "experiment": self.spec.experiment,
            "spec": spec,
        }


def write_job(connection: sa.Connection, job: UnfinishedJob) -> None:
    """Update the row of a job, or insert one; whether it is to end stays as it is."""
    row = {"server": socket.gethostname(), "seen": time.time(), "owner": job.owner, "submitted": job.submitted_s}
    row |= {"running": job.running, "spent": job.spent_s, "allowed": job.allowed_s}
    if not connection.execute(sa.update(JOBS).where(JOBS.c.digest == job.digest).values(row)).rowcount:
        connection.execute(sa.insert(JOBS).values(row | {"digest": job.digest, "ending": False}))


def unfinished_jobs(connection: sa.Connection) -> tuple[UnfinishedJob, ...]:
    """All jobs whose settings can be read, the oldest first."""
    return _jobs(connection, sa.true())


def claim_jobs(connection: sa.Connection, *, all_of_them: bool) -> tuple[UnfinishedJob, ...]:
    """Take over the jobs that no running server has; the oldest first."""
    orphaned = sa.or_(
        sa.literal(all_of_them), JOBS.c.server == socket.gethostname(), JOBS.c.seen < time.time() - SILENT_S
    )
    if connection.dialect.name == "postgresql":  # a server that starts at the same moment waits, and finds them taken
        connection.execute(sa.select(JOBS.c.digest).where(orphaned).with_for_update()).all()
    found = _jobs(connection, orphaned)
    for job in found:
        write_job(connection, job)
    return found


def _jobs(connection: sa.Connection, wanted: sa.ColumnElement[bool]) -> tuple[UnfinishedJob, ...]:
    query = sa.select(*JOBS.c, RUNS.c.spec).join(RUNS, RUNS.c.digest == JOBS.c.digest).where(wanted)
    found = []
    for row in connection.execute(query.order_by(JOBS.c.submitted)):
        spec = intact_spec(row.digest, row.spec)
        if spec is not None:
            found.append(UnfinishedJob(spec, row.owner, row.submitted, row.running, row.spent, row.allowed, row.ending))
    return tuple(found)
