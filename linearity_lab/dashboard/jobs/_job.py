"""One job: its state for pages, updates by the events of its run, and limits on new jobs."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from linearity_lab.dashboard.jobs.profile import Profile
from linearity_lab.dashboard.jobs.worker import WorkerComputation
from linearity_lab.runs import EndStatus, Point, Result, Spec, estimate, spec_digest
from linearity_lab.runs.events import (
    Cause,
    Ended,
    Event,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
)
from linearity_lab.runs.store import MIN_PREFIX, Store, UnfinishedJob, partial_result
from ntk_core.errors import InvalidInput
from ntk_core.numbers import key_words, size

MAX_PER_SESSION = 2  # a running and a waiting one
MAX_PREVIEWS = 2  # of one visitor, in two windows
STOPPED = "stopped by the server; run it again to continue from its finished points"
MADE_WAY = "waiting again, since no one followed it and others waited"
YIELD_S = 60.0  # without a viewer, after which a run makes way for waiting ones; our choice
LEAST_BYTES = 20_000  # of an ended job in memory, beside its points; our choice
# A run is late if it takes this multiple of the estimated seconds, and these seconds more: our
# choice.
FAR_OFF = 2.0
FAR_OFF_S = 20.0
# Python objects of a point take about three times the bytes of its JSON (measured on
# 400 MB of numbers).
OBJECT_FACTOR = 3
Status = Literal["queued", "running", "completed", "cancelled", "stopped", "failed"]


class Ahead(NamedTuple):
    """A running job as others see it: without its owner and settings.

    Attributes:
        left_s: expected seconds left; None if it takes longer than was estimated.
        most_s: seconds after which the server ends it.
    """

    experiment: str
    left_s: float | None
    most_s: float


@dataclass(frozen=True)
class Snapshot:
    """State of a job.

    Attributes:
        job_id: the first 16 digits of the spec's digest.
        position: place in the queue from 1; 0 if it is not waiting.
        fraction, remaining_s, message: see ``PointProgress``.
        points: finished points in the order of the spec's keys.
        growing: partial points (several on a cluster), drawn while they grow and after an early
            end.
        grown: version of the partial points, 0 without any.
        result: None before the end of the job, or after an end without points.
        reason: one sentence for ``failed`` and ``stopped`` (by the server), empty otherwise.
        cause: why it ended early, for programs; None for other ends.
        ahead: for a waiting job, the running ones.
        owners: visitors who started it; empty on a local server.
        num_unloaded: finished points in the store that are too large to be shown here.
        late_s: estimated time of a run that takes far longer than that; 0 for others.
        is_preview: whether it started by itself; its first mark comes within seconds.
    """

    job_id: str
    spec: Spec
    status: Status = "cancelled"
    position: int = 0
    fraction: float = 0.0
    remaining_s: float | None = None
    message: str = ""
    points: tuple[Point, ...] = ()
    growing: tuple[Point, ...] = ()
    grown: int = 0
    failures: tuple[PointFailed, ...] = ()
    result: Result | None = None
    reason: str = ""
    cause: Cause | None = None
    ahead: tuple[Ahead, ...] = ()
    owners: frozenset[str] = frozenset()
    num_unloaded: int = 0
    late_s: float = 0.0
    is_preview: bool = False

    @property
    def active(self) -> bool:
        """Whether the job waits or runs."""
        return self.status in ("queued", "running")


@dataclass(eq=False)
class Job:
    """The computation of a spec, guarded by the lock of its ``Jobs``.

    Attributes:
        now: its state for pages.
        owner: the visitor who started it, against whose limits it counts.
        owners: all visitors who started it while it was unfinished; only they stop it.
        address: network address of that session, empty if unknown.
        viewers: sessions that follow it → their visitor if that is an owner, else empty.
        left_s: time (monotonic) since which no viewer is connected; None while one is,
            or if none is known.
        is_preview: whether it started by itself, so that it yields to runs.
        quick_s: running time after which a quick run stops.
        expected_s: running time that was estimated at its beginning.
        point_bytes: JSON bytes of its finished points by key.
        computation: its run in a worker, or None.
    """

    spec: Spec
    owner: str = ""
    address: str = ""
    owners: set[str] = field(default_factory=set)
    viewers: dict[str, str] = field(default_factory=dict)
    left_s: float | None = None
    is_preview: bool = False
    quick_s: float = math.inf
    expected_s: float = math.inf
    point_bytes: dict[str, int] = field(default_factory=dict)
    submitted_s: float = 0.0
    computation: WorkerComputation | None = None
    _began_s: float = 0.0
    _arrived: dict[str, Point] = field(default_factory=dict)  # partial points, not yet shown
    _showed_s: float = -math.inf

    def __post_init__(self) -> None:
        self.now = Snapshot(spec_digest(self.spec)[:MIN_PREFIX], self.spec)

    @classmethod
    def recalled(cls, store: Store, spec: Spec, max_bytes: float = math.inf) -> "Job":
        """Return a job with its stored points or result, without the arrays beside the points.

        Args:
            max_bytes: JSON bytes of all points; a larger result is shown in part, with the reason.
        """
        job = cls(spec)
        run = spec_digest(spec)
        job.owners = set(store.owners(run))
        job.point_bytes = store.stored_bytes(run)
        if (stored := sum(job.point_bytes.values())) > max_bytes:
            job.keep(store.points_of(run, arrays=False, max_bytes=max_bytes).values())
            num_unloaded = len(job.point_bytes) - len(job.now.points)
            job.now = replace(job.now, num_unloaded=num_unloaded)
            job.point_bytes = {
                point.key: job.point_bytes.get(point.key, 0) for point in job.now.points
            }
            reason = (
                f"its stored result takes {size(stored)}, {size(max_bytes)} can be shown here; the "
                f"command linearity-lab show {job.now.job_id} reads all of it"
            )
            job.end("stopped", reason, Cause.OVER_SIZE)
            return job
        result = store.result(run, arrays=False)
        if result is not None and result.status in ("completed", "stopped"):
            job.take(
                Ended(
                    status=result.status,
                    result=result,
                    reason=STOPPED if result.status == "stopped" else "",
                )
            )
        else:
            job.keep(store.points_of(run, arrays=False).values())
            job.end("cancelled")
        return job

    @property
    def status(self) -> Status:
        return self.now.status

    @property
    def num_bytes(self) -> int:
        """Memory of its points, estimated from their JSON."""
        return LEAST_BYTES + OBJECT_FACTOR * sum(self.point_bytes.values())

    @property
    def is_abandoned(self) -> bool:
        """Whether its last viewer left more than a minute ago."""
        return self.left_s is not None and time.monotonic() - self.left_s > YIELD_S

    def note_viewers(self, is_connected: Callable[[str], bool]) -> None:
        """Record whether a viewer is connected; jobs without any known viewer count as followed."""
        if any(map(is_connected, self.viewers)):
            self.left_s = None
        elif self.left_s is None and self.viewers:
            self.left_s = time.monotonic()

    def leave_worker(self, *, keep: bool) -> None:
        """End the computation, with its worker or without."""
        if self.computation is None:
            return
        if keep:
            self.computation.ask_to_end()
        else:
            self.computation.kill()

    @property
    def has_mark(self) -> bool:
        """Whether it has anything to draw: a finished or a partial point."""
        return bool(self.now.points or self.now.growing)

    def make_way(self) -> None:
        """End the computation and wait again.

        Keep finished points, and partial ones of previews.
        """
        self.show_arrived()
        self.leave_worker(keep=self.is_preview)
        self.computation = None
        self.now = replace(self.now, status="queued", message=MADE_WAY, remaining_s=None)
        if not self.is_preview:
            self.now = replace(self.now, growing=(), grown=0)

    def spent_s(self) -> float:
        """Elapsed run time in seconds."""
        return time.monotonic() - self._began_s if self.status == "running" else 0.0

    def late_s(self) -> float:
        """Return the estimated time of a late run; else 0.

        A run is late if it takes far longer by its measured speed.
        """
        whole_s = self.spent_s() + (self.now.remaining_s or 0.0)
        is_late = whole_s > max(FAR_OFF * self.expected_s, self.expected_s + FAR_OFF_S)
        return self.expected_s if is_late else 0.0

    def row(self, max_s: float) -> UnfinishedJob:
        """Stored form of an unfinished job."""
        allowed_s = max_s if max_s < math.inf else None
        is_running = self.status == "running"
        return UnfinishedJob(
            self.spec, self.owner, self.submitted_s, is_running, self.spent_s(), allowed_s
        )

    def wait(self, owner: str, address: str = "") -> None:
        """Queue the job for a visitor, and keep the points of earlier runs."""
        self.owner = owner
        self.address = address
        self.submitted_s = time.time()
        self.left_s = None
        points = self.now.points
        message = "waiting for a free worker"
        self.now = Snapshot(self.now.job_id, self.spec, "queued", points=points, message=message)

    def begin(self) -> None:
        """Start running."""
        self._began_s = time.monotonic()
        done = {point.key: point.runtime_s for point in self.now.points}
        self.expected_s = estimate(self.spec, done).seconds
        self.now = replace(self.now, status="running", message="starting")

    def end(self, status: EndStatus, reason: str = "", cause: Cause | None = None) -> None:
        """End it and keep partial points."""
        self.show_arrived()
        points: dict[str, Point] = {point.key: point for point in self.now.points}
        fraction = 1.0 if status == "completed" else self.now.fraction
        result = self.now.result or partial_result(self.spec, points, status)
        self.now = replace(
            self.now,
            status=status,
            reason=reason,
            cause=cause,
            remaining_s=None,
            message="",
            result=result,
            fraction=fraction,
        )
        self.computation = None

    def keep(self, points: Iterable[Point]) -> None:
        """Add finished points."""
        self.now = replace(self.now, points=self._merged(self.now.points, points))

    def take(self, event: Event) -> None:
        """Record an event of the run."""
        match event:
            case PointStarted():
                self.now = replace(self.now, message=f"{key_words(event.key)}: starting")
            case PointProgress():
                self.now = replace(
                    self.now,
                    message=event.message,
                    fraction=event.fraction,
                    remaining_s=event.remaining_s,
                )
                if event.point is not None:
                    self._arrived[event.key] = event.point
                if not self.has_mark:
                    self.show_arrived()
            case PointFinished():
                self._drop(event.key)
                self.keep([event.point])
                self.now = replace(self.now, fraction=event.fraction, remaining_s=event.remaining_s)
            case PointFailed():
                self._drop(event.key)
                self.now = replace(self.now, failures=(*self.now.failures, event))
            case Ended():
                if event.result is not None:
                    # A worker sends each point once, so its result may come without them.
                    self.keep(event.result.points)
                    whole = event.result.model_copy(update={"points": self.now.points})
                    self.now = replace(self.now, result=whole)
                self.end(event.status, event.reason, event.cause)

    def show_arrived(self, every_s: float = 0.0) -> None:
        """Show the partial points that have arrived, if the last ones were shown long enough ago.

        All followers draw each picture, so a crowd has fewer of them.
        """
        now_s = time.monotonic()
        if not self._arrived or now_s - self._showed_s < every_s:
            return
        self._showed_s = now_s
        growing = self._merged(self.now.growing, self._arrived.values())
        self.now = replace(self.now, growing=growing, grown=self.now.grown + 1)
        self._arrived = {}

    def _drop(self, key: str) -> None:
        """Forget a partial point."""
        self._arrived.pop(key, None)
        left = tuple(point for point in self.now.growing if point.key != key)
        self.now = replace(self.now, growing=left, grown=self.now.grown + 1 if left else 0)

    def _merged(self, known: Iterable[Point], added: Iterable[Point]) -> tuple[Point, ...]:
        """Return points in the order of the spec's keys."""
        points = {point.key: point for point in (*known, *added)}
        return tuple(points[key] for key in self.spec.point_keys() if key in points)


class NoRoom(InvalidInput):
    """Error for a job beyond the limit of the server, a session, or a network address."""

    template = "{}: {} cannot be taken; try again {}"


def check_room(
    active: Sequence[Job], limits: Profile, owner: str, address: str, *, is_preview: bool = False
) -> None:
    """Refuse a job beyond a limit; previews count by themselves."""
    active = [job for job in active if job.is_preview == is_preview]
    if is_preview and owner and sum(job.owner == owner for job in active) >= MAX_PREVIEWS:
        raise NoRoom("preview", "a third one of yours", "when one has ended")
    if limits.is_shared and owner and sum(job.owner == owner for job in active) >= MAX_PER_SESSION:
        raise NoRoom("run", "a third unfinished run of yours", "when one has ended or is stopped")
    if address and sum(job.address == address for job in active) >= limits.max_per_address:
        what = (
            f"one more than {limits.max_per_address:.0f} unfinished runs from your network address"
        )
        raise NoRoom("run", what, "when one of them has ended")
    if sum(job.status == "queued" for job in active) >= limits.max_waiting:
        raise NoRoom(
            "run",
            f"one more than {limits.max_waiting} waiting jobs",
            "in a moment, when one has started",
        )
