"""One run as files in a directory: what the command line writes with ``--out`` and reads again to resume or show it.

``spec.json`` and ``points/`` exist from the start, ``result.json`` and ``points.csv`` once the run has ended, and
``SHA256SUMS`` says what each was when it was written: what was changed since is not believed.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.runs._checksums import NAME, Checksums
from ntk_core.runs._parse import MAX_JSON_BYTES, InvalidSpec, canonical_json, digest, parse_spec
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import Point, Result
from ntk_core.runs._values import Value

_LOG = logging.getLogger(__name__)
_RESULT: TypeAdapter[Result] = TypeAdapter(Result)


class RunDirectory:
    """The files of one run.

    Args:
        path: the directory; made by :meth:`begin`.
        field: how the person named it, for errors.
    """

    def __init__(self, path: Path, field: str = "--out"):
        self.path, self._field = path, field

    def begin(self, spec: Spec) -> DirectoryPoints:
        """Write ``spec.json`` and say where points go; points of an earlier run of the same spec stay.

        Raises:
            InvalidInput: when the directory cannot be written or holds the run of another spec.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            begun = (self.path / "spec.json").exists()
        except (OSError, ValueError) as error:
            raise unwritable(self._field, self.path, error) from None
        if begun and digest(self.spec()) != digest(spec):
            raise InvalidInput(
                self._field,
                str(self.path),
                "an empty directory, or one with an earlier run of the same settings to resume",
            )
        self._write("spec.json", canonical_json(spec) + "\n")
        return DirectoryPoints(self.path / "points", spec, self._field)

    def finish(self, result: Result) -> None:
        """Write ``result.json`` and ``points.csv``."""
        self._write("points.csv", result.csv())
        self._write("result.json", result.model_dump_json(indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        _write_checked(self.path, name, text, self._field)

    def spec(self) -> Spec:
        """The spec of the run in this directory.

        Raises:
            InvalidInput: when there is none that can be read, or it was changed.
        """
        data = read_limited(self.path / "spec.json", self._field)
        Checksums(self.path).check("spec.json", data, self._field)
        try:
            return parse_spec(data)
        except InvalidSpec:
            raise InvalidInput(
                self._field, str(self.path), "a directory written by `run --out`; its spec.json is damaged"
            ) from None

    def result(self) -> Result | None:
        """The result, None before the run has ended.

        Raises:
            InvalidInput: when it cannot be read, or was changed.
        """
        path = self.path / "result.json"
        if not path.exists():
            return None
        try:
            data = path.read_bytes()
        except OSError as error:
            raise unreadable(self._field, path, error) from None
        Checksums(self.path).check(path.name, data, self._field)
        try:
            return _RESULT.validate_json(data)
        except ValidationError:
            allowed = "a directory written by `run --out`; its result.json is damaged or of another version"
            raise InvalidInput(self._field, str(self.path), allowed) from None

    def points(self) -> tuple[Point, ...]:
        """The finished points, in the order of the spec's keys."""
        found = DirectoryPoints(self.path / "points", self.spec(), self._field).finished()
        return tuple(found[key] for key in self.spec().point_keys() if key in found)


class _StoredFile(Value):
    digest: str
    key: str
    point: Point


class DirectoryPoints:
    """The finished points of one spec as JSON files in a directory, each written at once or not at all."""

    def __init__(self, path: Path, spec: Spec, field: str = "--out"):
        self._path, self._run, self._field = path, digest(spec), field  # beside the checksums of the directory

    def finished(self) -> dict[str, Point]:
        """The intact points of this spec by key; damaged ones are left out, so that they are computed again."""
        points: dict[str, Point] = {}
        checksums = Checksums(self._path.parent)
        for path in sorted(self._path.glob("*.json")):
            try:
                data = path.read_bytes()
                checksums.check(f"{self._path.name}/{path.name}", data, self._field)
                stored = _StoredFile.model_validate_json(data)
            except (OSError, ValidationError, InvalidInput):
                _LOG.warning("%s is damaged, changed or of an older version; its point is computed again.", path)
                continue
            if stored.digest == self._run:
                points[stored.key] = stored.point
        return points

    def save(self, key: str, point: Point) -> None:
        """Keep a point durably.

        Raises:
            InvalidInput: when it cannot be written.
        """
        stored = _StoredFile(digest=self._run, key=key, point=point)
        name = "".join(letter if letter.isalnum() or letter in "=-._" else "_" for letter in key)
        _write_checked(self._path.parent, f"{self._path.name}/{name}.json", stored.model_dump_json(), self._field)


def _write_checked(directory: Path, name: str, text: str, field: str) -> None:
    """Write a file and its checksum; stopped in between, the file is one that is not believed."""
    write_whole(directory / name, text, field)
    write_whole(directory / NAME, Checksums(directory).with_file(name, text.encode()), field)


def write_whole(path: Path, text: str, field: str) -> None:
    """Write a file of text as :func:`written_whole` does."""
    with written_whole(path, field) as file:
        file.write(text.encode())


@contextlib.contextmanager
def written_whole(path: Path, field: str) -> Iterator[IO[bytes]]:
    """A file to write, which is there at once or not at all, also when the machine stops in between.

    Raises:
        InvalidInput: naming ``field``, when it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
        raise error if isinstance(error, InvalidInput) else unwritable(field, path.parent, error) from None


def read_limited(path: Path, field: str) -> bytes:
    """The bytes of an ordinary file that may hold a spec.

    Raises:
        InvalidInput: naming ``field``, for anything else: a directory, a device, a missing, unreadable or huge file.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(field, str(path), "an ordinary file with a spec in JSON")
        with path.open("rb") as file:
            data = file.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise unreadable(field, path, error) from None
    if len(data) > MAX_JSON_BYTES:
        raise InvalidInput(field, str(path), f"a spec in JSON of at most {MAX_JSON_BYTES:,} bytes")
    return data


def unreadable(field: str, path: Path, error: Exception) -> InvalidInput:
    """What to tell about a file that cannot be read."""
    return InvalidInput(field, str(path), f"a file that can be read (here: {_reason(error)})")


def unwritable(field: str, directory: Path, error: Exception) -> InvalidInput:
    """What to tell about a directory that cannot be written."""
    return InvalidInput(field, str(directory), f"a directory that can be written (here: {_reason(error)})")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
