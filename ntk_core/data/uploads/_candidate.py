"""Content of an uploaded file, and choices: inputs, target, treatment of images."""

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
        example: a value, as written in the file.
    """

    name: str
    kind: ColumnKind
    numbers: NDArray
    codes: NDArray
    texts: tuple[str, ...]
    num_missing: int
    first_missing: int
    example: str

    @property
    def is_constant(self) -> bool:
        """Whether all present values are equal."""
        return self.num_distinct < 2

    @property
    def num_distinct(self) -> int:
        """Number of distinct values; for varied text more than MAX_DISTINCT_TEXTS."""
        if self.kind == "number":
            return int(np.unique(self.numbers[~np.isnan(self.numbers)]).size)
        return len(self.texts) if self.kind == "text" else MAX_DISTINCT_TEXTS + 1


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV file: columns with types and missing counts, and the first rows as text."""

    columns: tuple[Column, ...]
    num_rows: int
    preview: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names from left to right."""
        return tuple(column.name for column in self.columns)

    @property
    def by_name(self) -> dict[str, Column]:
        """Name → column."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True, eq=False)
class Arrays:
    """An npz file: arrays of numbers or short texts, by name."""

    arrays: Mapping[str, NDArray]


@dataclass(frozen=True)
class ImageEntry:
    """One image of an archive, by its header, without decoding."""

    path: str
    folder: str
    width: int
    height: int
    mode: str


@dataclass(frozen=True, eq=False)
class ImageFolders:
    """A zip of images in folders, one folder per class; ``data`` contains its bytes."""

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
        features: input columns of a table, or the name of the input array.
        target: column or array to learn; empty for images, whose folders are classes.
        task: ``"classes"`` (one-hot targets) or ``"regression"``.
        classes: kept classes; all when empty.
        drop_missing: drop rows with missing values instead of refusing them.
        scale_targets: give regression targets mean 0 and variance 1.
        side: scale images to this many pixels along each side; 0: unchanged.
        gray: one channel instead of three.
        tokens: an array (n, T, d) has T tokens of d numbers each instead of gray images.
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


def suggested_choices(
    candidate: Candidate, *, max_classes: int = 20, max_side: int = 64
) -> Choices:
    """Suggest choices: a column that resembles classes, all other numbers, small images."""
    if isinstance(candidate, Table):
        return _for_table(candidate, max_classes)
    if isinstance(candidate, Arrays):
        return _for_arrays(candidate.arrays, max_classes)
    sizes, is_gray = (
        candidate.sizes,
        all(entry.mode in ("L", "1", "LA") for entry in candidate.entries),
    )
    as_they_are = len(sizes) == 1 and max(sizes[0]) <= min(32, max_side)
    return Choices(side=0 if as_they_are else DEFAULT_SIDE, gray=is_gray)


def _for_table(table: Table, max_classes: int) -> Choices:
    named = [column for column in table.columns if column.name.lower() in _TARGET_NAMES]
    texts = [
        column
        for column in table.columns
        if column.kind == "text" and 2 <= len(column.texts) <= max_classes
    ]
    target = (named or texts[::-1] or [table.columns[-1]])[0]
    is_number = target.kind == "number" and not _are_classes(target.numbers, max_classes)
    features = [
        c.name
        for c in table.columns
        if c is not target and c.kind == "number" and not c.is_constant
    ]
    return Choices(tuple(features), target.name, "regression" if is_number else "classes")


def _for_arrays(arrays: Mapping[str, NDArray], max_classes: int) -> Choices:
    lower = {name.lower(): name for name in arrays}
    numbers = [name for name, array in arrays.items() if array.dtype.kind in "biuf" and array.ndim]
    largest = max(numbers, key=lambda name: arrays[name].size, default="")
    inputs = next((lower[name] for name in _INPUT_NAMES if lower.get(name) in numbers), largest)
    if not inputs:
        return Choices()
    others = [
        name
        for name in arrays
        if name != inputs and arrays[name].shape[:1] == arrays[inputs].shape[:1]
    ]
    target = next(
        (lower[name] for name in _TARGET_NAMES if lower.get(name) in others), (*others, "")[0]
    )
    values = arrays.get(target, np.zeros(0))
    is_number = values.dtype.kind == "f" and math.prod(values.shape[1:]) == 1 and len(values) > 0
    return Choices(
        (inputs,),
        target,
        "regression" if is_number and not _are_classes(values, max_classes) else "classes",
    )


def _are_classes(values: NDArray, max_classes: int) -> bool:
    """Whether all finite numbers are integers with few distinct values."""
    finite = values[np.isfinite(values)]
    return bool((finite == np.round(finite)).all()) and 2 <= np.unique(finite).size <= max_classes
