"""Measures of results with intervals: records of runs, then one reading of them; without JAX."""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit

from linearity_lab.runs._result import ResultValue
from ntk_core.fits import fit_power_law, least_squares
from ntk_core.numbers import num_runs

_LEVEL = 0.95
_OF_SEVERAL: Mapping[str, Callable[[Any], Any]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "largest": max,
    "smallest": min,
}


@dataclass(frozen=True)
class Measured:
    """Result of a reading.

    Attributes:
        low, high: its interval; NaN for too few runs.
        count: number of runs, or of pairs of runs.
        kind: kind of interval.
    """

    value: float
    low: float
    high: float
    count: int
    kind: str

    def is_wide(self, expected: tuple[float, float]) -> bool:
        """Whether a 95% interval is more than half as wide as the expected one, both bounded."""
        width = expected[1] - expected[0]
        return self.kind != "range" and math.isfinite(width) and self.high - self.low > width / 2

    def seeds_needed(self, seeds: int, expected: tuple[float, float]) -> int:
        """Return about how many seeds make the interval half as wide as the expected one,
        by n^(-1/2).
        """
        return math.ceil(seeds * (2 * (self.high - self.low) / (expected[1] - expected[0])) ** 2)

    @property
    def words(self) -> str:
        """The value with its interval and number of runs, as caveats quote it."""
        runs = num_runs(self.count)
        if math.isnan(self.low):
            return f"{number(self.value)} ({runs})"
        half = (self.high - self.low) / 2
        is_symmetric = math.isclose(self.high - self.value, half, rel_tol=1e-6, abs_tol=1e-12)
        if self.kind == "range":
            return f"between {number(self.low)} and {number(self.high)} ({runs})"
        if is_symmetric:
            return f"{number(self.value)} ± {number(half, 2)} ({runs})"
        return f"{number(self.value)} ({number(self.low)} to {number(self.high)}, {runs})"


def number(value: float, digits: int = 3) -> str:
    """Return three significant digits with a minus sign; thousands with commas."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
    return text.replace("-", "−")


class Seen(NamedTuple):
    """One value with its swept value and seed."""

    swept: float
    seed: int
    value: float


class Record:
    """One run with its enclosing objects; a name is looked up in the innermost one that has it."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def look(self, path: str) -> Any:
        """Follow a path of attributes, methods, and first, last, largest or smallest.

        ``bound.b_max.largest``.

        Paths below a None give None.

        Raises:
            LookupError: no object has that name.
        """
        name, *steps = path.split(".")
        found = next(
            (getattr(part, name) for part in reversed(self.parts) if hasattr(part, name)), self
        )
        if found is self:
            raise LookupError(f"no run has “{name}”")
        for step in ("", *steps):
            found = found() if callable(found) else found
            if found is not None and step:
                found = _OF_SEVERAL[step](found) if step in _OF_SEVERAL else getattr(found, step)
        return found

    def inside(self, path: str) -> Iterator["Record"]:
        """Yield a record per item of nested collections, such as ``runs.balls``.

        Itself for an empty path.
        """
        name, _, rest = path.partition(".")
        for each in getattr(self.parts[-1], name) if name else ():
            yield from Record(*self.parts, each).inside(rest)
        if not name:
            yield self

    def meets(self, conditions: Mapping[str, Any]) -> bool:
        """Whether each name has its value, or one of its values."""
        wanted = {
            path: value if isinstance(value, list) else [value]
            for path, value in conditions.items()
        }
        return all(self.look(path) in values for path, values in wanted.items())


@dataclass(frozen=True)
class Reading:
    """A measure of a result.

    Attributes:
        how: one of :data:`READINGS`.
        of: path of the value in a record; divided by that of ``over``, or compared with ``equals``.
        records: path of the collections from a point to its records.
        against: path of the swept value.
        where: conditions on the records.
        beside: conditions in place of some of ``where``; each value is divided by its partner of
            the same seed there.
        same: path of a value that partners share, besides swept value and seed.
        difference: whether the partner's value is subtracted instead.
        at_most: compares each value with this bound: 1 at or below it, else 0.
    """

    how: str
    of: str
    over: str = ""
    equals: Any = None
    records: str = "runs"
    against: str = "width"
    where: Mapping[str, Any] | None = None
    beside: Mapping[str, Any] | None = None
    same: str = ""
    difference: bool = False
    at_most: float | None = None

    def measure(self, *results: ResultValue) -> Measured:
        """Return the number with its interval, on the runs of results with different seeds."""
        conditions = dict(self.where or {})
        found = self._seen(results, conditions)
        if self.beside is None:
            return READINGS[self.how]([each for _, each in found])
        others: dict[Any, float] = {}
        for key, each in self._seen(results, conditions | dict(self.beside)):
            if key in others:
                raise ValueError(
                    f"two runs of {key} to compare with: name what must be equal in both with same"
                )
            others[key] = each.value
        pairs = [(each, others[key]) for key, each in found if others.get(key)]
        return READINGS[self.how](
            [
                each._replace(value=each.value - other if self.difference else each.value / other)
                for each, other in pairs
            ]
        )

    def _seen(
        self, results: Sequence[ResultValue], conditions: Mapping[str, Any]
    ) -> list[tuple[Any, Seen]]:
        """Return the finite values of matching records, each with the key of its partner."""
        found = []
        for point in (point for result in results for point in result.points):
            for record in Record(point).inside(self.records):
                if not record.meets(conditions):
                    continue
                value, over = record.look(self.of), record.look(self.over) if self.over else 1.0
                if self.equals is not None:
                    value = float(value == self.equals)
                if self.at_most is not None and value is not None:
                    # NaN and infinity are above every bound.
                    value = float(value <= self.at_most)
                if value is not None and over and math.isfinite(value / over):
                    seen = Seen(
                        float(record.look(self.against)), int(record.look("seed")), value / over
                    )
                    found.append(
                        (
                            (seen.swept, seen.seed, record.look(self.same) if self.same else None),
                            seen,
                        )
                    )
        return found


def exponent(seen: Sequence[Seen]) -> Measured:
    """Return the fitted exponent in the swept value."""
    swept, seeds, values = zip(*seen, strict=True) if seen else ((), (), ())
    law = fit_power_law(swept, values, seeds=seeds, confidence=_LEVEL)
    if law is None:
        return _nothing(len(seen))
    low, high = law.exponent - law.interval, law.exponent + law.interval
    return Measured(law.exponent, low, high, law.num_values, "95% interval")


def every(seen: Sequence[Seen]) -> Measured:
    """Return the median and the range of these runs; no statement about other runs."""
    values = [each.value for each in seen]
    if not values:
        return _nothing(0)
    return Measured(statistics.median(values), min(values), max(values), len(values), "range")


def median(seen: Sequence[Seen]) -> Measured:
    """Return the median over seeds of each seed's median,
    between two of these by the binomial distribution.
    """
    values = sorted(statistics.median(group) for group in _by_seed(seen))
    n = len(values)
    below, rank = 0.0, 0  # values to leave out on either side
    while 2 * (below + math.comb(n, rank) / 2**n) <= 1 - _LEVEL:
        below, rank = below + math.comb(n, rank) / 2**n, rank + 1
    if not rank:
        return _nothing(len(seen))
    return Measured(
        statistics.median(values), values[rank - 1], values[n - rank], len(seen), "95% interval"
    )


def average(seen: Sequence[Seen]) -> Measured:
    """Return the mean; values of one seed may be correlated (CR2 variance, Bell &
    McCaffrey 2002).
    """
    values = np.array([each.value for each in seen])
    _, found = (
        least_squares(np.ones((len(values), 1)), values, [each.seed for each in seen], 0)
        if seen
        else (None, None)
    )
    if found is None:
        return _nothing(len(seen))
    reach = found.half_width(_LEVEL)
    return Measured(
        found.value, found.value - reach, found.value + reach, len(seen), "95% interval"
    )


def from_first_to_last(seen: Sequence[Seen]) -> Measured:
    """Return the ratio of geometric means at the largest and smallest swept value.

    The interval is Welch's for the logarithms; the values of one seed at one end count once.
    """
    positive = [each for each in seen if each.value > 0]
    swept = {each.swept for each in positive}
    if len(swept) < 2:
        return _nothing(len(seen))
    ends = [
        [
            statistics.fmean(map(math.log, group))
            for group in _by_seed([each for each in positive if each.swept == end])
        ]
        for end in (min(swept), max(swept))
    ]
    if min(map(len, ends)) < 2:
        return _nothing(len(seen))
    parts = [statistics.variance(end) / len(end) for end in ends]
    squares = sum(part**2 / (len(end) - 1) for part, end in zip(parts, ends, strict=True))
    freedom = sum(parts) ** 2 / squares if squares else math.inf
    middle = statistics.fmean(ends[-1]) - statistics.fmean(ends[0])
    reach = _quantile(freedom) * math.sqrt(sum(parts))
    low, high = math.exp(middle - reach), math.exp(middle + reach)
    return Measured(math.exp(middle), low, high, sum(map(len, ends)), "95% interval")


def share(seen: Sequence[Seen]) -> Measured:
    """Return the share of nonzero values, with the interval of Clopper and Pearson.

    Seeds, not runs, are the independent trials: n is their number and k their share of n.
    """
    if not seen:
        return _nothing(0)
    fraction = statistics.fmean(bool(each.value) for each in seen)
    n = len(_by_seed(seen))
    k, tail = fraction * n, (1 - _LEVEL) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Measured(fraction, low, high, len(seen), "95% interval")


def exceptions_seen(seeds: int) -> float:
    """Return the share of exceptions of which this many seeds show one with a
    probability of 95%.
    """
    return float(1 - (1 - _LEVEL) ** (1 / seeds))


def _by_seed(seen: Sequence[Seen]) -> list[list[float]]:
    groups: dict[int, list[float]] = {}
    for each in seen:
        groups.setdefault(each.seed, []).append(each.value)
    return list(groups.values())


READINGS: Mapping[str, Callable[[Sequence[Seen]], Measured]] = {
    "exponent": exponent,
    "every": every,
    "median": median,
    "average": average,
    "from first to last": from_first_to_last,
    "share": share,
}


def _nothing(count: int) -> Measured:
    return Measured(math.nan, math.nan, math.nan, count, "no interval")


def _quantile(freedom: float) -> float:
    return float(stdtrit(freedom, 0.5 + _LEVEL / 2))
