"""Tables and counts in plain text."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ntk_core.fits import PowerLaw, condition, exponent_words, remarks
from ntk_core.numbers import percent
from ntk_core.runs._values import OUTCOME_WORDS, mean


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """One line per row, its cells padded to columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def num_runs(count: int) -> str:
    """``1 run``, ``5 runs``."""
    return f"{count} run" if count == 1 else f"{count} runs"


def with_error(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard error of those that are finite, ``0.123 ± 0.004``; a dash for none."""
    found = mean([value for value in values if math.isfinite(value)])
    error = f" ± {found.standard_error:.1g}" if math.isfinite(found.standard_error) else ""
    return f"{found.value:.{digits}g}{error}" if found.count else "–"


def between(values: Sequence[float], spec: str) -> str:
    """``0.1``, ``0.1–0.2``, or a dash for nothing finite, each number formatted by ``spec``."""
    finite = sorted(filter(math.isfinite, values))
    if not finite:
        return "–"
    low, high = format(finite[0], spec), format(finite[-1], spec)
    return low if low == high else f"{low}–{high}"


def law_words(law: PowerLaw, name: str) -> str:
    """``m^(−0.500 ± 0.030), 95% interval, 12 runs, 1 excluded; last decade −0.45; not yet settled``, ``name`` for m."""
    level = f", {percent(law.confidence)} interval" if math.isfinite(law.interval) else ""
    words = f"{name}^({exponent_words(law, 3)}){level}, {num_runs(law.num_values)}, {law.num_excluded} excluded"
    return "; ".join([words, *filter(None, [*remarks(law, "widths" if name == "m" else "values"), condition(law)])])


def outcome_notes(
    points: Iterable[Any], words: Mapping[str, str] = OUTCOME_WORDS, good: str = "converged", then: str = ""
) -> list[str]:
    """One line for each outcome other than ``good`` among the runs of the points."""
    seen = {getattr(run, "outcome", good) for point in points for run in point.runs} - {good}
    return [f"! {outcome}: {words[outcome]}{then}" for outcome in sorted(seen)]


def counted_marks(outcomes: Iterable[str]) -> str:
    """How many runs ended in each way but the good one: ``! 2 stuck, ! 1 dead``."""
    counts = Counter(outcome for outcome in outcomes if outcome != "converged")
    return ", ".join(f"! {count} {outcome}" for outcome, count in sorted(counts.items()))


def marks(runs: Sequence[Any]) -> str:
    """The trainings that did not converge: ``! diverged (seed 3)``."""
    ended = [(getattr(run, "outcome", "converged"), run) for run in runs]
    return ", ".join(f"! {outcome} (seed {run.seed})" for outcome, run in ended if outcome != "converged")
