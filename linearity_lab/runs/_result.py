"""Results of runs: their points, tables and provenance."""

import csv
import io
from typing import ClassVar, Self

from linearity_lab.runs._spec import Spec
from linearity_lab.runs._values import (
    EndStatus,
    PointValue,
    Provenance,
    Value,
    imported_words,
    num_imported,
)
from linearity_lab.runs.columns import Columns, csv_rows, runs_of
from ntk_core.markup import Displayed


class ResultValue(Value, Displayed):
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

    columns: ClassVar[Columns] = ()
    spec: Spec
    points: tuple[PointValue, ...]
    provenance: Provenance
    status: EndStatus
    runtime_s: float

    def rows(self) -> list[dict[str, object]]:
        """Return the numbers as in ``points.csv``, one row per run, all with the same columns."""
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
        rows = self.rows()
        text = io.StringIO()
        if self.num_imported:
            for row, (point, _) in zip(rows, runs_of(self.points), strict=True):
                row["imported"] = (point.provenance or self.provenance).imported
        writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else (), lineterminator="\n")
        if rows:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
