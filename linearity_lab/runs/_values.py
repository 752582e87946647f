"""Common parts of results: values, means with errors, points, provenance."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from linearity_lab.runs._spec import Spec, point_key
from ntk_core.markup import Part, Shown

if TYPE_CHECKING:
    from linearity_lab.runs.columns import Columns

# How a run ended: ``cancelled`` by the user, ``stopped`` by the server or its operator.
EndStatus = Literal["completed", "cancelled", "stopped", "failed"]
Outcome = Literal["converged", "stuck", "over-budget", "diverged", "dead"]
OUTCOME_WORDS: dict[str, str] = {
    "converged": "reached the loss threshold",
    "stuck": "got stuck on a plateau above the loss threshold",
    "over-budget": "did not reach the loss threshold within the step limit",
    "diverged": "diverged: the loss ended above its initial value, or became infinite or not a number",
    "dead": "was dead: K(w₀) = 0",
}
Record = Any  # one seed's part of a point; each experiment has its own type


class Value(BaseModel):
    """Base class of stored and transmitted values: frozen; JSON has NaN and infinities as strings."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    @classmethod
    def read_off(cls, *sources: object, **given: object) -> Self:
        """Return a value with the ``given`` fields, and other fields from the first source with such an attribute.

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
    """Base class of an experiment's points; a subclass adds ``kind`` (the experiment's name) and values.

    Attributes:
        runtime_s: wall time of the computation in seconds, set by the run.
        provenance: provenance of the run that computed it, possibly earlier than the result's; None in older results,
            which use the result's.
        of_each_seed: fields with one record per seed, by default the runs; other fields are those of the first seed.
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
        named, fields = (
            {name: getattr(self, name) for name in self.key_parts},
            type(self).model_fields,
        )
        return point_key(
            **{name: value for name, value in named.items() if value != fields[name].default}
        )

    @property
    def is_apart(self) -> bool:
        """Whether the point lacks arrays that are stored beside it."""
        return False

    def apart(self) -> tuple[Self, dict[str, NDArray[np.float64]]]:
        """Return the point without its large arrays, and these arrays by name; by default it has none.

        The store keeps the arrays outside the JSON of a point, and pages load them when they draw them.
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

    width: int


class ResultValue(Value, Shown):
    """Base class of results, spec → points; subclasses define both.

    Attributes:
        columns: columns of all tables of the runs, see ``Column``.
        points: points in the order of the spec's keys; some may be missing.
        provenance: provenance of the run that computed the last point; :attr:`origins` lists all.
        runtime_s: wall time of the run, including its points from earlier runs, in seconds.

    Source: our choice, docs/decisions/0001-specs-and-events.md.

    >>> import linearity_lab
    >>> small = {"widths": (4,), "num_seeds": 1, "training": {"max_steps": 2}}
    >>> result = linearity_lab.compute("liu-fig1-left", outputs=("linear",), **small)
    >>> isinstance(result, ResultValue), len(result.rows()), result.status
    (True, 1, 'completed')
    """

    columns: ClassVar["Columns"] = ()
    spec: Spec
    points: tuple[PointValue, ...]
    provenance: Provenance
    status: EndStatus
    runtime_s: float

    def rows(self) -> list[dict[str, object]]:
        """Return the numbers as in ``points.csv``, one row per run, all with the same columns."""
        from linearity_lab.runs.columns import csv_rows, runs_of  # which describes runs

        return csv_rows(self.columns, runs_of(self.points))

    @property
    def origins(self) -> tuple[tuple[Provenance, tuple[str, ...]], ...]:
        """Return every run that computed some points, oldest first, with their keys."""
        found: dict[str, tuple[Provenance, tuple[str, ...]]] = {}
        for point in self.points:
            origin = point.provenance or self.provenance
            name = origin.model_dump_json()
            found[name] = origin, (*found.get(name, (origin, ()))[1], point.key)
        return tuple(sorted(found.values(), key=lambda each: each[0].started_at)) or (
            (self.provenance, ()),
        )

    @property
    def num_imported(self) -> int:
        """Number of points that were read from a file instead of computed in this store."""
        return num_imported(self.points, self.provenance)

    @property
    def imported_words(self) -> str:
        """``2 of 6 points imported from a file, not computed here``; empty without such points."""
        return imported_words(self.points, self.provenance)

    def as_imported(self) -> Self:
        """Return the result with "imported" in the provenance of all its points."""
        points = []
        for point in self.points:
            origin = (point.provenance or self.provenance).as_imported()
            points.append(point.model_copy(update={"provenance": origin}))
        changes = {"points": tuple(points), "provenance": self.provenance.as_imported()}
        return self.model_copy(update=changes)

    def csv(self) -> str:
        """Return :meth:`rows` as CSV text with a header line; empty without rows.

        If some points were imported, the column ``imported`` marks their rows.
        """
        from linearity_lab.runs.columns import runs_of  # which describes runs

        rows, text = self.rows(), io.StringIO()
        if self.num_imported:
            for row, (point, _) in zip(rows, runs_of(self.points), strict=True):
                row["imported"] = (point.provenance or self.provenance).imported
        writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else (), lineterminator="\n")
        if rows:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def _shown_parts(self, with_figure: bool) -> list[Part]:
        from linearity_lab.run_display import result_parts  # which reads results

        return result_parts(self, with_figure)
