"""Run any spec.

``run(spec)`` yields events, ``run_to_end(spec, on_event=…)`` calls a function with each.
"""

import importlib.util
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from linearity_lab.runs._estimate import check_size, estimate, scheduler_address, seconds_of_points
from linearity_lab.runs._events_in_turn import in_turn
from linearity_lab.runs._experiment import Computation
from linearity_lab.runs._parse import spec_from
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import experiment_of
from linearity_lab.runs._this_process import Report, SiteFailure, ThisProcess
from linearity_lab.runs._values import EndStatus, PointValue, Provenance, latest_provenance
from linearity_lab.runs.events import (
    Ended,
    Event,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
)
from linearity_lab.runs.progress_bar import notebook_bar
from ntk_core.machine import how_to_install
from ntk_core.progress import Stopped

if TYPE_CHECKING:
    from linearity_lab.runs._cluster import Cluster

PointKey = str


class PointStore(Protocol):
    """Storage of finished points between runs of one spec."""

    def finished(self) -> Mapping[PointKey, PointValue]:
        """Return the points that earlier runs finished."""

    def save(self, key: PointKey, point: PointValue) -> None:
        """Store a point durably."""


Listener = Callable[[Event], object]


def run(
    spec: Spec | str,
    *,
    points: PointStore | None = None,
    should_stop: Callable[[], bool] | None = None,
    scheduler: str | None = None,
    computation: Computation | None = None,
) -> Iterator[Event]:
    """Run a spec or preset → events.

    Yields ``Estimated``, then for each point, in order of cost, ``PointStarted``,
    ``PointProgress`` …, ``PointFinished`` or ``PointFailed``, and finally ``Ended`` with the
    result. Divergence and similar numerical problems are outcomes in a point, not errors. On a
    cluster points run in parallel and finish in any order; the result sorts them by key. Jupyter
    and marimo show a progress bar.

    The computation runs in a thread that works only while the loop waits for the next event.
    :func:`run_to_end` calls a function with each event instead, and has no thread.

    >>> from linearity_lab.experiments import preset, with_settings
    >>> small = {"widths": (4,), "num_seeds": 1, "training.max_steps": 2}
    >>> [event.kind for event in run(with_settings(preset("liu-fig1-left").spec, small))][-1]
    'ended'

    Args:
        spec: a spec, or the name of a preset.
        points: storage of finished points, from which an interrupted run resumes; none by default.
        should_stop: called between chunks of work; if it returns True, the run ends as cancelled
            and keeps its points.
        scheduler: address of a dask scheduler whose workers compute the points (docs/cluster.md),
            by default from ``LINEARITY_LAB_SCHEDULER``; ``""`` always computes in this process.
        computation: computes the points of a custom model, loaded by the command ``own``, in this
            process. Its cost is unknown, so no ``Estimated`` is yielded and no size is refused.

    Returns:
        An iterator of events; closing it stops the run.

    Raises:
        TooLarge: before tracing, if the largest point does not fit into memory; workers of a
            cluster check their own memory and fail points that do not fit.
        InvalidInput: if ``spec`` is neither a spec nor a preset, ``scheduler`` is not an address,
            or the spec of a custom model has no ``computation``.

    Source: our choice, docs/decisions/0001-specs-and-events.md and docs/jobs-and-results.md.
    """
    request = _checked(spec, points, should_stop, scheduler, computation)
    return _with_notebook_bar(in_turn(lambda hear: _Run(request, hear).compute()), request.spec)


def run_to_end(
    spec: Spec | str,
    *,
    on_event: Listener | None = None,
    points: PointStore | None = None,
    should_stop: Callable[[], bool] | None = None,
    scheduler: str | None = None,
    computation: Computation | None = None,
) -> Ended:
    """Run a spec or preset → its last event, with the result.

    >>> from linearity_lab.experiments import preset, with_settings
    >>> small = {"widths": (4,), "num_seeds": 1, "training.max_steps": 2}
    >>> run_to_end(with_settings(preset("liu-fig1-left").spec, small)).status
    'completed'

    Args:
        on_event: called with each event, the last one included, between pieces of work. Its
            exceptions end the run and are raised here.
        spec, points, should_stop, scheduler, computation: as for :func:`run`.

    Returns:
        The last event: status, result and reason.

    Raises:
        TooLarge, InvalidInput: as :func:`run`.

    Source: our choice, docs/decisions/0016-progress.md.
    """
    request = _checked(spec, points, should_stop, scheduler, computation)
    with notebook_bar(request.spec) as draw:

        def hear(event: Event) -> None:
            draw(event)
            if on_event is not None:
                on_event(event)

        return _Run(request, hear).compute()


@dataclass(frozen=True)
class _Request:
    """Checked arguments of :func:`run`; ``address`` is None to compute in this process."""

    spec: Spec
    points: PointStore | None
    should_stop: Callable[[], bool]
    address: str | None
    computation: Computation | None


def _checked(
    spec: Spec | str,
    points: PointStore | None,
    should_stop: Callable[[], bool] | None,
    scheduler: str | None,
    computation: Computation | None,
) -> _Request:
    known = spec_from(spec)
    address = None
    if computation is None:
        address = scheduler_address(scheduler)
        check_size(known, scheduler=address or "")
    return _Request(known, points, should_stop or (lambda: False), address, computation)


def _with_notebook_bar(
    events: Generator[Event, None, None], spec: Spec
) -> Generator[Event, None, None]:
    """Pass events through, with a progress bar in notebooks, drawn in the thread of the loop."""
    with notebook_bar(spec) as draw, closing(events):
        for event in events:
            draw(event)
            yield event


class _Run:
    """One run of a spec: turns the reports of its points into events."""

    def __init__(self, request: _Request, on_event: Listener):
        self._request = request
        self._on_event = on_event
        self._keys = request.spec.point_keys()
        self._done: dict[PointKey, PointValue] = {}
        self._origin: Provenance | None = None  # of the last computed point
        self._reason = ""
        self._error: BaseException | None = None  # of the listener

    def compute(self) -> Ended:
        """Compute all points that are not stored, and return the last event."""
        began = time.monotonic()
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        spec = self._request.spec
        if self._request.computation is None:
            self._on_event(estimate(spec))
            seconds = seconds_of_points(spec)
        else:
            seconds = dict.fromkeys(self._keys, 1.0)
        earlier_s = self._resume(seconds)
        status = self._compute_missing()
        result = None
        if self._origin is not None:
            result = experiment_of(spec).result(
                spec=spec,
                points=tuple(self._done[key] for key in self._keys if key in self._done),
                provenance=self._origin,
                status=status,
                runtime_s=time.monotonic() - began + earlier_s,
            )
        ended = Ended(status=status, result=result, reason=self._reason)
        self._on_event(ended)
        return ended

    def _resume(self, seconds: Mapping[PointKey, float]) -> float:
        """Report the stored points, and return the seconds that they took."""
        points = self._request.points
        kept = dict(points.finished()) if points is not None else {}
        self._done = {key: kept[key] for key in self._keys if key in kept}
        self._origin = latest_provenance(self._done.values())
        self._clock = Clock(seconds, self._done)
        for key, point in self._done.items():
            so_far = self._clock.so_far()
            self._on_event(PointFinished(key=key, point=point, resumed=True, **so_far))
        return sum(point.runtime_s for point in self._done.values())

    def _compute_missing(self) -> EndStatus:
        """Compute the other points, and return how the run ended."""
        missing = [key for key in self._keys if key not in self._done]
        site = None
        try:
            address = self._request.address if missing else None
            site = _site(self._request.spec, address, self._request.computation)
            site.compute(missing, self._hear)
        except SiteFailure as failure:
            self._reason = str(failure)
        except Stopped:
            if self._error is not None:
                raise self._error from None
            return "cancelled"
        finally:
            if self._origin is None and site is not None:  # without points
                self._origin = self._dated(site.provenance)
        return "failed" if self._reason else "completed"

    def _hear(self, report: Report | None) -> None:
        """Pass the report of a point on; raise :class:`Stopped` if the run shall end."""
        should_stop = self._request.should_stop
        match report:
            case None:  # a cluster at work
                if should_stop():
                    raise Stopped
            case PointStarted(key=key):
                if should_stop():
                    raise Stopped
                self._clock.advance(key, 0.0)
                self._tell(report.model_copy(update={"index": self._keys.index(key)}))
            case PointProgress(key=key, fraction=fraction):
                self._clock.advance(key, fraction)
                self._tell(report.model_copy(update=self._clock.so_far()))
                if should_stop():
                    raise Stopped
            case PointFailed(key=key):
                self._clock.advance(key, 1.0)
                self._reason = f"{key.replace('=', ' ')}: {report.reason}"
                self._tell(report)
            case PointFinished(key=key, point=point):
                self._clock.advance(key, 1.0)
                self._finish(key, point)

    def _tell(self, event: Event) -> None:
        """Call the listener.

        Its error ends the run as a stop, since a computation would take it for its own.
        """
        try:
            self._on_event(event)
        except BaseException as error:
            self._error = error
            raise Stopped from None

    def _finish(self, key: PointKey, point: PointValue) -> None:
        """Store a point, then report it."""
        self._origin = self._dated(point.provenance)
        self._done[key] = point.model_copy(update={"provenance": self._origin})
        if self._request.points is not None:
            self._request.points.save(key, self._done[key])
        so_far = self._clock.so_far()
        self._tell(PointFinished(key=key, point=self._done[key], **so_far))

    def _dated(self, provenance: Provenance | None) -> Provenance | None:
        """Return a provenance that states the start of this run."""
        return provenance and provenance.model_copy(update={"started_at": self._started_at})


def _site(
    spec: Spec, address: str | None, computation: Computation | None
) -> "ThisProcess | Cluster":
    """Return this process, or the cluster of the scheduler at ``address``."""
    if address is None:
        return ThisProcess(spec, computation)
    if importlib.util.find_spec("distributed") is None:
        raise SiteFailure(
            f"Computing on a cluster needs dask.distributed: {how_to_install('cluster')}"
        )
    from linearity_lab.runs._cluster import Cluster  # imports dask

    return Cluster(spec, address)


# Seconds of work after which the measured speed weighs as much as the expected one; shorter
# measurements are noisy.
TRUST_S = 1.0


class Clock:
    """Progress of a run by the expected seconds of its points.

    ``skipped`` points are from an earlier run.
    """

    def __init__(self, expected: Mapping[str, float], skipped: Collection[str] = ()):
        self._expected = expected
        self._skipped = sum(expected[key] for key in skipped)
        self._shares = dict.fromkeys(skipped, 1.0)
        self._began: float | None = None

    def advance(self, key: str, share: float) -> None:
        """Set the finished share of a point: 0 at its start, 1 after success or failure."""
        self._began = time.monotonic() if self._began is None else self._began
        self._shares[key] = share

    def so_far(self) -> dict[str, Any]:
        """Return the finished share of the run and remaining seconds.

        The seconds are None before any work, as in events.
        """
        whole = sum(self._expected.values())
        done = sum(self._expected[key] * share for key, share in self._shares.items())
        measured = done - self._skipped
        remaining = None
        if self._began is not None and measured > 0:
            speed = (measured + TRUST_S) / (time.monotonic() - self._began + TRUST_S)
            remaining = max(0.0, (whole - done) / speed)
        return {"fraction": min(1.0, done / whole), "remaining_s": remaining}
