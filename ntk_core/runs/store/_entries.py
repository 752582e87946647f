"""Rows of the store as values: written with a SHA-256, used only while it matches."""

import hashlib
import logging
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ntk_core.runs._parse import InvalidSpec, parse_spec, spec_digest
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Point, Result, experiment_of
from ntk_core.runs._values import EndStatus, PointValue, Provenance, Value

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Ending(Value):
    """A result without its spec and points, which have rows of their own."""

    status: EndStatus
    provenance: Provenance
    runtime_s: float


POINT: TypeAdapter[Point] = TypeAdapter(Point)
ENDING: TypeAdapter[Ending] = TypeAdapter(Ending)


def ending_of(result: Result) -> Ending:
    """The part of a result that is stored beside its spec and points."""
    return Ending(status=result.status, provenance=result.provenance, runtime_s=result.runtime_s)


def result_of(spec: Spec, ending: Ending, points: dict[str, PointValue]) -> Result | None:
    """The inverse of :func:`ending_of`; None when a completed run lacks a point or a point is not one of the spec."""
    keys = spec.point_keys()
    if ending.status == "completed" and not points.keys() >= set(keys):
        return None
    found = tuple(points[key] for key in keys if key in points)
    try:
        return experiment_of(spec).result(
            spec=spec, points=found, provenance=ending.provenance, status=ending.status, runtime_s=ending.runtime_s
        )
    except ValidationError:
        return None


def partial_result(spec: Spec, points: dict[str, PointValue], status: EndStatus = "cancelled") -> Result | None:
    """A result of the finished points of a run that has not ended; None without points."""
    known = [point.provenance for point in points.values() if point.provenance is not None]
    if not known:
        return None
    latest = max(known, key=lambda each: each.started_at)
    runtime_s = sum(point.runtime_s for point in points.values())
    return result_of(spec, Ending(status=status, provenance=latest, runtime_s=runtime_s), points)


def intact(adapter: TypeAdapter[_T], text: Any, expected: str | None, name: str) -> _T | None:
    """The value of ``text``; None, and a warning, when it is damaged."""
    if isinstance(text, str) and sha(text) == expected:
        try:
            return adapter.validate_json(text)
        except ValidationError:
            pass
    warn(name)
    return None


def intact_spec(run: str, text: str) -> Spec | None:
    """The spec with this digest; None, and a warning, when ``text`` is not its JSON."""
    try:
        spec = parse_spec(text)
    except InvalidSpec:
        spec = None
    if spec is None or spec_digest(spec) != run:
        warn(f"spec {run[:16]}")
        return None
    return spec


def warn(name: str) -> None:
    """Log that an entry cannot be used."""
    _LOG.warning("The stored %s is damaged; it is dropped and will be recomputed.", name)


def swept_words(spec: Spec) -> str:
    """The points of a spec in a few words: ``6 widths, 30 to 10000``."""
    count = len(spec.point_keys())
    words = f"{count} {spec.point_words[count != 1]}"
    values = [value for value in getattr(spec, spec.swept_field) if isinstance(value, int | float)]
    if not values:
        return words
    low, high = min(values), max(values)
    return f"{words}, {low:g}" if low == high else f"{words}, {low:g} to {high:g}"


def sha(text: str) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
