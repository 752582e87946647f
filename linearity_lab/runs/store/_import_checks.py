"""Checks of imported results: what a computation here cannot have produced is refused.

A checksum proves that a line has not changed since it was written. It does not prove who wrote it,
so the numbers are checked as well.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from linearity_lab.runs._any_result import Result
from linearity_lab.runs._estimate import result_bytes
from linearity_lab.runs._spec import SeededSpec, Spec, SweepSpec
from linearity_lab.runs._table import run_summary
from linearity_lab.runs._values import PointValue, Record, Value

# Squares of larger numbers overflow float64, so that means and errors could not be shown.
MAX_NUMBER = 1e150
MAX_RUNTIME_S = 1e10
# JSON takes about 2.5 times the bytes of an array; other estimates hold within a factor of 1.5.
SIZE_FACTOR = 4
SIZE_MARGIN = 1_000_000
# JSON has no such numbers; lines contain these texts.
_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_PLACE_SHOWN = 60  # letters; a file may name anything
# Fields that count steps of training, of which a setting states the largest number.
STEP_FIELDS = ("steps", "num_steps", "last_finite_step", "crossing_step")
# Outcomes of trainings whose numbers are all finite.
_ENDED_WELL = ("converged", "completed", "monotone", "catapult")


class UnusableLine(Exception):
    """Reason why a line has no usable run, as a clause."""


def check_json(data: object) -> None:
    """Check the texts and numbers of parsed JSON.

    Raises:
        UnusableLine: for text that databases cannot store, and for numbers too large to show.
    """
    for leaf in _leaves(data):
        if isinstance(leaf, str):
            if "\0" in leaf or any("\ud800" <= letter <= "\udfff" for letter in leaf):
                raise UnusableLine("damaged; it contains text that is not valid Unicode")
        elif isinstance(leaf, int | float) and not abs(leaf) <= MAX_NUMBER:
            raise UnusableLine(f"it contains a number above {MAX_NUMBER:g}")


def check_size_of_line(spec: Spec, num_bytes: int) -> None:
    """Refuse a line far larger than the result of its settings can be.

    Raises:
        UnusableLine: with both sizes.
    """
    most = SIZE_FACTOR * sum(result_bytes(spec).values()) + SIZE_MARGIN
    if num_bytes > most:
        raise UnusableLine(f"it has {num_bytes:,} bytes; its settings allow {most:,.0f}")


def check_types(data: Mapping[str, Any], result: Result) -> None:
    """Refuse values that reading has changed, such as a number written as text or as ``true``.

    Types alone do not: they take "0.3" and true for numbers, and 3.0 for an integer. An integer
    where a float is stated is the same number in JSON. Settings have their own grammar.

    Args:
        data: parsed JSON of the result, in the form of this version.

    Raises:
        UnusableLine: with the first such field.
    """
    outside = result.model_dump(mode="json", exclude={"spec", "points"})
    given = {name: value for name, value in data.items() if name in outside}
    place = _first_difference(given, outside)
    for index, point in enumerate(result.points):
        if place is None:
            read = point.model_dump(mode="json")
            place = _first_difference(data["points"][index], read, f"points.{index}")
    if place is not None:
        raise UnusableLine(not_valid(place))


def not_valid(place: str) -> str:
    """Return the reason for a field that is not valid."""
    return f"its field {place[:_PLACE_SHOWN]!r} is not valid"


def _first_difference(given: Any, read: Any, place: str = "") -> str | None:
    """Return the place of the first value that was not read as it was given.

    Fields that are not ``given`` have their defaults. Fields of the model that ``read`` lacks are
    false, see ``Provenance.imported``.
    """
    pairs: Iterable[tuple[object, Any, Any]] = ()
    if isinstance(given, dict) and isinstance(read, dict):
        pairs = [(name, given[name], read[name]) for name in given if name in read]
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        pairs = zip(range(len(given)), given, read, strict=True)
    elif not _is_same(given, read):
        return place
    for name, inner_given, inner_read in pairs:
        inner_place = f"{place}.{name}" if place else str(name)
        found = _first_difference(inner_given, inner_read, inner_place)
        if found is not None:
            return found
    return None


def _is_same(given: object, read: object) -> bool:
    if isinstance(read, float) and not math.isfinite(read):
        return given == _NO_NUMBERS[str(read)]
    is_number = type(given) is int and type(read) is float
    return given == read and (is_number or type(given) is type(read))


def check_result(result: Result) -> None:
    """Check that a result has the seeds and numbers of a computed one, and can be shown.

    Raises:
        UnusableLine: with the first fault.
    """
    if not result.points:
        raise UnusableLine("it has no points")
    _check_time(result.runtime_s)
    _check_date(result.provenance.started_at)
    for point in result.points:
        _check_time(point.runtime_s)
        if point.provenance is not None:
            _check_date(point.provenance.started_at)
        _check_numbers(point)
        _check_steps(result.spec, point, point)
        _check_records(result.spec, point)
    try:
        result.csv()
        run_summary(result.spec, result.points)
    except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError):
        raise UnusableLine("its numbers cannot be shown") from None


def _leaves(data: object) -> Iterator[object]:
    """Yield all texts and numbers of nested containers, without recursion."""
    left = [data]
    while left:
        entry = left.pop()
        if isinstance(entry, dict):
            left.extend(entry.keys())
            left.extend(entry.values())
        elif isinstance(entry, list | tuple):
            left.extend(entry)
        else:
            yield entry


def _check_time(seconds: float) -> None:
    if not 0 <= seconds <= MAX_RUNTIME_S:
        raise UnusableLine("its run time is no finite number of seconds")


def _check_date(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise UnusableLine("its starting time is no date") from None


def _check_numbers(point: PointValue) -> None:
    """Refuse numbers written as texts that are too large; texts such as NaN are allowed."""
    for leaf in _leaves(point.model_dump()):
        if isinstance(leaf, float) and math.isfinite(leaf) and abs(leaf) > MAX_NUMBER:
            raise UnusableLine(f"{point.key} contains a number above {MAX_NUMBER:g}")


def _check_records(spec: Spec, point: PointValue) -> None:
    """Refuse a point with another number of records than its settings give."""
    _check_counts(spec, point)
    _check_data(point)
    for name in type(point).model_fields:
        records = getattr(point, name)
        if not isinstance(records, tuple):
            continue
        seeded = [each for each in records if isinstance(each, Value) and hasattr(each, "seed")]
        if seeded and isinstance(spec, SeededSpec):
            _check_seeds(spec, point, seeded, is_complete=name == "runs")
        for record in seeded:
            _check_names(spec, point, record)
            _check_curves(point, record)
            _check_finite(point, record)


def _check_counts(spec: Spec, point: PointValue) -> None:
    stated = spec.num_records(point.key)
    for name, expected in stated.items():
        found = len(getattr(point, name))
        if found != expected:
            reason = f"{point.key} has {found} entries in {name}; its settings give {expected}"
            raise UnusableLine(reason)
    # An experiment that states no numbers has runs wherever its point requires the field.
    runs = type(point).model_fields.get("runs")
    is_required = "runs" not in stated and runs is not None and runs.is_required()
    if is_required and not point.records:
        raise UnusableLine(f"{point.key} has no runs")


def _check_seeds(
    spec: SeededSpec, point: PointValue, records: Sequence[Record], *, is_complete: bool
) -> None:
    """Refuse records of other seeds, repeated records and, in ``runs``, missing seeds."""
    found = {record.seed for record in records}
    if not found <= set(spec.seeds):
        raise UnusableLine(f"{point.key} has runs of seeds that its settings exclude")
    if len(set(map(_identity, records))) < len(records):
        raise UnusableLine(f"{point.key} has a run several times")
    if is_complete and len(found) < spec.num_seeds:
        raise UnusableLine(f"{point.key} lacks runs of some seeds")


def _identity(record: Record) -> tuple[object, ...]:
    """Return the seed, rate and names (output, method, …) that distinguish records of a point."""
    names = []
    for name in type(record).model_fields:
        value = getattr(record, name)
        if name in ("seed", "rate") or (isinstance(value, str) and name != "outcome"):
            names.append((name, value))
    return tuple(names)


def _check_names(spec: Spec, point: PointValue, record: BaseModel) -> None:
    """Refuse a record of an output, method or model that is not among those of the settings."""
    for name in type(record).model_fields:
        value = getattr(record, name)
        allowed: Any = getattr(spec, f"{name}s", None)
        if name == "output" and isinstance(spec, SweepSpec):
            allowed = spec.all_outputs
        elif callable(allowed):  # such as the graphs of a spec, by name
            allowed = allowed()
        is_stated = isinstance(allowed, tuple | Mapping)
        if isinstance(value, str) and is_stated and value not in allowed:
            raise UnusableLine(f"{point.key} has a run whose {name} its settings exclude")


def _check_curves(point: PointValue, part: Value, num_records: int | None = None) -> None:
    """Refuse curves of another number of records, and their steps if they do not ascend from 0.

    Args:
        num_records: of the value around this part; None if it records nothing along its way.
    """
    kind = type(part)
    if kind.recorded_at:
        times = getattr(part, kind.recorded_at)
        num_records = len(times)
        descends = any(after <= before for before, after in pairwise(times))
        if kind.recorded_at == "steps" and times and (times[0] != 0 or descends):
            raise UnusableLine(f"{point.key} has a run whose steps do not ascend from 0")
    for name, field in kind.model_fields.items():
        value = getattr(part, name)
        if isinstance(value, Value):
            _check_curves(point, value, num_records)
        if num_records is None or name in kind.other_lengths:
            continue
        for curve in value.values() if isinstance(value, dict) else (value,):
            is_curve = isinstance(curve, tuple) and (curve or field.is_required())
            if is_curve and len(curve) != num_records:
                counts = f"{num_records} records and {len(curve)} entries in {name}"
                raise UnusableLine(f"{point.key} has a run with {counts}")


def _check_steps(spec: Spec, point: PointValue, part: object) -> None:
    """Refuse more steps of training than the settings allow, in any record of a point."""
    if isinstance(part, tuple):
        for each in part:
            _check_steps(spec, point, each)
    if not isinstance(part, BaseModel):
        return
    most = getattr(getattr(spec, "training", spec), "max_steps", math.inf)
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name not in STEP_FIELDS:
            _check_steps(spec, point, value)
            continue
        for number in _leaves(value):
            if isinstance(number, int) and number > most:
                reason = f"{point.key} has a run of {number:,} steps; its settings allow {most:,}"
                raise UnusableLine(reason)


def _check_finite(point: PointValue, record: BaseModel, is_training: bool = False) -> None:
    """Refuse NaN and infinities where the type of a record promises finite numbers.

    A float without a default is finite in a training that ended well. So is a single float of a
    record without an outcome; the curves of such a record may leave the range of floats. A default
    of NaN or None means that some settings do not measure the field. Records in a record follow
    the same rules; those of a training that failed may contain anything.

    Args:
        is_training: whether its numbers belong to a training that ended well.
    """
    fields = type(record).model_fields
    if "outcome" in fields:
        if getattr(record, "outcome", "") not in _ENDED_WELL:
            return
        is_training = True
    for name, field in fields.items():
        value = getattr(record, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, BaseModel):
                _check_finite(point, inner, is_training)
        if not field.is_required():
            continue
        if not is_training and not isinstance(value, float):
            continue
        for number in _leaves(value):
            if isinstance(number, float) and not math.isfinite(number):
                raise UnusableLine(f"{point.key} has a run whose {name} is not finite")


def _check_data(point: PointValue) -> None:
    """Refuse a point whose data (inputs, targets) are not finite; no training has changed them."""
    for name, field in type(point).model_fields.items():
        value = getattr(point, name)
        if not field.is_required() or not isinstance(value, tuple):
            continue
        for number in _leaves(value):
            if isinstance(number, float) and not math.isfinite(number):
                raise UnusableLine(f"{point.key} has {name} that are not finite")
