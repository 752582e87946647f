"""Runs whose settings this version cannot read: name, time, and the numbers as stored."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from linearity_lab.runs._documents import Document, Reading
from linearity_lab.runs.store._entries import StoredRun

# Reading of the settings → the word for it in lists.
READING_WORDS = {
    Reading.READABLE: "readable",
    Reading.OLDER: "of an older version",
    Reading.NEWER: "of a newer version",
    Reading.OTHER_VERSION: "of another version",
    Reading.DAMAGED: "settings damaged",
}


@dataclass(frozen=True)
class KnownRun:
    """Everything stored of a run whose settings this version cannot read.

    Attributes:
        run: its entry in the list.
        points: the intact points as stored, by key.
        ending: status, provenance and run time of its result as stored; empty before.
    """

    run: StoredRun
    points: Mapping[str, Document]
    ending: Document

    @property
    def sentence(self) -> str:
        """Why its settings cannot be read, and what remains possible."""
        imported = " It was imported from a file, not computed here." if self.run.imported else ""
        if self.run.reading is Reading.DAMAGED:
            return (
                "The settings of this run are damaged. Its intact points are shown and exported as "
                f"stored; it cannot be drawn or resumed.{imported}"
            )
        reason = f": {self.run.reason}" if self.run.reason else ""
        return (
            f"This run is {READING_WORDS[self.run.reading]}{reason}. Its numbers are shown and "
            f"exported as stored; it cannot be drawn or resumed here.{imported}"
        )

    def values(self) -> Iterator[tuple[str, str, Any]]:
        """Yield (key of the point, dotted name, value) of each value in the points."""
        for key, point in self.points.items():
            for name, value in _leaves(point):
                yield key, name, value

    def csv(self) -> str:
        """Return the values of its points as CSV with a header line, one value a line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("point", "name", "value"))
        writer.writerows(self.values())
        return text.getvalue()

    def json(self) -> str:
        """Return its result as stored, in the form of an export.

        The version that wrote it can import it.
        """
        found = {"spec": self.run.document, "points": list(self.points.values()), **self.ending}
        return json.dumps(found, separators=(",", ":"))


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and value of each leaf of nested objects and lists."""
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = [(str(index), each) for index, each in enumerate(value)]
    else:
        yield name, value
        return
    for part, inner in parts:
        yield from _leaves(inner, f"{name}.{part}" if name else str(part))
