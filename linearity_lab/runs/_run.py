"""Run any spec: ``run(spec)`` yields events, and the last one contains the result."""

import importlib.util
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from linearity_lab.runs._estimate import check_size, estimate, scheduler_address, seconds_of_points
from linearity_lab.runs._parse import spec_from
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import Computation, experiment_of
from linearity_lab.runs._this_process import SiteFailure, ThisProcess
from linearity_lab.runs._values import EndStatus, PointValue, Provenance, latest_provenance
from linearity_lab.runs.events import (
    Ended,
    Event,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
)
from linearity_lab.runs.progress_bar import with_bar
from ntk_core.machine import how_to_install

if TYPE_CHECKING:
    from linearity_lab.runs._cluster import Cluster

PointKey = str


class Points(Protocol):
    """Storage of finished points between runs of one spec."""

    def finished(self) -> Mapping[PointKey, PointValue]:
        """Return the points that earlier runs finished."""

    def save(self, key: PointKey, point: PointValue) -> None:
        """Store a point durably."""


def run(
    spec: Spec | str,
    *,
    points: Points | None = None,
    should_stop: Callable[[], bool] | None = None,
    scheduler: str | None = None,
    computation: Computation | None = None,
) -> Iterator[Event]:
    """Run a spec or preset → events.

    Yields ``Estimated``, then for each point, in order of cost, ``PointStarted``, ``PointProgress`` …,
    ``PointFinished`` or ``PointFailed``, and finally ``Ended`` with the result. Divergence and similar numerical
    problems are outcomes in a point, not errors. On a cluster points run in parallel and finish in any order; the
    result sorts them by key. Jupyter and marimo show a progress bar.

    >>> from linearity_lab.experiments import preset, with_settings
    >>> small = {"widths": (4,), "num_seeds": 1, "training.max_steps": 2}
    >>> [event.kind for event in run(with_settings(preset("liu-fig1-left").spec, small))][-1]
    'ended'

    Args:
        spec: a spec, or the name of a preset.
        points: storage of finished points, from which an interrupted run resumes; none by default.
        should_stop: called between chunks of work; if it returns True, the run ends as cancelled and keeps its points.
        scheduler: address of a dask scheduler whose workers compute the points (docs/cluster.md), by default from
            ``LINEARITY_LAB_SCHEDULER``; ``""`` always computes in this process.
        computation: computes the points of a custom model, loaded by the command ``own``, in this process. Its cost is
            unknown, so no ``Estimated`` is yielded and no size is refused.

    Returns:
        An iterator of events; closing it stops the run.

    Raises:
        TooLarge: before tracing, if the largest point does not fit into memory; workers of a cluster check their own
            memory and fail points that do not fit.
        InvalidInput: if ``spec`` is neither a spec nor a preset, ``scheduler`` is not an address, or the spec of a
            custom model has no ``computation``.

    Source: our choice, docs/decisions/0001-specs-and-events.md and docs/jobs-and-results.md.
    """
    spec = spec_from(spec)
    address = scheduler_address(scheduler) if computation is None else None
    if computation is None:
        check_size(spec, scheduler=address or "")
    return with_bar(
        _events(spec, points, should_stop or (lambda: False), address, computation), spec
    )


def _events(
    spec: Spec,
    points: Points | None,
    should_stop: Callable[[], bool],
    address: str | None,
    computation: Computation | None,
) -> Generator[Event, None, None]:
    began, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    keys = spec.point_keys()
    if computation is None:
        yield estimate(spec)
    seconds = seconds_of_points(spec) if computation is None else dict.fromkeys(keys, 1.0)
    kept = dict(points.finished()) if points is not None else {}
    done = {key: kept[key] for key in keys if key in kept}
    clock, runtime_s = Clock(seconds, done), sum(point.runtime_s for point in done.values())
    for key, point in done.items():
        yield PointFinished(key=key, point=point, resumed=True, **clock.so_far())
    missing = [key for key in keys if key not in done]
    origin, site, reason = latest_provenance(done.values()), None, ""
    status: EndStatus = "completed"
    try:
        site = _site(spec, address if missing else None, computation)
        with closing(site.reports(missing)) as reports:
            for report in reports:
                if isinstance(report, PointStarted | None) and should_stop():
                    status = "cancelled"
                    break
                match report:
                    case PointStarted(key=key):
                        clock.advance(key, 0.0)
                        yield report.model_copy(update={"index": keys.index(key)})
                    case PointProgress(key=key, fraction=fraction):
                        clock.advance(key, fraction)
                        yield report.model_copy(update=clock.so_far())
                        if should_stop():
                            status = "cancelled"
                            break
                    case PointFailed(key=key):
                        clock.advance(key, 1.0)
                        reason = f"{key.replace('=', ' ')}: {report.reason}"
                        yield report
                    case PointFinished(key=key, point=point):
                        clock.advance(key, 1.0)
                        origin = _started(point.provenance, started_at)
                        done[key] = point.model_copy(update={"provenance": origin})
                        if points is not None:
                            points.save(key, done[key])
                        yield PointFinished(key=key, point=done[key], **clock.so_far())
    except SiteFailure as failure:
        reason = str(failure)
    if reason and status == "completed":
        status = "failed"
    if origin is None and site is not None:  # without points
        origin = _started(site.provenance, started_at)
    result = origin and experiment_of(spec).result(
        spec=spec,
        points=tuple(done[key] for key in keys if key in done),
        provenance=origin,
        status=status,
        runtime_s=time.monotonic() - began + runtime_s,
    )
    yield Ended(status=status, result=result, reason=reason)


def _started(provenance: Provenance | None, started_at: str) -> Provenance | None:
    return provenance and provenance.model_copy(update={"started_at": started_at})


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


# Seconds of work after which the measured speed weighs as much as the expected one; shorter measurements are noisy.
TRUST_S = 1.0


class Clock:
    """Progress of a run by the expected seconds of its points; ``skipped`` points are from an earlier run."""

    def __init__(self, expected: Mapping[str, float], skipped: Collection[str] = ()):
        self._expected, self._skipped = expected, sum(expected[key] for key in skipped)
        self._shares = dict.fromkeys(skipped, 1.0)
        self._began: float | None = None

    def advance(self, key: str, share: float) -> None:
        """Set the finished share of a point: 0 at its start, 1 after success or failure."""
        self._began = time.monotonic() if self._began is None else self._began
        self._shares[key] = share

    def so_far(self) -> dict[str, Any]:
        """Return the finished share of the run and the remaining seconds (None before any work), as in events."""
        whole = sum(self._expected.values())
        done = sum(self._expected[key] * share for key, share in self._shares.items())
        measured, remaining = done - self._skipped, None
        if self._began is not None and measured > 0:
            speed = (measured + TRUST_S) / (time.monotonic() - self._began + TRUST_S)
            remaining = max(0.0, (whole - done) / speed)
        return {"fraction": min(1.0, done / whole), "remaining_s": remaining}
