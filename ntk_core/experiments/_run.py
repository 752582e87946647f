"""The one way to run anything: ``run(spec)`` yields events, the last of which carries the result."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Protocol

from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.events import Ended, Event, PointFailed, PointFinished, PointProgress, PointStarted
from ntk_core.experiments._compiled import release_compiled
from ntk_core.experiments._estimate import check_size, estimate
from ntk_core.experiments._registry import Growth, Progress, costs_of, experiment_of
from ntk_core.results import RESULTS, PointValue, Provenance
from ntk_core.specs import Spec

PointKey = str


class Points(Protocol):
    """Where finished points are kept between runs of one spec."""

    def finished(self) -> Mapping[PointKey, PointValue]:
        """The points that an earlier run finished."""

    def save(self, key: PointKey, point: PointValue) -> None:
        """Keep a point durably."""


def run(spec: Spec, *, points: Points | None = None, should_stop: Callable[[], bool] | None = None) -> Iterator[Event]:
    """Compute what ``spec`` asks for, point by point, in order of cost.

    Yields ``Estimated``, then for each point ``PointStarted``, ``PointProgress`` …, ``PointFinished`` or
    ``PointFailed``, and last ``Ended`` with the result. Numerical trouble is part of a point (a typed
    outcome), not an error.

    Args:
        points: keeps finished points, so that an interrupted run resumes; nothing is kept by default.
        should_stop: asked between chunks of work; when it returns True the run ends as cancelled and keeps its points.

    Raises:
        TooLarge: before anything is traced, when the largest point does not fit into memory.
        InvalidInput: when the data cannot be loaded as asked.
    """
    check_size(spec)
    return _events(spec, points, should_stop or (lambda: False))


def _events(spec: Spec, points: Points | None, should_stop: Callable[[], bool]) -> Iterator[Event]:
    began = time.monotonic()
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    yield estimate(spec)
    computation = experiment_of(spec).computation()  # starts JAX, so only now
    try:
        data = computation.load(spec)
    except InvalidInput as error:
        yield Ended(status="failed", reason=str(error))
        return
    origin = _provenance(started_at, computation.fingerprint(data))
    clock = _Clock({key: costs_of(spec).seconds(spec, key) for key in spec.point_keys()})
    kept = dict(points.finished()) if points is not None else {}
    done: dict[PointKey, PointValue] = {}
    taken_over_s = 0.0
    computed = False
    status = "completed"
    reason = ""
    for index, key in enumerate(spec.point_keys()):
        if key in kept:
            done[key] = kept[key]
            taken_over_s += kept[key].runtime_s
            clock.skip(key)
            yield PointFinished(
                key=key, point=kept[key], fraction=clock.fraction(), remaining_s=clock.remaining(), resumed=True
            )
            continue
        if should_stop():
            status = "cancelled"
            break
        yield PointStarted(key=key, index=index)
        clock.start(key)
        release_compiled()  # a worker lives through many runs
        try:
            work = computation.compute(spec, data, key)
            point = yield from _follow(work, key, clock, should_stop)
        except (MemoryError, RuntimeError) as error:
            status, reason = "failed", f"{key.replace('=', ' ')}: {_sentence(error)}"
            yield PointFailed(key=key, reason=_sentence(error))
            clock.finish(key)
            continue
        if point is None:
            status = "cancelled"
            break
        point, computed = point.model_copy(update={"provenance": origin}), True
        if points is not None:
            points.save(key, point)
        done[key] = point
        clock.finish(key)
        yield PointFinished(key=key, point=point, fraction=clock.fraction(), remaining_s=clock.remaining())
    result = RESULTS[spec.experiment](
        spec=spec,
        points=tuple(done[key] for key in spec.point_keys() if key in done),
        provenance=origin if computed else _latest(done.values(), origin),
        status=status,
        runtime_s=time.monotonic() - began + taken_over_s,
    )
    yield Ended(status=status, result=result, reason=reason)


def _follow(
    work: Generator[Progress | Growth, None, PointValue], key: str, clock: _Clock, should_stop: Callable[[], bool]
) -> Generator[Event, None, PointValue | None]:
    """Turn a computation's (fraction, message) pairs into progress events; None when it was asked to stop."""
    while True:
        try:
            fraction, message, *growing = next(work)
        except StopIteration as stop:
            return stop.value
        yield PointProgress(
            key=key,
            fraction=clock.fraction(fraction),
            remaining_s=clock.remaining(fraction),
            message=message,
            point=growing[0] if growing else None,
        )
        if should_stop():
            work.close()
            return None


class _Clock:
    """Progress of the whole run, from each point's estimated seconds corrected by what the finished ones took."""

    def __init__(self, expected: dict[PointKey, float]):
        self._expected = expected
        self._done: set[PointKey] = set()
        self._measured_s = self._measured_expected = 0.0
        self._current: PointKey | None = None
        self._started = 0.0

    def start(self, key: PointKey) -> None:
        self._current, self._started = key, time.monotonic()

    def skip(self, key: PointKey) -> None:
        self._done.add(key)

    def finish(self, key: PointKey) -> None:
        self._done.add(key)
        self._measured_s += time.monotonic() - self._started
        self._measured_expected += self._expected[key]
        self._current = None

    def fraction(self, of_current: float = 0.0) -> float:
        """Share of the whole run that is done."""
        return min(1.0, (self._expected_done() + self._expected_current() * of_current) / sum(self._expected.values()))

    def remaining(self, of_current: float = 0.0) -> float | None:
        """Expected remaining seconds; None until a point or a good part of one has been measured."""
        seconds, expected = self._measured_s, self._measured_expected
        if self._current is not None:
            seconds += time.monotonic() - self._started
            expected += self._expected_current() * of_current
        if expected <= 0:
            return None
        left = sum(self._expected.values()) - self._expected_done() - self._expected_current() * of_current
        return max(0.0, left * seconds / expected)

    def _expected_done(self) -> float:
        return sum(self._expected[key] for key in self._done)

    def _expected_current(self) -> float:
        return self._expected[self._current] if self._current is not None else 0.0


def _latest(points: Iterable[PointValue], otherwise: Provenance) -> Provenance:
    """Of the run that computed the last of these points: what only puts them together has computed nothing."""
    known = [point.provenance for point in points if point.provenance is not None]
    return max(known, key=lambda origin: origin.started_at, default=otherwise)


def _provenance(started_at: str, fingerprint: str) -> Provenance:
    import jax
    import jax.numpy as jnp

    device = jax.devices()[0]
    return Provenance(
        versions={
            "linearity-lab": _own_version(),
            **{name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")},
        },
        platform=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        device=f"{device.platform}: {device.device_kind}",
        dtype=str(jnp.result_type(float)),
        started_at=started_at,
        data_sha256=fingerprint,
    )


def _own_version() -> str:
    import ntk_core

    return ntk_core.__version__


def _sentence(error: BaseException) -> str:
    """One line for people from an error inside the computation."""
    if isinstance(error, TooLarge | InvalidInput):
        return str(error)
    text = str(error).strip().splitlines()
    if isinstance(error, MemoryError) or (text and "RESOURCE_EXHAUSTED" in text[0]):
        return "the computation ran out of memory; choose smaller widths or fewer seeds"
    return f"the computation failed ({type(error).__name__}: {text[0][:200] if text else 'no message'})"
