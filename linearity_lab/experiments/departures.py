"""Departures of runs from their linear models.

First crossing of a threshold, or the reason for none.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal

from linearity_lab.runs import PointValue, Value, columns
from linearity_lab.runs.columns import Column, Columns, text_table
from ntk_core.fits import exponent_line, fit_runs

DEPARTURE_WORDS: dict[str, str] = {
    "departed": "exceeded its threshold",
    "never": "converged below its threshold: it never departs",
    "beyond": "was still below its threshold at the end: a lower bound",
    "diverged": "became infinite or not a number before it departed",
    "dead": "was dead: K(w₀) = 0",
}


class Departure(Value):
    """Departure of a run from its linear model.

    Attributes:
        outcome: one of :data:`DEPARTURE_WORDS`.
        at: the clock at the first crossing of the threshold, or else at the end.
    """

    outcome: Literal["departed", "never", "beyond", "diverged", "dead"]
    at: float

    @property
    def is_seen(self) -> bool:
        """Whether the run departed."""
        return self.outcome == "departed"

    @property
    def horizon(self) -> float:
        """The clock at the departure; NaN without one."""
        return self.at if self.is_seen else math.nan


def departure(
    clock: Sequence[float], values: Sequence[float], threshold: float, outcome: str
) -> Departure:
    """Return the first crossing of the threshold.

    It is log-linear between records; without a crossing, the reason is returned.
    """
    index = next((index for index, value in enumerate(values) if value > threshold), None)
    if index is None:
        end = "beyond"
        if outcome in ("diverged", "dead"):
            end = outcome
        elif outcome == "converged":
            end = "never"
        return Departure.model_validate({"outcome": end, "at": clock[-1] if clock else math.nan})
    before = max(0, index - 1)
    low = values[before]
    value = values[index]
    share = 0.0
    if index:
        share = (
            (threshold - low) / (value - low)
            if low <= 0
            else math.log(threshold / low) / math.log(value / low)
        )
    return Departure(outcome="departed", at=clock[before] + share * (clock[index] - clock[before]))


def departure_columns(name: str) -> tuple[Column, Column]:
    """Columns of one departure: its horizon, and its outcome in CSV files."""
    at = attrgetter(f"{name}.at")
    seen = attrgetter(f"{name}.is_seen")
    horizon = Column(
        f"{name}_horizon", f"horizon of the {name}", lambda _, run: at(run), columns.with_error
    )
    outcome = attrgetter(f"{name}.outcome")
    return replace(horizon, counts=seen), Column(f"{name}_outcome", "", lambda _, run: outcome(run))


def departure_summary(
    table: Columns,
    points: Sequence[PointValue],
    names: Sequence[str],
    lines: Mapping[str, Sequence[tuple[float, Any]]],
) -> str:
    """Return the table over seeds and the exponents in m of every horizon that all runs reached.

    title → runs.
    """

    def note(runs: Sequence[object]) -> str:
        found = Counter((name, getattr(run, name).outcome) for name in names for run in runs)
        return ", ".join(
            f"{name} {n} {outcome}" for (name, outcome), n in found.items() if outcome != "departed"
        )

    laws = []
    for (title, runs), name in itertools.product(lines.items(), names):
        if not all(getattr(run, name).is_seen for _, run in runs):
            continue  # departed runs alone are a biased sample
        law = fit_runs(runs, attrgetter(f"{name}.at"), lambda run: True)
        if law is not None:
            laws.append(exponent_line(f"{title}: horizon of the {name}", law))
    notes = [f"{name}: {words}" for name, words in DEPARTURE_WORDS.items() if name != "departed"]
    return "\n".join([*text_table(table, points, note), "", *notes, *laws])
