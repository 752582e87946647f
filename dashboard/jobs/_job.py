"""One job: what is known about it, changed by the events of its worker. Guarded by the lock of its ``Jobs``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dashboard.jobs._process import WorkerProcess
from dashboard.jobs._snapshot import Snapshot, Status
from ntk_core.events import Ended, Estimated, Event, PointFailed, PointFinished, PointProgress, PointStarted
from ntk_core.results import Point, Result
from ntk_core.specs import Spec


class Job:
    """A spec on its way to its result.

    Args:
        result: from the store, when the spec has been computed before.

    Attributes:
        attempt: number of times that the job has begun.
        stopping: asked to stop, not stopped yet.
        wants_again: submitted again while it was stopping.
        worker: the process that computes it.
    """

    def __init__(self, spec: Spec, job_id: str, result: Result | None = None):
        self.spec, self.job_id = spec, job_id
        self.status: Status = "cancelled"
        self.attempt = 0
        self.stopping = self.wants_again = False
        self.worker: WorkerProcess | None = None
        self._viewers: dict[str, float] = {}
        self._points: dict[str, Point] = {}  # by key
        self._growing: Point | None = None
        self._failures: dict[str, PointFailed] = {}
        self._fraction = 0.0
        self._remaining_s: float | None = None
        self._message = self._reason = ""
        self._estimate: Estimated | None = None
        self._result: Result | None = None
        self._version = 0
        if result is not None:
            self.take(Ended(status=result.status, result=result))

    @property
    def active(self) -> bool:
        return self.status in ("queued", "running")

    def snapshot(self, position: int) -> Snapshot:
        return Snapshot(
            job_id=self.job_id,
            spec=self.spec,
            status=self.status,
            position=position,
            fraction=self._fraction,
            remaining_s=self._remaining_s,
            message=self._message,
            points=tuple(self._points[key] for key in self.spec.point_keys() if key in self._points),
            failures=tuple(self._failures.values()),
            estimate=self._estimate,
            result=self._result,
            reason=self._reason,
            version=self._version,
            growing=self._growing,
        )

    def change(self) -> None:
        self._version += 1

    def see(self, viewer: str, now: float) -> None:
        """Note that ``viewer`` looks; nobody is noted for a snapshot without a viewer."""
        if viewer:
            self._viewers[viewer] = now

    def leave(self, viewer: str, since: float) -> bool:
        """Forget ``viewer`` and all who have not looked since; whether somebody else is left."""
        self._viewers = {name: seen for name, seen in self._viewers.items() if name != viewer and seen >= since}
        return bool(self._viewers)

    def wait(self) -> None:
        """Into the queue, keeping the points of earlier attempts in sight."""
        self.status = "queued"
        self.stopping = self.wants_again = False
        self._failures, self._result, self._reason = {}, None, ""
        self._growing = None
        self._fraction, self._remaining_s, self._message = 0.0, None, "waiting for a free worker"
        self.change()

    def begin(self) -> None:
        self.status = "running"
        self.attempt += 1
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

    def end(self, status: Literal["completed", "cancelled", "failed"], reason: str = "") -> None:
        self.status, self._reason = status, reason
        self._remaining_s, self._message, self._growing = None, "", None
        self._fraction = 1.0 if status == "completed" else self._fraction
        self.stopping = False
        self.change()

    def recall(self, points: Iterable[Point], message: str) -> None:
        """Take what an interrupted run of an earlier server left."""
        self._keep(points)
        self._message = message
        self._reason = message if self.status == "failed" else ""
        self.change()

    def take(self, event: Event) -> None:
        """Note what the worker tells."""
        match event:
            case Estimated():
                self._estimate = event
            case PointStarted():
                self._note(f"{event.key}: starting")
            case PointProgress():
                self._fraction, self._remaining_s = event.fraction, event.remaining_s
                self._growing = event.point or self._growing
                self._note(event.message)
            case PointFinished():
                self._growing = None
                self._keep((event.point,))
                self._fraction, self._remaining_s = event.fraction, event.remaining_s
            case PointFailed():
                self._growing = None
                self._failures[event.key] = event
            case Ended():
                if event.result is not None:
                    self._result = event.result
                    self._keep(event.result.points)
                self.end(event.status, event.reason)
        self.change()

    def _keep(self, points: Iterable[Point]) -> None:
        self._points.update({point.key: point for point in points})

    def _note(self, message: str) -> None:
        if not self.stopping:
            self._message = message
