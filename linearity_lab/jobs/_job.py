"""One job: what is known about it, changed by the events of its worker. Guarded by the lock of its ``Jobs``."""

import math
import time
from collections.abc import Callable, Iterable, Mapping

from linearity_lab.jobs._process import WorkerProcess
from linearity_lab.jobs._snapshot import Snapshot, Status
from ntk_core.runs import EXPERIMENTS, EndStatus, Point, Result, Spec, learn, work_of_points
from ntk_core.runs.events import Ended, Estimated, Event, PointFailed, PointFinished, PointProgress, PointStarted
from ntk_core.runs.store import UnfinishedJob

# Where so many workers die at one point, another one would die too.
MAX_STARTS = 3
# How long a job runs, first, while jobs of others wait.
TURN_S = 60.0
# A worker that is killed before it could begin says nothing about the job, but it cannot go on like that for ever.
MAX_LOST = 20


class Job:
    """A spec that becomes a result.

    Args:
        result: from the store, when the spec has been computed before.

    Attributes:
        owner: the viewer who asked for it, whose turn in the queue it takes.
        address: where that viewer came from.
        submitted_s: when, in seconds since 1970.
        expected_s: what all of it should take.
        allowed_s: how long it may run.
        turn_s: how long it runs before it gives way to others.
        verdict: why the server ends it, one sentence; empty while it does not.
        stopping: asked to stop, not stopped yet.
        wants_again: submitted again while it was stopping.
        num_starts: how often it has begun since its last finished point.
        worker: the process that computes it.
    """

    def __init__(self, spec: Spec, job_id: str, result: Result | None = None):
        self.spec, self.job_id = spec, job_id
        self.status: Status = "cancelled"
        self.owner = self.address = ""
        self.submitted_s = self.expected_s = 0.0
        self.allowed_s, self._spent_s, self.turn_s = math.inf, 0.0, TURN_S
        self._since: float | None = None  # it has run since then
        self.verdict = ""
        self.stopping = self.wants_again = False
        self.num_starts = self._num_lost = 0
        self.worker: WorkerProcess | None = None
        self._viewers: dict[str, float] | None = None  # when each has looked last; None: nobody is known by name
        self._points: dict[str, Point] = {}  # by key
        self._growing: dict[str, Point] = {}  # by key; several on a cluster
        self._grown = 0  # how often one of them has come to more
        self._current = ""  # the point that is computed
        self._failures: dict[str, PointFailed] = {}
        self._fraction = 0.0
        self._remaining_s: float | None = None
        self._remaining_since = 0.0
        self._message = self._reason = self._interruption = ""
        self._estimate: Estimated | None = None
        self._result: Result | None = None
        self._version = 0
        if result is not None:
            self.take(Ended(status=result.status, result=result))

    @property
    def result(self) -> Result | None:
        return self._result

    @property
    def active(self) -> bool:
        return self.status in ("queued", "running")

    def snapshot(self, position: int = 0, starts_in_s: float | None = None) -> Snapshot:
        return Snapshot(
            job_id=self.job_id,
            spec=self.spec,
            status=self.status,
            position=position,
            fraction=self._fraction,
            remaining_s=self._remaining_s if starts_in_s is None else starts_in_s + self.left_s(),
            message=self._message,
            points=self._in_order(self._points),
            failures=tuple(self._failures.values()),
            estimate=self._estimate,
            result=self._result,
            reason=self._reason,
            version=self._version,
            growing=self._in_order(self._growing),
            grown=self._grown if self._growing else 0,
            starts_in_s=starts_in_s,
            interruption=self._interruption,
        )

    def spent_s(self) -> float:
        """How long it has run since it was submitted, on servers that have ended too."""
        return self._spent_s + (0.0 if self._since is None else time.monotonic() - self._since)

    def ask(self, viewer: str, address: str, expected_s: float, allowed_s: float) -> None:
        """Somebody wants it computed."""
        self.owner, self.address, self.submitted_s = viewer, address, time.time()
        self.expected_s, self.allowed_s = expected_s, allowed_s

    def inherit(self, left: UnfinishedJob) -> None:
        """An earlier server did not finish it."""
        self._spent_s = left.spent_s
        self._viewers = {}  # nobody has asked for it here

    def clock(self) -> UnfinishedJob:
        allowed = self.allowed_s if math.isfinite(self.allowed_s) else None
        running = self.status == "running"
        return UnfinishedJob(self.spec, self.owner, self.submitted_s, running, self.spent_s(), allowed)

    def left_s(self) -> float:
        """Expected seconds until it ends once it has a worker; what is foreseen until something has been measured."""
        if self._remaining_s is None:
            return self.expected_s * (1 - self._fraction)
        return max(0.0, self._remaining_s - (time.monotonic() - self._remaining_since))

    def finished_keys(self) -> frozenset[str]:
        return frozenset(self._points)

    def change(self) -> None:
        self._version += 1

    def see(self, viewer: str, now: float) -> None:
        """Note that ``viewer`` looks; nobody is noted for a snapshot without a viewer."""
        if viewer and self.active:
            self._viewers = {**(self._viewers or {}), viewer: now}

    def leave(self, viewer: str) -> None:
        """Forget ``viewer``."""
        if self._viewers is not None:
            self._viewers.pop(viewer, None)

    def keep_viewers(self, is_here: Callable[[str, float], bool]) -> None:
        """Forget all viewers who are not here any more, by name and when they looked last."""
        if self._viewers is not None:
            self._viewers = {name: seen for name, seen in self._viewers.items() if is_here(name, seen)}

    @property
    def num_viewers(self) -> int | None:
        """Known viewers; None when it was never told who looks."""
        return None if self._viewers is None else len(self._viewers)

    def wait(self) -> None:
        """Into the queue, keeping the points of earlier attempts in sight."""
        self.status = "queued"
        self.stopping = self.wants_again = False
        self.num_starts = self._num_lost = 0
        self._failures, self._result = {}, None
        self._reason = self._interruption = self.verdict = ""
        self._spent_s, self._since = 0.0, None
        self._growing = {}
        self._fraction, self._remaining_s, self._message = 0.0, None, "waiting for a free worker"
        self.change()

    @property
    def had_its_turn(self) -> bool:
        """Whether it has run long enough to give way; a job that may run for any time gives way to nobody."""
        ran = 0.0 if self._since is None else time.monotonic() - self._since
        return ran > self.turn_s and math.isfinite(self.allowed_s) and not self.stopping

    def give_way(self) -> None:
        """Back into the queue, as if it had never left it; its next turn is twice as long, so that it ends."""
        spent, fraction = self.spent_s(), self._fraction
        self.wait()
        self._spent_s, self._fraction, self.turn_s, self.worker = spent, fraction, 2 * self.turn_s, None
        done = f"{len(self._points)} of {len(self.spec.point_keys())}"
        self._interruption = f"it gave way to runs of others; it goes on from its finished points ({done})"

    def begin(self) -> None:
        self.status = "running"
        self.num_starts += 1
        self._since = time.monotonic() if self._since is None else self._since
        self._message = "starting"
        self.change()

    def stop(self) -> None:
        self.stopping = True
        self.wants_again = False
        self._message = "stopping"
        self.change()

    def run_again(self) -> None:
        self.wants_again = True
        self._message = "starting again"
        self.change()

    def end(self, status: EndStatus, reason: str = "") -> None:
        """The end; what a stopped job had drawn of a point stays in sight."""
        if status == "cancelled" and self.verdict:
            status, reason = "stopped", self.verdict
        self._spent_s, self._since = self.spent_s(), None
        self.status, self._reason = status, reason
        self._remaining_s, self._message = None, ""
        self._growing = self._growing if status in ("cancelled", "stopped") else {}
        self._fraction = 1.0 if status == "completed" else self._fraction
        if self._result is None and status != "completed":
            self._result = self._result_so_far(status)
        self.stopping = False
        self.worker = self._viewers = None
        self.change()

    def lose_worker(self, cause: str, *, at_start: bool = False) -> bool:
        """Its worker has died; whether to begin again, from the finished points. If not, it has failed.

        Args:
            at_start: killed before it could begin with the job.
        """
        at = f" at {self._current.replace('=', ' ')}" if self._current else ""
        self._num_lost += 1
        self.num_starts -= at_start
        if self.num_starts >= MAX_STARTS or self._num_lost >= MAX_LOST:
            advice = "choose smaller widths or fewer seeds, or run it again to continue from the finished points"
            self.end("failed", f"{cause}; this happened {self._num_lost} times{at} without a new point, so {advice}")
            return False
        done = f"{len(self._points)} of {len(self.spec.point_keys())}"
        self._interruption = f"{cause}{at}; another one continued from the finished points ({done})"
        self.worker = self._remaining_s = None
        self._growing = {}
        self.begin()
        self._message = "starting again"
        return True

    def recall(self, points: Iterable[Point], message: str, *, stopped: bool = False) -> None:
        """Take what an interrupted run of an earlier server left; ``stopped`` when that server stopped it."""
        self._keep(points)
        self.status = "stopped" if stopped else self.status
        self._result = self._result_so_far("stopped" if stopped else "cancelled")
        self._message = message
        self._reason = message if self.status in ("failed", "stopped") else ""
        self.change()

    def take(self, event: Event) -> None:
        """Note what the worker tells."""
        match event:
            case Estimated():
                self._estimate = event
            case PointStarted():
                self._current = event.key
                self._note(event.key.replace("=", " ").replace(",", ", ") + ": starting")
            case PointProgress():
                self._progress(event)
                if event.point is not None:
                    self._growing[event.key] = event.point
                    self._grown += 1
                self._note(event.message)
            case PointFinished():
                self._growing.pop(event.key, None)
                self._keep((event.point,))
                self._progress(event)
                self._current = ""
                if not event.resumed:
                    self.num_starts, self._num_lost = 1, 0
                    learn([(work_of_points(self.spec)[event.key], event.point.runtime_s)])
            case PointFailed():
                self._growing.pop(event.key, None)
                self._current = ""
                self._failures[event.key] = event
            case Ended():
                if event.result is not None:
                    self._result = event.result
                    self._keep(event.result.points)
                self.end(event.status, event.reason)
        self.change()

    def _keep(self, points: Iterable[Point]) -> None:
        self._points.update({point.key: point for point in points})

    def _in_order(self, points: Mapping[str, Point]) -> tuple[Point, ...]:
        return tuple(points[key] for key in self.spec.point_keys() if key in points)

    def _result_so_far(self, status: EndStatus) -> Result | None:
        """The result that the worker would have told, had it been there to do so; None without points."""
        points = self._in_order(self._points)
        known = [point.provenance for point in points if point.provenance is not None]
        if not known:
            return None
        return EXPERIMENTS[self.spec.experiment].result(
            spec=self.spec,
            points=points,
            provenance=max(known, key=lambda each: each.started_at),
            status=status,
            runtime_s=sum(point.runtime_s for point in points),
        )

    def _progress(self, event: PointProgress | PointFinished) -> None:
        self._fraction, self._remaining_s = event.fraction, event.remaining_s
        self._remaining_since = time.monotonic()

    def _note(self, message: str) -> None:
        if not self.stopping:
            self._message = message
