"""What stands in a row of the store: written with a SHA-256, believed only when it still matches."""

import hashlib
import logging
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ntk_core.runs._parse import InvalidSpec, digest, parse_spec
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Point, Result, experiment_of
from ntk_core.runs._values import EndStatus, PointValue, Provenance, Value

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Ending(Value):
    """A result without its spec and points, which are kept beside it.

    Attributes:
        keys: of its points.
    """

    status: EndStatus
    provenance: Provenance
    runtime_s: float
    keys: tuple[str, ...]


POINT: TypeAdapter[Point] = TypeAdapter(Point)
ENDING: TypeAdapter[Ending] = TypeAdapter(Ending)


def ending_of(result: Result) -> Ending:
    """What is to be kept of a result beside its spec and points."""
    keys = tuple(point.key for point in result.points)
    return Ending(status=result.status, provenance=result.provenance, runtime_s=result.runtime_s, keys=keys)


def result_of(spec: Spec, ending: Ending, points: dict[str, PointValue]) -> Result | None:
    """The inverse of :func:`ending_of`; None when a point is missing or is none of this spec's."""
    if not all(key in points for key in ending.keys):
        return None
    try:
        return experiment_of(spec).result(
            spec=spec,
            points=tuple(points[key] for key in ending.keys),
            provenance=ending.provenance,
            status=ending.status,
            runtime_s=ending.runtime_s,
        )
    except ValidationError:
        return None


def intact(adapter: TypeAdapter[_T], text: Any, expected: str | None, name: str) -> _T | None:
    """What ``text`` says; None, and a warning, when it is damaged or of an older version."""
    if isinstance(text, str) and sha(text) == expected:
        try:
            return adapter.validate_json(text)
        except ValidationError:
            pass
    warn(name)
    return None


def intact_spec(run: str, text: str) -> Spec | None:
    """The spec that has this digest; None, and a warning, when ``text`` is another one or none."""
    try:
        spec = parse_spec(text)
    except InvalidSpec:
        spec = None
    if spec is None or digest(spec) != run:
        warn(f"spec {run[:16]}")
        return None
    return spec


def warn(name: str) -> None:
    """Say that an entry cannot be used."""
    _LOG.warning("The stored %s is damaged or of an older version; it is left aside.", name)


def swept_words(spec: Spec) -> str:
    """The points that a spec asks for, in a few words: ``6 widths, 30 to 10000``."""
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
