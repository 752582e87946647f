"""Files of runs: one result per line in JSON, each ending with the SHA-256 of the rest of its line.

Exports, ``--out`` and the gallery have this format. Plain text cannot unpack archives, name paths
or run code, and a damaged line affects only its own run.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from linearity_lab.runs._any_result import Result
from linearity_lab.runs._documents import migrated, migrated_point
from linearity_lab.runs._parse import parse_spec, spec_digest
from linearity_lab.runs._table import KINDS
from linearity_lab.runs.store._entries import RunTooLarge
from linearity_lab.runs.store._import_checks import (
    UnusableLine,
    check_json,
    check_result,
    check_size_of_line,
    check_types,
    not_valid,
)
from linearity_lab.runs.store._store import Store, partial_result
from linearity_lab.settings.grammar import InvalidSpec
from ntk_core.errors import InvalidInput

_SHA = re.compile(r',"sha256":"([0-9a-f]{64})"\}\s*\Z')
MAX_LINE_BYTES = 2**29  # bounds the memory that one line takes
_RESULT: TypeAdapter[Result] = TypeAdapter(Result)


@dataclass(frozen=True)
class Imported:
    """The outcome of an import.

    Attributes:
        digests: digests of all usable runs, including runs that the store had before.
        left_aside: one sentence per unusable run.
    """

    digests: tuple[str, ...]
    left_aside: tuple[str, ...]


def run_line(result: Result) -> str:
    """Return a result as one line of a run file, with its line break."""
    return sealed_line(result.model_dump_json())


def sealed_line(text: str) -> str:
    """Return JSON of a result as one line of a run file."""
    return f'{text[:-1]},"sha256":"{sha(text)}"}}\n'


def read_line(line: str) -> Result:
    """Return the result of a line of a run file after all checks.

    Raises:
        UnusableLine: if the line is damaged, changed or from another version, or its points do
            not match its settings.
    """
    try:
        data = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UnusableLine("damaged; it is no JSON") from None
    found = _SHA.search(line)
    if found is None or found[1] != sha(f"{line[: found.start()]}}}"):
        raise UnusableLine("damaged; its SHA-256 does not match")
    del data["sha256"]
    check_json(data)
    data = _migrated(data)
    try:
        result = _RESULT.validate_python(data)
    except RecursionError:
        raise UnusableLine("its fields are nested too deeply") from None
    except ValidationError as error:
        raise UnusableLine(_why_not_valid(data["spec"], error)) from None
    keys = [point.key for point in result.points]
    expected = set(result.spec.point_keys())
    if not expected.issuperset(keys) or len(set(keys)) < len(keys):
        raise UnusableLine("its points do not match its settings")
    if result.status == "completed" and len(keys) < len(expected):
        raise UnusableLine("its status is completed, but points are missing")
    check_size_of_line(result.spec, len(line))
    check_types(data, result)
    check_result(result)
    return result


def _why_not_valid(settings: dict[str, Any], error: ValidationError) -> str:
    """Return the first problem of the settings, or else the first field that is not valid."""
    try:
        parse_spec(settings)
    except InvalidSpec as invalid:
        return f"its settings are not valid; {invalid.problems[0]}"
    place = ".".join(str(part) for part in error.errors()[0]["loc"])
    return not_valid(place)


def _migrated(data: object) -> dict[str, Any]:
    """Return a result whose settings and points have the form of this version.

    Raises:
        UnusableLine: if its experiment is unknown, a newer version wrote it, or no migration
            leads to this version.
    """
    if not isinstance(data, dict) or not isinstance(spec := data.get("spec"), dict):
        raise UnusableLine("damaged; it contains no settings")
    experiment = spec.get("experiment")
    if not isinstance(experiment, str) or experiment not in KINDS:
        shown = repr(str(experiment)[:40])
        raise UnusableLine(f"of another version of the lab; this version has no experiment {shown}")
    version = spec.get("schema_version")
    points = data.get("points")
    try:
        settings = migrated(KINDS[experiment].spec, spec)
        if isinstance(points, list):
            points = [migrated_point(experiment, version, point) for point in points]
    except InvalidSpec as error:
        raise UnusableLine(f"of another version of the lab; {error.problems[0]}") from None
    return {**data, "spec": settings, "points": points}


def _no_number(name: str) -> None:
    """Refuse NaN and infinities as bare words, which JSON does not have; exports write texts."""
    raise UnusableLine(f"damaged; {name} is no number in JSON")


def write_runs(store: Store, runs: Iterable[str], file: IO[bytes]) -> int:
    """Write the runs with these digests and return their number.

    Skip unknown runs and runs without points.

    A run of another version is written as stored, so that this version of the lab can import it.
    """
    written = 0
    for run in runs:
        spec = store.spec(run)
        known = store.known_run(run) if spec is None else None
        result = store.result(run) or (partial_result(spec, store.points_of(run)) if spec else None)
        if result is not None:
            file.write(run_line(result).encode())
            written += 1
        elif known is not None and known.run.document is not None and known.points:
            file.write(sealed_line(known.json()).encode())
            written += 1
    return written


def read_runs(store: Store, file: IO[bytes], *, field: str = "file") -> Imported:
    """Import the runs of a file; report and skip damaged, foreign and older ones.

    Args:
        field: the user's name for the file, for errors.

    Raises:
        InvalidInput: if it is not a file of runs.
    """
    good: dict[str, None] = {}
    left_aside: list[str] = []
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
        if not line.strip():
            continue
        try:
            if len(line) > MAX_LINE_BYTES:
                while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES)):
                    pass  # skip the rest of this line
                raise UnusableLine(f"it has more than {MAX_LINE_BYTES:,} bytes")
            result = read_line(line.decode("utf-8", "replace"))
            store.save_result(result, imported=True)
        except RunTooLarge as problem:
            left_aside.append(f"line {number}: {problem}")
        except UnusableLine as problem:
            if not good and not left_aside and b'"spec"' not in line[:1000]:
                begins = "".join(
                    letter
                    for letter in line[:40].decode("utf-8", "replace")
                    if letter.isprintable()
                )
                raise InvalidInput(
                    field, begins, "a file of runs, as an export writes it"
                ) from None
            left_aside.append(f"line {number}: {problem}")
        else:
            good[spec_digest(result.spec)] = None
    if not good and not left_aside:
        raise InvalidInput(field, "an empty file", "a file of runs, as an export writes it")
    return Imported(tuple(good), tuple(left_aside))


def sha(text: str) -> str:
    """Return the SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
