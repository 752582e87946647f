"""Runs as one file, to export and to import: JSON lines, a header and then one run per line.

Plain text on purpose: nothing unpacks to more than it is, names no path and runs no code, and a damaged line costs no
other. Every run carries the SHA-256 of its own line and is named by the digest of its spec; both are computed again.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from pydantic import ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.runs._parse import InvalidSpec, canonical_json, digest, parse_spec
from ntk_core.runs._spec import SCHEMA_VERSION, Spec
from ntk_core.runs._values import PointValue
from ntk_core.runs.store._entries import ENDING, POINT, Ending, ending_of, result_of, sha
from ntk_core.runs.store._store import Store

FORMAT, VERSION = "linearity-lab-runs", 1
MAX_LINE_BYTES = 20_000_000
MAX_FILE_BYTES = 1_000_000_000
MAX_NAMED = 20
_REST_BYTES = 65_536


@dataclass(frozen=True)
class Imported:
    """What came out of a file.

    Attributes:
        digests: of the runs that were good, those included that were here already.
        left_aside: one sentence per run that was not, twenty at most.
        num_left_aside: how many were not.
    """

    digests: tuple[str, ...]
    left_aside: tuple[str, ...]
    num_left_aside: int


def write_runs(store: Store, runs: Iterable[str], file: IO[bytes]) -> int:
    """Write the runs with these digests; the number that could be written: damaged and unknown ones are left out."""
    written = 0
    header = {"format": FORMAT, "version": VERSION, "schema_version": SCHEMA_VERSION}
    file.write(json.dumps(header).encode() + b"\n")
    for run in runs:
        spec = store.spec(run)
        if spec is None:
            continue
        result = store.result(run)
        points = {point.key: point for point in result.points} if result else store.points_of(run)
        entry = {
            "digest": run,
            "schema_version": SCHEMA_VERSION,
            "spec": json.loads(canonical_json(spec)),
            "points": {key: json.loads(point.model_dump_json()) for key, point in points.items()},
            "ending": json.loads(ending_of(result).model_dump_json()) if result else None,
        }
        file.write(_canonical({**entry, "sha256": sha(_canonical(entry))}).encode() + b"\n")
        written += 1
    return written


def read_runs(store: Store, file: IO[bytes], *, field: str = "file", max_bytes: int = MAX_FILE_BYTES) -> Imported:
    """Put the runs of a file into the store; what is damaged, foreign or of an older version is named and left aside.

    Args:
        field: how the person named the file, for errors.
        max_bytes: most bytes that are read.

    Raises:
        InvalidInput: when the file was not written by :func:`write_runs`, or is too large.
    """
    lines = _lines(file, field, max_bytes)
    _check_header(next(lines, b""), field)
    good: dict[str, None] = {}
    left_aside: list[str] = []
    num_left_aside = 0
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            entry = _checked(line)
        except _Unusable as problem:
            num_left_aside += 1
            left_aside += [f"line {number}: {problem}"] if len(left_aside) < MAX_NAMED else []
            continue
        result = result_of(entry.spec, entry.ending, entry.points) if entry.ending else None
        store.import_run(entry.spec, entry.points, result)
        good[digest(entry.spec)] = None
    return Imported(tuple(good), tuple(left_aside), num_left_aside)


class _Unusable(Exception):
    """Why a line cannot be taken."""


@dataclass(frozen=True)
class _Entry:
    spec: Spec
    points: dict[str, PointValue]
    ending: Ending | None


def _checked(line: bytes) -> _Entry:
    """The run of a line, after every check."""
    if len(line) > MAX_LINE_BYTES:
        raise _Unusable(f"longer than {MAX_LINE_BYTES:,} bytes")
    data = _json(line)
    if not isinstance(data, dict):
        raise _Unusable("no run")
    version = data.get("schema_version")
    if version != SCHEMA_VERSION:
        raise _Unusable(f"of version {str(version)[:20]!r}; this lab reads version {SCHEMA_VERSION}")
    if data.pop("sha256", None) != sha(_canonical(data)):
        raise _Unusable("damaged; its SHA-256 does not match")
    try:
        spec = parse_spec(data.get("spec"))
    except (InvalidSpec, RecursionError):
        raise _Unusable("its settings are not allowed here") from None
    if digest(spec) != data.get("digest"):
        raise _Unusable("its digest is not that of its settings")
    return _Entry(spec, *_outcome(spec, data))


def _outcome(spec: Spec, data: dict[str, Any]) -> tuple[dict[str, PointValue], Ending | None]:
    """The points by key, and how the run ended."""
    given, ended = data.get("points"), data.get("ending")
    if not isinstance(given, dict):
        raise _Unusable("it has no points")
    try:
        points = {key: POINT.validate_python(value) for key, value in given.items()}
        ending = None if ended is None else ENDING.validate_python(ended)
    except (ValidationError, RecursionError):
        raise _Unusable("its points are not those of a run") from None
    keys = set(spec.point_keys())
    if any(key not in keys or point.key != key or point.kind != spec.experiment for key, point in points.items()):
        raise _Unusable("its points are not those of its settings")
    if ending is not None:
        result = result_of(spec, ending, points)
        if result is None or (result.status == "completed" and set(ending.keys) != keys):
            raise _Unusable("its result is not that of its settings")
    return points, ending


def _json(line: bytes) -> Any:
    def refuse(_name: str) -> NoReturn:
        raise ValueError

    try:
        return json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise _Unusable("damaged; it is no JSON") from None


def _check_header(line: bytes, field: str) -> None:
    try:
        header = _json(line)
    except _Unusable:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        begins = "".join(letter for letter in line[:40].decode("utf-8", "replace") if letter.isprintable())
        raise InvalidInput(field, begins, "a file of runs, as an export writes it")
    if header.get("version") != VERSION:
        raise InvalidInput(field, f"version {header.get('version')!r}", f"a file of runs of version {VERSION}")


def _lines(file: IO[bytes], field: str, max_bytes: int) -> Iterator[bytes]:
    """The lines; of one that is too long only the beginning, so that it can be named."""
    left = max_bytes
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line
        left -= len(line)
        while left >= 0 and not line.endswith(b"\n") and (line := file.readline(_REST_BYTES)):
            left -= len(line)
        if left < 0:
            raise InvalidInput(field, "its size", f"at most {max_bytes:,} bytes")


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
