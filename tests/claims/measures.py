"""Measures of records of the gallery, and facts with their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from linearity_lab.components.gallery import gallery_result
from ntk_core.fits import fit_power_law
from ntk_core.runs import mean
from tests.claims.readings import Record

INF = math.inf
Seen = tuple[float, int, float]


class Fact(NamedTuple):
    """A measure of every record that meets the conditions, and the interval of all its values."""

    how: str
    preset: str
    of: str | Callable[[Any], float | None]
    low: float
    high: float
    against: str
    records: str
    where: dict[str, Any]

    def seen(self) -> Iterator[Seen]:
        """(swept value, seed, value) of each record with a value."""
        for point in gallery_result(self.preset).points:
            for record in Record(point).inside(self.records):
                if record.meets(self.where):
                    value = record.look(self.of) if isinstance(self.of, str) else self.of(record.parts[-1])
                    if value is not None:
                        yield record.look(self.against), record.look("seed"), value


def fact(
    how: str, preset: str, of: Any, low: float, high: float = INF, against="width", records="runs", **where: Any
) -> Fact:
    return Fact(how, preset, of, low, high, against, records, where)


def _groups(seen: list[Seen]) -> list[list[float]]:
    """Values grouped by swept value, ascending."""
    ordered = sorted(seen, key=lambda each: each[0])
    return [[each[2] for each in group] for _, group in itertools.groupby(ordered, key=lambda each: each[0])]


def _law(seen: list[Seen]) -> Any:
    swept, seeds, found = zip(*seen, strict=True)
    return fit_power_law(swept, found, seeds=seeds)


def _ends(seen: list[Seen]) -> tuple[list[float], list[float]]:
    first, *_, last = _groups(seen)
    return first, last


MEASURES: dict[str, Callable[[list[Seen]], list[float]]] = {
    "every": lambda seen: [each[2] for each in seen],
    "exponent": lambda seen: [_law(seen).exponent],
    "lower end": lambda seen: [_law(seen).exponent - _law(seen).interval],
    "upper end": lambda seen: [_law(seen).exponent + _law(seen).interval],
    "slopes": lambda seen: [each.slope for each in _law(seen).local],
    "means": lambda seen: [mean(group).value for group in _groups(seen)],
    "ratio of means": lambda seen: [mean(_ends(seen)[1]).value / mean(_ends(seen)[0]).value],
    "ratios of ends": lambda seen: [last / first for last in _ends(seen)[1] for first in _ends(seen)[0]],
    "worst ratios of neighbors": lambda seen: [max(b) / min(a) for a, b in itertools.pairwise(_groups(seen))],
}


def ratio(one: str, other: str) -> Callable[[Any], float]:
    """Ratio of two paths of a record."""
    return lambda run: Record(run).look(one) / Record(run).look(other)


def smallest_ratio(one: str, other: str) -> Callable[[Any], float]:
    """Smallest ratio along two curves of a record after their first step."""
    return lambda run: min(a / b for a, b in list(zip(Record(run).look(one), Record(run).look(other), strict=True))[1:])


def gap_at_first(run: Any) -> float:
    """Largest relative gap of the test losses in the first four fifths of the linear model's progress."""
    linear, network = run.linear.test_loss, run.network.test_loss
    goal = linear[0] - 0.8 * (linear[0] - min(linear))
    before = itertools.takewhile(lambda pair: pair[1] >= goal, zip(network, linear, strict=True))
    return max(abs(net - lin) / lin for net, lin in before)


def gained_outside(run: Any, index: int) -> float:
    """Removed share of the loss outside the span of the inputs."""
    return 1 - run.network.complement_loss[index] / run.linear.complement_loss[0]


def outside_share(run: Any) -> float | None:
    """Share of the network's gain outside the span of the inputs, for runs that depart."""
    gains = [getattr(run.linear, of)[-1] - getattr(run.network, of)[-1] for of in ("complement_loss", "test_loss")]
    return None if run.departure is None else gains[0] / gains[1]


def way_left(run: Any, part: str) -> float:
    """Remaining share of the linear model's progress at the departure."""
    curve, best = getattr(run.linear, f"{part}_loss"), getattr(run, f"optimal_{part}_loss")
    return (curve[run.departure] - best) / (curve[0] - best)


def over_bound(run: Any, bound: Any) -> float:
    return max(loss / limit for loss, limit in zip(run.loss, bound, strict=True))


def share_of_first_half(run: Any) -> float:
    """Share of the decrease of log L in the first half of the steps."""
    middle = min(range(len(run.steps)), key=lambda i: abs(run.steps[i] - run.steps[-1] / 2))
    return math.log(run.loss[0] / run.loss[middle]) / math.log(run.loss[0] / run.loss[-1])


def after_phase(run: Any) -> float:
    return run.departure - run.linear_phase
