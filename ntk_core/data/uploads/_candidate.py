"""The content of an uploaded file, and what a person chooses of it: inputs, target, how images are seen."""

import math
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
Task = Literal["classes", "regression"]
TASKS: tuple[Task, ...] = ("classes", "regression")
DEFAULT_SIDE = 16
_INPUT_NAMES = ("x_train", "x", "images", "inputs", "features", "data")
_TARGET_NAMES = ("y_train", "y", "labels", "label", "targets", "target", "class", "species", "kind")


@dataclass(frozen=True)
class Choices:
    """How a candidate becomes inputs and targets.

    Attributes:
        features: columns of a table that go in; or the one array of inputs.
        target: column, or array, that is to be learned; nothing for images, whose folders are their classes.
        task: ``"classes"`` (one-hot targets) or ``"regression"``.
        classes: those that are kept; all when empty.
        drop_missing: drop rows with missing values instead of refusing them.
        scale_targets: give regression targets mean 0 and variance 1.
        side: pixels along each side that images are scaled to; 0: as they are.
        gray: one channel instead of three.
        tokens: an array (n, T, d) holds T tokens of d numbers each, and no gray images.
    """

    features: tuple[str, ...] = ()
    target: str = ""
    task: Task = "classes"
    classes: tuple[str, ...] = ()
    drop_missing: bool = False
    scale_targets: bool = True
    side: int = 0
    gray: bool = False
    tokens: bool = False


def suggested_choices(candidate: Candidate, *, max_classes: int = 20, max_side: int = 64) -> Choices:
    """A first choice that a person can change: a column that looks like classes, all other numbers, small images."""
    if isinstance(candidate, Table):
        return _for_table(candidate, max_classes)
    if isinstance(candidate, ImageFolders):
        sizes, is_gray = candidate.sizes, all(entry.mode in ("L", "1", "LA") for entry in candidate.entries)
        as_they_are = len(sizes) == 1 and max(sizes[0]) <= min(32, max_side)
        return Choices(side=0 if as_they_are else DEFAULT_SIDE, gray=is_gray)
    return _for_arrays(candidate, max_classes)


def _for_table(table: Table, max_classes: int) -> Choices:
    def looks_like_classes(column: Column) -> bool:
        return column.kind == "text" and 2 <= len(column.texts) <= max_classes

    named = [column for column in table.columns if column.name.lower() in _TARGET_NAMES]
    texts = [column for column in table.columns if looks_like_classes(column)]
    target = (named or texts[::-1] or [table.columns[-1]])[0]
    is_number = target.kind == "number" and not _are_classes(target, max_classes)
    features = [c.name for c in table.columns if c is not target and c.kind == "number" and not c.is_constant]
    return Choices(tuple(features), target.name, "regression" if is_number else "classes")


def _are_classes(column: Column, max_classes: int) -> bool:
    there = column.numbers[np.isfinite(column.numbers)]
    return bool((there == np.round(there)).all()) and 2 <= column.num_distinct <= max_classes


def _for_arrays(candidate: Arrays, max_classes: int) -> Choices:
    arrays = candidate.arrays
    lower = {name.lower(): name for name in arrays}
    numbers = [name for name, array in arrays.items() if array.dtype.kind in "biuf" and array.ndim]
    inputs = next((lower[name] for name in _INPUT_NAMES if lower.get(name) in numbers), None)
    inputs = inputs or max(numbers, key=lambda name: arrays[name].size, default="")
    others = [
        name for name in arrays if name != inputs and inputs and arrays[name].shape[:1] == arrays[inputs].shape[:1]
    ]
    target = next((lower[name] for name in _TARGET_NAMES if lower.get(name) in others), None)
    target = target or (others[0] if others else "")
    is_regression = False
    if target and arrays[target].dtype.kind == "f":
        values = arrays[target]
        per_sample = math.prod(values.shape[1:])
        is_regression = per_sample == 1 and (
            not bool((values == np.round(values)).all()) or np.unique(values).size > max_classes
        )
    return Choices((inputs,) if inputs else (), target, "regression" if is_regression else "classes")
