"""Common parts of points: values, means with errors, provenance."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from linearity_lab.runs._spec import point_key

# How a run ended: ``cancelled`` by the user, ``stopped`` by the server or its operator.
EndStatus = Literal["completed", "cancelled", "stopped", "failed"]
Outcome = Literal["converged", "stuck", "over-budget", "diverged", "dead"]
OUTCOME_WORDS: dict[str, str] = {
    "converged": "reached the loss threshold",
    "stuck": "stayed on a plateau above the loss threshold",
    "over-budget": "did not reach the loss threshold within the step limit",
    "diverged": "diverged: the loss ended above its initial value, or became infinite or not a "
    "number",
    "dead": "was dead: K(w₀) = 0",
}
Record = Any  # one seed's part of a point; each experiment has its own type


class Value(BaseModel):
    """Base class of stored and transmitted values: frozen.

    JSON has NaN and infinities as strings.

    Attributes:
        recorded_at: the field of recorded steps or times, if there is one. Then all other tuples
            of the value, and of values in it, have one entry for each of them, or are empty where
            they have a default. Imports check this.
        other_lengths: tuples that have not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")
    recorded_at: ClassVar[str] = ""
    other_lengths: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read_off(cls, *sources: object, **given: object) -> Self:
        """Return a value with the ``given`` fields.

        Each other field is from the first source with such an attribute.

        Arrays become tuples in full precision. Fields in no source keep their defaults.
        """
        for name in cls.model_fields:
            for source in sources:
                if name not in given and hasattr(source, name):
                    found = getattr(source, name)
                    given[name] = _nested(found.tolist()) if hasattr(found, "tolist") else found
        return cls(**given)


def _nested(entries: object) -> object:
    return tuple(map(_nested, entries)) if isinstance(entries, list) else entries


class Mean(Value):
    """Mean over independent seeds with its error.

    Attributes:
        value: arithmetic mean; NaN without values.
        standard_error: sample standard deviation / √count; NaN for fewer than two values.
        count: number of values.
    """

    value: float
    standard_error: float
    count: int


def mean(values: Sequence[float]) -> Mean:
    """Mean, standard error and count of ``values``."""
    count = len(values)
    average = math.fsum(values) / count if count else math.nan
    squares = math.fsum((value - average) ** 2 for value in values)
    error = math.sqrt(squares / (count - 1) / count) if count > 1 else math.nan
    return Mean(value=average, standard_error=error, count=count)


def finite_or_none(value: float) -> float | None:
    """Return a number for a table, such as a learning rate; None for an empty cell."""
    return value if math.isfinite(value) else None


def finite_sup(values: Sequence[float]) -> float:
    """Return the largest finite number of ``values``; NaN without one."""
    return max(filter(math.isfinite, values), default=math.nan)


class Provenance(Value):
    """Versions, device and data of a computation.

    Attributes:
        versions: package name → version.
        device: kind of device.
        dtype: floating-point type of the computation.
        started_at: ISO 8601 time in UTC.
        data_sha256: fingerprint of the data used.
        imported: read from a file; its numbers were not computed in this store.
    """

    versions: dict[str, str]
    platform: str
    device: str
    dtype: str
    started_at: str
    data_sha256: str = ""
    # Omitted if false, so that runs computed here keep their JSON.
    imported: bool = Field(default=False, exclude_if=lambda imported: not imported)

    def as_imported(self) -> Self:
        """Return the provenance of the same computation, read from a file."""
        return self.model_copy(update={"imported": True})


class PointValue(Value):
    """Base class of an experiment's points.

    A subclass adds ``kind`` (the experiment's name) and values.

    Attributes:
        runtime_s: wall time of the computation in seconds, set by the run.
        provenance: provenance of the run that computed it, possibly earlier than the result's; None
            in older results, which use the result's.
        of_each_seed: fields with one record per seed, by default the runs; other fields are
            those of the first seed.
        key_parts: fields that form the key; a field at its default is omitted.

    >>> WidthPoint(kind="example", width=30).key
    'width=30'
    """

    of_each_seed: ClassVar[tuple[str, ...]] = ("runs",)
    key_parts: ClassVar[Iterable[str]] = ("width",)

    kind: str
    runtime_s: float = 0.0
    provenance: Provenance | None = None

    @property
    def key(self) -> str:
        """The point's key, as in its spec."""
        named = {name: getattr(self, name) for name in self.key_parts}
        fields = type(self).model_fields
        return point_key(
            **{name: value for name, value in named.items() if value != fields[name].default}
        )

    @property
    def is_apart(self) -> bool:
        """Whether the point lacks arrays that are stored beside it."""
        return False

    def apart(self) -> tuple[Self, dict[str, NDArray[np.float64]]]:
        """Return the point without its large arrays, and these arrays by name.

        By default it has none.

        The store keeps the arrays outside the JSON of a point, and pages load them
        when they draw them.
        """
        return self, {}

    def joined(self, arrays: Mapping[str, NDArray[np.float64]]) -> Self:
        """Return the point with the arrays that :meth:`apart` took out.

        Raises:
            KeyError, ValueError: if an array is missing or has another shape.
        """
        return self

    @property
    def records(self) -> Sequence[Record]:
        """Rows of tables, by default the runs."""
        found: Sequence[Record] = getattr(self, "runs", ())
        return found


def latest_provenance(points: Iterable[PointValue]) -> Provenance | None:
    """Return the provenance of the run that computed the last of these points; None if unknown."""
    known = (point.provenance for point in points if point.provenance is not None)
    return max(known, key=lambda each: each.started_at, default=None)


def num_imported(points: Iterable[PointValue], origin: Provenance | None = None) -> int:
    """Return the number of points that were read from a file instead of computed in this store.

    Args:
        origin: provenance of the points without one.
    """
    count = 0
    for point in points:
        known = point.provenance or origin
        if known is not None and known.imported:
            count += 1
    return count


def imported_words(points: Sequence[PointValue], origin: Provenance | None = None) -> str:
    """``2 of 6 points imported from a file, not computed here``; empty without such points."""
    count = num_imported(points, origin)
    if count == 0:
        return ""
    return f"{count} of {len(points)} points imported from a file, not computed here"


class WidthPoint(PointValue):
    """A point of one width m."""

    width: NonNegativeInt
