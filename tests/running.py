"""Helpers that finish runs and generators."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ntk_core.runs import Spec, experiment_of, run
from ntk_core.runs.events import Ended


def exhausted(work: Generator[Any, None, Any]) -> Any:
    """Exhaust a generator and return its value."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return stop.value


def result_of(spec: Spec, **options: Any) -> Any:
    """Run a spec to completion and return the result."""
    *_, last = run(spec, **options)
    assert isinstance(last, Ended), last
    assert last.status == "completed", last.reason
    return last.result


def point_of(spec: Spec, key: str = "", data: Any = None) -> Any:
    """Compute the point with this key, by default the first one."""
    computation = experiment_of(spec).computation()
    return exhausted(computation.compute(spec, data or computation.load(spec), key or spec.point_keys()[0]))
