"""A claim with its source, its reading of the gallery, and the verdict of the numbers."""

import functools
import inspect
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from ntk_core.runs._table import EXPERIMENTS, PRESETS, Result
from ntk_core.runs._values import ResultValue
from ntk_core.runs.gallery import GALLERY
from tests.claims.readings import Measured, Reading

Verdict = Literal["holds", "holds with a correction", "not seen here"]
_RESULT: TypeAdapter[Any] = TypeAdapter(Result)


@dataclass(frozen=True)
class Claim:
    """One claim that users read.

    Attributes:
        sentence: as it stands in ``said``, or in the claim of the preset where that is empty.
        source: paper and place.
        preset: whose result in the gallery it is measured on.
        what: what is measured, in words.
        reading: what is measured.
        expected: the interval in which the measured one must lie for the claim to hold as it was made.
        corrected: where it lies if the claim holds as ``correction`` says.
        said: the Markdown file with the sentence, from the root of the repository.
    """

    name: str
    sentence: str
    source: str
    preset: str
    what: str
    reading: Reading
    expected: tuple[float, float]
    corrected: tuple[float, float] | None
    correction: str
    said: str


@dataclass(frozen=True)
class Judged:
    """A claim beside what was measured."""

    claim: Claim
    measured: Measured
    verdict: Verdict


@functools.cache
def claims() -> tuple[Claim, ...]:
    """All claims: the tables of ``claims.toml`` beside the spec of each experiment.

    Raises:
        TypeError, LookupError: where a table lacks something, or names what does not exist.
        ValueError: two claims have one name, or a correction has no interval.
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


def judged(claim: Claim, folder: Path = GALLERY) -> Judged:
    """The claim against the result of its preset in a gallery."""
    measured = claim.reading.measure(_result(folder / f"{claim.preset}.json"))
    return Judged(claim, measured, verdict(claim, measured))


def verdict(claim: Claim, measured: Measured) -> Verdict:
    """By the whole interval: where it reaches outside of what is claimed, or there is none, the claim is not seen."""
    if _within(measured, claim.expected):
        return "holds"
    if claim.corrected is not None and _within(measured, claim.corrected):
        return "holds with a correction"
    return "not seen here"


def _within(measured: Measured, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= measured.low and measured.high <= bounds[1] and not math.isnan(measured.value)


def _claim(name: str, table: Mapping[str, Any]) -> Claim:
    given = dict(table)
    expected, corrected = given.pop("expected"), given.pop("corrected", None)
    texts = {key: given.pop(key) for key in ("sentence", "preset", "what")}
    correction, said = given.pop("correction", ""), given.pop("said", "")
    source = given.pop("source", PRESETS[texts["preset"]].source)
    if bool(correction) != (corrected is not None):
        raise ValueError(f"{name}: a correction has words and an interval")
    return Claim(
        name=name,
        **texts,
        source=source,
        reading=Reading(**given),
        expected=(expected[0], expected[1]),
        corrected=(corrected[0], corrected[1]) if corrected else None,
        correction=correction,
        said=said,
    )


@functools.lru_cache(maxsize=8)
def _result(path: Path) -> ResultValue:
    return cast(ResultValue, _RESULT.validate_json(path.read_bytes()))
