"""One job, changed by the events of its run. Guarded by the lock of its ``Jobs``."""

import time
from collections.abc import Iterable, Mapping

from linearity_lab.jobs._pool import Computation
from linearity_lab.jobs._snapshot import Snapshot, Status
from ntk_core.runs import EXPERIMENTS, EndStatus, Point, Result, Spec, learn, work_of_points
from ntk_core.runs.events import Ended, Estimated, Event, PointFailed, PointFinished, PointProgress, PointStarted


class Job:
    """A spec that becomes a result.

    Args:
        result: from the store, when the spec has been computed before.

    Attributes:
        owner: the session that started it, in whose place it waits and runs.
        viewers: sessions that follow it; each of them may stop it as long as no other one is there.
        submitted_s: when it was started, in seconds since 1970.
        expected_s: expected seconds of all of it.
        turn: how often it has begun here.
        computation: its run in a worker, None while it has none.
    """

    def __init__(self, spec: Spec, job_id: str, result: Result | None = None):
        self.spec, self.job_id = spec, job_id
        self.status: Status = "cancelled"
        self.owner = ""
        self.viewers: set[str] = set()
        self.submitted_s = self.expected_s = 0.0
        self.turn = 0
        self.computation: Computation | None = None
        self._began = 0.0
        self._points: dict[str, Point] = {}  # by key
        self._growing: dict[str, Point] = {}  # by key; several on a cluster
        self._grown = 0  # counts their changes
        self._failures: dict[str, PointFailed] = {}
        self._fraction = 0.0
        self._remaining_s: float | None = None
        self._remaining_since = 0.0
        self._message = self._reason = ""
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
        )

    def spent_s(self) -> float:
        """Seconds for which it has run."""
        return time.monotonic() - self._began if self.status == "running" else 0.0

    def left_s(self) -> float:
        """Expected seconds until it ends once it has a worker."""
        if self._remaining_s is None:
            return self.expected_s * (1 - self._fraction)
        return max(0.0, self._remaining_s - (time.monotonic() - self._remaining_since))

    def finished_keys(self) -> frozenset[str]:
        return frozenset(self._points)

    def change(self) -> None:
        self._version += 1

    def wait(self, owner: str) -> None:
        """Put it into the queue; the points of earlier runs stay."""
        self.owner, self.submitted_s, self.status = owner, time.time(), "queued"
        self._failures, self._growing, self._result, self._reason = {}, {}, None, ""
        self._fraction, self._remaining_s, self._message = 0.0, None, "waiting for a free worker"
        self.change()

    def begin(self) -> None:
        self.status, self._began, self._message = "running", time.monotonic(), "starting"
        self.turn += 1
        self.change()

    def end(self, status: EndStatus, reason: str = "") -> None:
        """End it; the partial points of a stopped job stay."""
        self.status, self._reason = status, reason
        self._remaining_s, self._message, self.computation = None, "", None
        self._growing = self._growing if status in ("cancelled", "stopped") else {}
        self._fraction = 1.0 if status == "completed" else self._fraction
        if self._result is None and status != "completed":
            self._result = self._partial_result(status)
        self.change()

    def recall(self, points: Iterable[Point], message: str, *, stopped: bool = False) -> None:
        """Take the points of an earlier server; ``stopped`` when that server ended the job."""
        self._keep(points)
        self.status = "stopped" if stopped else self.status
        self._result = self._partial_result("stopped" if stopped else "cancelled")
        self._message = message
        self._reason = message if stopped else ""
        self.change()

    def take(self, event: Event) -> None:
        """Record an event of the run."""
        match event:
            case Estimated():
                self._estimate = event
            case PointStarted():
                self._message = event.key.replace("=", " ").replace(",", ", ") + ": starting"
            case PointProgress():
                self._progress(event)
                if event.point is not None:
                    self._growing[event.key] = event.point
                    self._grown += 1
                self._message = event.message
            case PointFinished():
                self._growing.pop(event.key, None)
                self._keep((event.point,))
                self._progress(event)
                if not event.resumed:
                    learn([(work_of_points(self.spec)[event.key], event.point.runtime_s)])
            case PointFailed():
                self._growing.pop(event.key, None)
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

    def _partial_result(self, status: EndStatus) -> Result | None:
        """The result of the finished points, as the run itself would have made it; None without points."""
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
