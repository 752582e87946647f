"""The one way to run anything: ``run(spec)`` yields events, the last of which carries the result."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Protocol

from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.events import Ended, Event, PointFailed, PointFinished, PointProgress, PointStarted
from ntk_core.experiments._estimate import check_size, estimate, point_seconds
from ntk_core.results import DriftPoint, DriftResult, Provenance
from ntk_core.specs import Spec

PointKey = str


class Points(Protocol):
    """Where finished points are kept between runs of one spec."""

    def finished(self) -> Mapping[PointKey, DriftPoint]:
        """The points that an earlier run finished."""

    def save(self, key: PointKey, point: DriftPoint) -> None:
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
    from ntk_core.experiments import _kernel_drift as experiment  # starts JAX, so only now

    try:
        data = experiment.load(spec)
    except InvalidInput as error:
        yield Ended(status="failed", reason=str(error))
        return
    clock = _Clock({width: point_seconds(spec, width) for width in spec.widths})
    kept = dict(points.finished()) if points is not None else {}
    done: dict[int, DriftPoint] = {}
    status = "completed"
    reason = ""
    for index, width in enumerate(spec.widths):
        key = f"width={width}"
        if key in kept:
            done[width] = kept[key]
            clock.skip(width)
            yield PointFinished(
                key=key, point=kept[key], fraction=clock.fraction(), remaining_s=clock.remaining(), resumed=True
            )
            continue
        if should_stop():
            status = "cancelled"
            break
        yield PointStarted(key=key, index=index)
        clock.start(width)
        try:
            work = experiment.compute(spec, data, width)
            point = yield from _follow(work, key, clock, should_stop)
        except (MemoryError, RuntimeError) as error:
            status, reason = "failed", f"width {width}: {_sentence(error)}"
            yield PointFailed(key=key, reason=_sentence(error))
            clock.finish(width)
            continue
        if point is None:
            status = "cancelled"
            break
        if points is not None:
            points.save(key, point)
        done[width] = point
        clock.finish(width)
        yield PointFinished(key=key, point=point, fraction=clock.fraction(), remaining_s=clock.remaining())
    result = DriftResult(
        spec=spec,
        points=tuple(done[width] for width in sorted(done)),
        provenance=_provenance(started_at, experiment.fingerprint(data)),
        status=status,
        runtime_s=time.monotonic() - began,
    )
    yield Ended(status=status, result=result, reason=reason)


def _follow(
    work: Generator[tuple[float, str], None, DriftPoint], key: str, clock: _Clock, should_stop: Callable[[], bool]
) -> Generator[Event, None, DriftPoint | None]:
    """Turn a computation's (fraction, message) pairs into progress events; None when it was asked to stop."""
    while True:
        try:
            fraction, message = next(work)
        except StopIteration as stop:
            return stop.value
        yield PointProgress(
            key=key, fraction=clock.fraction(fraction), remaining_s=clock.remaining(fraction), message=message
        )
        if should_stop():
            work.close()
            return None


class _Clock:
    """Progress of the whole run, from each point's estimated seconds corrected by what the finished ones took."""

    def __init__(self, expected: dict[int, float]):
        self._expected = expected
        self._done: set[int] = set()
        self._measured_s = self._measured_expected = 0.0
        self._current: int | None = None
        self._started = 0.0

    def start(self, width: int) -> None:
        self._current, self._started = width, time.monotonic()

    def skip(self, width: int) -> None:
        self._done.add(width)

    def finish(self, width: int) -> None:
        self._done.add(width)
        self._measured_s += time.monotonic() - self._started
        self._measured_expected += self._expected[width]
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
        return sum(self._expected[width] for width in self._done)

    def _expected_current(self) -> float:
        return self._expected[self._current] if self._current is not None else 0.0


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
