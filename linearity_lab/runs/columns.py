"""Columns of each experiment, shared by CSV, pages, text and comparisons; tables in plain text."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from linearity_lab.runs._values import OUTCOME_WORDS, PointValue, Record, finite_or_none, mean
from ntk_core.networks.choices import OUTPUTS


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return one line per row with aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """Format the mean ± standard error of finite values: ``0.123 ± 0.004``; a dash for none."""
    found = mean([value for value in values if math.isfinite(value)])
    error = f" ± {found.standard_error:.1g}" if math.isfinite(found.standard_error) else ""
    return f"{found.value:.{digits}g}{error}" if found.count else "–"


def between(values: Sequence[float], spec: str) -> str:
    """Format the range of finite values by ``spec``: ``0.1``, ``0.1–0.2``, or a dash."""
    finite = sorted(filter(math.isfinite, values))
    if not finite:
        return "–"
    low = format(finite[0], spec)
    high = format(finite[-1], spec)
    return low if low == high else f"{low}–{high}"


def outcome_notes(
    points: Iterable[PointValue],
    words: Mapping[str, str] = OUTCOME_WORDS,
    good: str = "converged",
    then: str = "",
) -> list[str]:
    """Return one line per outcome other than ``good`` among the runs of the points."""
    seen = {getattr(run, "outcome", good) for point in points for run in point.records} - {good}
    return [f"! {outcome}: {words[outcome]}{then}" for outcome in sorted(seen)]


def marks(runs: Iterable[Record]) -> str:
    """Count the runs with each outcome except the good one: ``! 2 stuck, ! 1 dead``."""
    counts = Counter(getattr(run, "outcome", "converged") for run in runs)
    return ", ".join(
        f"! {count} {outcome}"
        for outcome, count in sorted(counts.items())
        if outcome != "converged"
    )


Role = Literal["swept", "line", "label", "measure"]


def converged(run: Record) -> bool:
    """Whether a training reached its loss threshold."""
    return getattr(run, "outcome", "") == "converged"


@dataclass(frozen=True)
class Column:
    """One column of every table of an experiment.

    Attributes:
        name: stable header in CSV files.
        title: displayed heading; columns without a title appear only in CSV files.
        of: (point, run) → value, None for an empty cell; by default the run's
            attribute of this name.
        format: for a measure, the values of several runs → a cell of the text summary, which omits
            measures without a format. For any other column, a value → its text.
        role: ``swept`` for the horizontal axis, ``line`` for the name of a line, ``label`` for
            descriptions of a run.
        counts: selects the runs in the text summary.
        optional: whether CSV files omit the column if no run has a value.
    """

    name: str
    title: str
    of: Callable[[Any, Record], Any] | None = None
    format: Callable[[Any], str] | None = None
    role: Role = "measure"
    counts: Callable[[Record], bool] = lambda run: True
    optional: bool = False

    def value(self, point: PointValue | None, run: Record) -> Any:
        """Return the value of one run."""
        return getattr(run, self.name) if self.of is None else self.of(point, run)

    def words(self, value: Any) -> object:
        """Return the text of a swept value, line or label; a measure unchanged."""
        return (
            value
            if self.role == "measure" or self.format is None or value is None
            else self.format(value)
        )


Columns = Sequence[Column]

ranged = partial(between, spec=".2g")
counted = partial(between, spec=",.0f")
precise = partial(with_error, digits=4)

WIDTH = Column("width", "width m", lambda point, run: point.width, "{:,}".format, "swept")
NUM_PARAMS = Column("num_params", "", lambda point, run: point.num_params)
OUTPUT = Column("output", "output", format=lambda name: OUTPUTS[name].title, role="line")
SEED = Column("seed", "seed", role="label")
CHANGE = Column(
    "sup_kernel_change",
    "kernel change ΔK",
    lambda point, run: run.sup_change,
    precise,
    "measure",
    converged,
)
FINAL_LOSS = Column("final_loss", "final loss", lambda point, run: run.loss[-1])
STEPS = Column("steps", "steps", lambda point, run: run.num_steps)
LEARNING_RATE = Column(
    "learning_rate", "learning rate η", lambda point, run: finite_or_none(run.learning_rate)
)
OUTCOME = Column("outcome", "outcome", format=OUTCOME_WORDS.__getitem__, role="label")


def runs_of(points: Iterable[PointValue]) -> Iterator[tuple[PointValue, Record]]:
    """Yield every record with its point."""
    return ((point, run) for point in points for run in point.records)


def csv_rows(
    columns: Columns, pairs: Iterable[tuple[PointValue, Record]]
) -> list[dict[str, object]]:
    """Return one row per run, by column names."""
    rows = [{column.name: column.value(*pair) for column in columns} for pair in pairs]
    absent = set()
    for column in columns:
        if column.optional and all(row[column.name] is None for row in rows):
            absent.add(column.name)
    return [{name: value for name, value in row.items() if name not in absent} for row in rows]


def table_rows(columns: Columns, points: Iterable[PointValue]) -> list[dict[str, object]]:
    """Return one row per run, by column titles, without empty columns."""
    titled = [column for column in columns if column.title]
    rows = []
    for pair in runs_of(points):
        rows.append({column.title: column.words(column.value(*pair)) for column in titled})
    empty = set()
    for column in titled:
        if all(row[column.title] is None for row in rows):
            empty.add(column.title)
    return [{title: value for title, value in row.items() if title not in empty} for row in rows]


def text_table(
    columns: Columns, points: Iterable[PointValue], note: Callable[[Sequence[Record]], str] = marks
) -> list[str]:
    """Return one row per point and line: summarized measures, and a note on unconverged runs.

    Measures without values are omitted.
    """
    keys = [column for column in columns if column.role in ("swept", "line")]
    summed = [column for column in columns if column.role == "measure" and column.format]
    pairs = list(runs_of(points := list(points)))
    shown = []
    for column in summed:
        if any(_is_finite(column.value(*pair)) for pair in pairs):
            shown.append(column)
    rows: list[tuple[str, ...]] = [(*(column.title for column in (*keys, *shown)), "runs", "")]
    for point in points:
        lines: dict[tuple[str, ...], list[Record]] = {}
        for run in point.records:
            lines.setdefault(
                tuple(str(key.words(key.value(point, run))) for key in keys), []
            ).append(run)
        for line, runs in lines.items():
            rows.append(
                (
                    *line,
                    *(_cell(column, point, runs) for column in shown),
                    str(len(runs)),
                    note(runs),
                )
            )
    return aligned(rows)


def measures(columns: Columns) -> dict[str, str]:
    """Map names of measures to titles, measures of the text summary first."""
    found = [column for column in columns if column.role == "measure" and column.title]
    return {
        column.name: column.title
        for column in sorted(found, key=lambda column: column.format is None)
    }


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _cell(column: Column, point: PointValue, runs: Sequence[Record]) -> str:
    values = [column.value(point, run) for run in runs if column.counts(run)]
    assert column.format is not None
    return column.format(list(filter(_is_finite, values)))
