"""A job at one moment."""

from dataclasses import dataclass
from typing import Literal

from ntk_core.runs import Point, Result, Spec
from ntk_core.runs.events import Estimated, PointFailed

Status = Literal["queued", "running", "completed", "cancelled", "stopped", "failed"]


@dataclass(frozen=True)
class Load:
    """How busy a server is.

    Attributes:
        workers: living worker processes.
        running: jobs that are computed.
        waiting: jobs in the queue, ``max_waiting`` at most.
        has_room: whether one more job would be accepted.
    """

    workers: int
    running: int
    waiting: int
    max_waiting: int
    has_room: bool = True


@dataclass(frozen=True)
class Snapshot:
    """A job at one moment; ``version`` grows with each change, so that an equal one needs no redrawing.

    Attributes:
        job_id: the first 16 digits of the spec's digest.
        position: place in the queue from 1; 0 when the job does not wait.
        fraction: share of the work that is done, from 0 to 1.
        remaining_s: expected remaining wall time, waiting included, None while nothing is known.
        message: current activity, for people.
        points: finished points in the order of the spec's keys.
        estimate: expected cost, None before the job began.
        result: None before the job has ended, or when it has ended without a point.
        reason: one sentence for ``failed`` and ``stopped`` (by the server), empty otherwise.
        growing: partial points (several on a cluster) whose curves are drawn while they grow, or grew until a stop.
        grown: another number for other growing points, 0 without any.
        starts_in_s: expected seconds until a waiting job begins, None for others.
    """

    job_id: str
    spec: Spec
    status: Status
    position: int
    fraction: float
    remaining_s: float | None
    message: str
    points: tuple[Point, ...]
    failures: tuple[PointFailed, ...]
    estimate: Estimated | None
    result: Result | None
    reason: str
    version: int
    growing: tuple[Point, ...] = ()
    grown: int = 0
    starts_in_s: float | None = None

    @property
    def active(self) -> bool:
        """Whether the job waits or runs."""
        return self.status in ("queued", "running")
