"""``--out``: a run as files in a directory, written atomically.

``run.jsonl`` is the run as exported by the store, ``points.csv`` its numbers. During the
computation the store keeps the points; a directory from another machine is imported into the store
before its run resumes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from linearity_lab.files import written_whole
from linearity_lab.runs._any_result import Result
from linearity_lab.runs._parse import MAX_JSON_BYTES, spec_digest
from linearity_lab.runs._spec import Spec
from linearity_lab.runs.store import UnusableLine, read_line, run_line
from ntk_core.errors import InvalidInput

MAX_RUN_BYTES = 20_000_000
RUN_FILE = "run.jsonl"
TABLE = "points.csv"
WRITABLE = "a directory that can be written"


class RunDirectory:
    """The files of one run.

    Args:
        path: the directory; created by :meth:`begin`.
        field: its name in errors.
    """

    def __init__(self, path: Path, field: str = "--out"):
        self.path = path
        self._field = field

    def begin(self, spec: Spec) -> Result | None:
        """Create the directory; return an earlier result of ``spec`` in it, or None."""
        with file_errors(self._field, self.path, WRITABLE):
            self.path.mkdir(parents=True, exist_ok=True)
        earlier = self.result() if os.path.lexists(self.path / RUN_FILE) else None
        if earlier is not None and spec_digest(earlier.spec) != spec_digest(spec):
            allowed = (
                "an empty directory, or one with an earlier run of the same settings to resume"
            )
            raise InvalidInput(self._field, str(self.path), allowed)
        return earlier

    def write(self, result: Result) -> None:
        """Write ``run.jsonl`` and ``points.csv``."""
        write_whole(self.path / TABLE, result.csv(), self._field)
        write_whole(self.path / RUN_FILE, run_line(result), self._field)

    def result(self) -> Result:
        """The run in this directory."""
        line = read_limited(self.path / RUN_FILE, self._field, MAX_RUN_BYTES).decode(
            "utf-8", "replace"
        )
        try:
            return read_line(line)
        except UnusableLine as problem:
            allowed = f"a directory written by `run --out`; its {RUN_FILE} is not usable: {problem}"
            raise InvalidInput(self._field, str(self.path), allowed) from None


def write_whole(path: Path, text: str, field: str) -> None:
    """Write a text file atomically."""
    with file_errors(field, path.parent, WRITABLE), written_whole(path) as file:
        file.write(text.encode())


def read_limited(path: Path, field: str, most: int = MAX_JSON_BYTES) -> bytes:
    """Return the bytes of a regular JSON file."""
    with file_errors(field, path):
        if path.exists() and not path.is_file():
            raise InvalidInput(field, str(path), "an ordinary file in JSON")
        with path.open("rb") as file:
            data = file.read(most + 1)
    if len(data) > most:
        raise InvalidInput(field, str(path), f"a file of JSON of at most {most:,} bytes")
    return data


@contextlib.contextmanager
def file_errors(field: str, path: Path, allowed: str = "a file that can be read") -> Iterator[None]:
    """Context that converts file system errors to errors about the path."""
    try:
        yield
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(field, str(path), f"{allowed} (here: {reason})") from None
