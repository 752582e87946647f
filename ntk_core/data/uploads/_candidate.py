"""The content of an uploaded file, before a target is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MAX_DISTINCT_TEXTS = 200
ColumnKind = Literal["number", "text", "varied text"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes:
        kind: ``"number"``; ``"text"`` with few different values, which can be classes; or ``"varied text"``.
        numbers: (n,) float64, NaN where a value is missing; empty for text.
        codes: (n,) positions in ``texts``, −1 where a value is missing; empty for numbers and varied text.
        texts: the different values, sorted.
        num_missing: empty cells, and cells such as ``NA``.
        first_missing: line of the file with the first of them; 0 for none.
        example: a value, as the file has it.
    """

    name: str
    kind: ColumnKind
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]
    texts: tuple[str, ...]
    num_missing: int
    first_missing: int
    example: str

    @property
    def is_constant(self) -> bool:
        """Whether all values that are there are equal."""
        if self.kind == "number":
            there = self.numbers[~np.isnan(self.numbers)]
            return there.size == 0 or bool(there.min() == there.max())
        return self.kind == "text" and len(self.texts) < 2

    @property
    def num_distinct(self) -> int:
        """Different values; those of varied text are not counted: more than MAX_DISTINCT_TEXTS."""
        if self.kind == "number":
            return int(np.unique(self.numbers[~np.isnan(self.numbers)]).size)
        return len(self.texts) if self.kind == "text" else MAX_DISTINCT_TEXTS + 1


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV file: columns with types and missing counts, and the first rows as text."""

    columns: tuple[Column, ...]
    num_rows: int
    preview: tuple[tuple[str, ...], ...]
    delimiter: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, from left to right."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, eq=False)
class Arrays:
    """An npz file: its arrays of numbers, or of short texts, by name."""

    arrays: Mapping[str, NDArray]


@dataclass(frozen=True)
class ImageEntry:
    """One image of an archive, by its header: nothing is decoded."""

    path: str
    folder: str
    width: int
    height: int
    mode: str


@dataclass(frozen=True, eq=False)
class ImageFolders:
    """A zip of images in folders, one folder per class; ``data`` is all of it."""

    data: bytes
    entries: tuple[ImageEntry, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """The classes, sorted."""
        return tuple(sorted({entry.folder for entry in self.entries}))

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The different (height, width), sorted."""
        return tuple(sorted({(entry.height, entry.width) for entry in self.entries}))


Candidate = Table | Arrays | ImageFolders
