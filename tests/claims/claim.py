"""Claims with sources, measurements on two groups of runs, and verdicts."""

import functools
import inspect
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from linearity_lab.installation import TOP
from linearity_lab.runs._any_result import Result
from linearity_lab.runs._presets import with_measured
from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._table import EXPERIMENTS, PRESETS
from linearity_lab.runs.gallery import GALLERY
from tests.claims.readings import Measured, Reading

CONFIRMED = Path(__file__).with_name("confirmed.json")
MEASURED = TOP / "linearity_lab" / "experiments" / "measured.toml"
# A range describes the runs made: fewer fresh seeds than these confirm nothing, nor do fewer runs.
LEAST_SEEDS = 8
Verdict = Literal[
    "confirmed",
    "identity",
    "holds with a caveat",
    "few runs",
    "not resolved",
    "not seen",
    "not confirmed yet",
]
_RESULT: TypeAdapter[Any] = TypeAdapter(Result)


@dataclass(frozen=True)
class Claim:
    """One claim shown to users.

    Attributes:
        sentence: quoted from ``document``, or from the preset's claim if that is empty.
        source: paper and section.
        preset: the runs that it is measured on.
        what: description of the measure.
        reading: the measure.
        expected: interval that must contain the measured interval.
        interval_set: whether ``expected`` was fixed before or after the first measurement.
        caveat_interval: interval that must contain the measured one for the claim to
            hold with its caveat.
        caveat: restriction beside the sentence; part of ``document``, or added to a preset's claim
            by ``Preset``. ``{measured}`` stands for the fresh measurement, so that a caveat cannot
            contradict its interval.
        identity: true by construction: a run outside would be an error of the program,
            not of the sentence.
        document: the Markdown file with the sentence, from the root of the repository.
    """

    name: str
    sentence: str
    source: str
    preset: str
    what: str
    reading: Reading
    expected: tuple[float, float]
    interval_set: Literal["before", "after"] = "after"
    caveat_interval: tuple[float, float] | None = None
    caveat: str = ""
    identity: bool = False
    document: str = ""

    @property
    def fingerprint(self) -> str:
        """The measure as one string, since confirmations of other measures do not count."""
        measure = {"preset": self.preset, **asdict(self.reading)}
        # Confirmations made before this setting existed still count.
        if self.reading.at_most is None:
            del measure["at_most"]
        return json.dumps(measure, sort_keys=True, ensure_ascii=False)

    @property
    def stated_caveat(self) -> str:
        """The caveat with the fresh measurement in place of ``{measured}``."""
        found = confirmation_of(self)
        return with_measured(self.caveat, found and found.words)


_FIELDS = {each.name for each in fields(Claim)} - {"name", "reading"}


@dataclass(frozen=True)
class Judged:
    """A claim with its measurements.

    Attributes:
        measured: on the runs of the gallery, from which its interval was set.
        confirmation: on fresh runs; None before they are computed.
        fresh_seeds: number of seeds of the fresh runs.
    """

    claim: Claim
    measured: Measured
    confirmation: Measured | None
    fresh_seeds: int
    verdict: Verdict


@functools.cache
def claims() -> tuple[Claim, ...]:
    """Return all claims, from the ``claims.toml`` beside each experiment's spec.

    Raises:
        TypeError, LookupError: a table lacks a field or has an unknown name.
        ValueError: two claims have one name, or the interval of a caveat has no words.
    """
    found: dict[str, Claim] = {}
    for experiment in EXPERIMENTS.values():
        path = Path(inspect.getfile(experiment.spec)).with_name("claims.toml")
        tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for name, table in tables.items():
            if name in found:
                raise ValueError(f"two claims are called {name}")
            found[name] = _claim(name, table)
    return tuple(found.values())


@functools.cache
def judged() -> tuple[Judged, ...]:
    """Return all claims with their measurements on the gallery and on fresh runs."""
    return tuple(map(_judged, claims()))


def _judged(claim: Claim) -> Judged:
    measured = claim.reading.measure(_result(GALLERY / f"{claim.preset}.json"))
    confirmation = confirmation_of(claim)
    seeds = _confirmed(CONFIRMED)[claim.name][1] if confirmation else 0
    found = verdict(claim, measured, confirmation, seeds)
    return Judged(claim, measured, confirmation, seeds, found)


def confirmation_of(claim: Claim, path: Path = CONFIRMED) -> Measured | None:
    """Return the measurement on fresh runs, None if there is none of the present measure."""
    kept, _ = _confirmed(path).get(claim.name, (None, 0))
    if kept is None or kept["measure"] != claim.fingerprint:
        return None
    return Measured(**kept["measured"])


def verdict(
    claim: Claim, measured: Measured, confirmation: Measured | None, fresh_seeds: int
) -> Verdict:
    """Judge by the whole intervals of both groups of runs.

    Confirmed: both lie in the expected interval, and that of the fresh runs is at most half as
    wide. Few runs: they are inside, but the second is an interval of fewer than ``LEAST_SEEDS``
    fresh runs, or a range of fewer seeds. Identity: inside, and true by construction. With a
    caveat: both lie in the expected interval or in that of the caveat. Not seen: one lies outside
    of both, or a range has a run outside.
    Otherwise the runs do not resolve it.
    """
    if confirmation is None:
        return "not confirmed yet"
    both = (measured, confirmation)
    are_inside = all(_within(each, claim.expected) for each in both)
    if are_inside and claim.identity:
        return "identity"
    if are_inside and not confirmation.is_wide(claim.expected):
        num_trials = confirmation.count
        if confirmation.kind == "range":
            num_trials = min(fresh_seeds, num_trials)
        return "few runs" if num_trials < LEAST_SEEDS else "confirmed"
    allowed = [claim.expected, *([claim.caveat_interval] if claim.caveat_interval else [])]
    if all(any(_within(each, bounds) for bounds in allowed) for each in both):
        return "holds with a caveat"
    return "not seen" if any(_misses(each, allowed) for each in both) else "not resolved"


def _within(measured: Measured, bounds: tuple[float, float]) -> bool:
    return (
        bounds[0] <= measured.low and measured.high <= bounds[1] and not math.isnan(measured.value)
    )


def _misses(measured: Measured, allowed: list[tuple[float, float]]) -> bool:
    if measured.kind == "range":
        return not any(_within(measured, bounds) for bounds in allowed)
    return all(measured.high < low or measured.low > high for low, high in allowed)


def _claim(name: str, table: Mapping[str, Any]) -> Claim:
    own: dict[str, Any] = {key: table[key] for key in table.keys() & _FIELDS}
    own |= {key: tuple(value) for key, value in own.items() if isinstance(value, list)}
    if "caveat_interval" in own and "caveat" not in own:
        raise ValueError(f"{name}: the interval of a caveat needs its words")
    own.setdefault("source", PRESETS[own["preset"]].source)
    return Claim(
        name=name, reading=Reading(**{key: table[key] for key in table.keys() - _FIELDS}), **own
    )


@functools.lru_cache(maxsize=8)
def _result(path: Path) -> ResultValue:
    return cast(ResultValue, _RESULT.validate_json(path.read_bytes()))


@functools.lru_cache(maxsize=2)
def _confirmed(path: Path) -> dict[str, tuple[Any, int]]:
    """Return the stored fields of each claim, with the number of seeds."""
    if not path.exists():
        return {}
    groups = json.loads(path.read_text(encoding="utf-8")).values()
    seeds = [
        sum(batch["seeds"][1] for batch in (group, *group.get("further", ()))) for group in groups
    ]
    return {
        name: (kept, count)
        for group, count in zip(groups, seeds, strict=True)
        for name, kept in group["claims"].items()
    }
