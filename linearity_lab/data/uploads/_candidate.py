"""Content of an uploaded file, and choices: inputs, target, treatment of images."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MAX_DISTINCT_TEXTS = 200
ColumnKind = Literal["number", "true/false", "text", "varied text", "empty"]


class HeaderRule(Enum):
    """Why the first row of a table is its header, or a sample."""

    CHOSEN = "chosen"
    NAMES = "texts above columns of numbers"
    TEXTS = "texts that do not recur below"
    SAME_KINDS = "cells of the same kinds as the columns below"


@dataclass(frozen=True, eq=False)
class FileColumn:
    """One column of a table.

    Attributes:
        kind: ``"number"``; ``"true/false"``; ``"text"`` with few different values, which can be
            classes; ``"varied text"``; ``"empty"`` without a value.
        numbers: (n,) float64, NaN where a value is missing, 1 for true; empty for text.
        codes: (n,) positions in ``texts``, −1 where a cell is empty; no entries for too many texts.
        texts: the different texts as written, without spaces around them, sorted; empty for too
            many.
        num_missing: empty cells, and in a numeric column cells such as ``NA``.
        first_missing: line of the file with the first of them; 0 for none.
        example: a value, as written in the file.
        missing: each cell that counts as missing → how often it occurs.
        num_empty: empty cells, missing for classes too.
        obstacle: first text that is no number, in a column of texts; ``obstacle_line`` is its line.
        clash: numbers that would be one, or one that float64 cannot represent; they
            make the column text.
        merged: two cells that differ by spaces around them or by Unicode's form, and are one text
            here.
        equal: two texts of the same number, such as 1 and 1.0.
    """

    name: str
    kind: ColumnKind
    numbers: NDArray
    codes: NDArray
    texts: tuple[str, ...]
    num_missing: int
    first_missing: int
    example: str
    missing: Mapping[str, int] = field(default_factory=dict)
    num_empty: int = 0
    obstacle: str = ""
    obstacle_line: int = 0
    clash: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the column can be an input."""
        return self.kind in ("number", "true/false")

    @property
    def can_be_classes(self) -> bool:
        """Whether ``codes`` gives every row a class."""
        return bool(self.texts)

    @property
    def is_constant(self) -> bool:
        """Whether all present values are equal."""
        return self.num_distinct < 2

    @property
    def num_distinct(self) -> int:
        """Number of distinct values; for varied text more than MAX_DISTINCT_TEXTS."""
        if self.is_numeric:
            return int(np.unique(self.numbers[~np.isnan(self.numbers)]).size)
        return MAX_DISTINCT_TEXTS + 1 if self.kind == "varied text" else len(self.texts)


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV file: columns with types and missing counts, and the first rows as text.

    Attributes:
        header: why the first row of the file is the header, or a sample.
        delimiter: its name.
    """

    columns: tuple[FileColumn, ...]
    num_rows: int
    preview: tuple[tuple[str, ...], ...]
    header: HeaderRule = HeaderRule.CHOSEN
    delimiter: str = "comma"

    @property
    def names(self) -> tuple[str, ...]:
        """Column names from left to right."""
        return tuple(column.name for column in self.columns)

    @property
    def by_name(self) -> dict[str, FileColumn]:
        """Name → column."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True, eq=False)
class Arrays:
    """An npz file: arrays of numbers or short texts, by name."""

    arrays: Mapping[str, NDArray]


@dataclass(frozen=True)
class ImageEntry:
    """One image of an archive, by its header, without decoding.

    Attributes:
        width, height: after turning it as its EXIF orientation states.
        mode: of Pillow.
        depth: 16 for 16-bit gray, 8 for 8 bits and fewer.
        may_be_transparent: whether it has an alpha channel or a transparent color.
        orientation: of EXIF, 1 for an image that is not turned.
    """

    path: str
    folder: str
    width: int
    height: int
    mode: str
    depth: int = 8
    may_be_transparent: bool = False
    orientation: int = 1


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
# Columns with these names are the target, the first ones first; y is one only without a column x.
_LABEL_NAMES = (
    "target",
    "targets",
    "label",
    "labels",
    "class",
    "classes",
    "y_train",
    "category",
    "species",
    "kind",
    "outcome",
    "diagnosis",
)
_ROW_NAMES = ("id", "index", "row", "nr", "no", "no.", "#", "unnamed: 0")


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
        background: ``"white"`` or ``"black"`` behind transparent images; empty refuses them.
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
    background: str = ""


def suggested_choices(
    candidate: Candidate, *, max_classes: int = 20, max_side: int = 64
) -> Choices:
    """Suggest choices: a column that resembles classes, all other numbers, small images."""
    if isinstance(candidate, Table):
        return _for_table(candidate, max_classes)
    if isinstance(candidate, Arrays):
        return _for_arrays(candidate.arrays, max_classes)
    sizes = candidate.sizes
    is_gray = all(entry.mode in ("L", "1", "LA", "I;16", "I") for entry in candidate.entries)
    as_they_are = len(sizes) == 1 and max(sizes[0]) <= min(32, max_side)
    return Choices(side=0 if as_they_are else DEFAULT_SIDE, gray=is_gray)


class TargetRule(Enum):
    """Why a column of a table is suggested as the target."""

    NAME = "of its name"
    TEXTS = "it has few different texts"
    LAST = "it is the last column"


def suggested_target(table: Table, max_classes: int) -> tuple[FileColumn, TargetRule]:
    """Return the column that a network should learn, and why."""
    by_name = {column.name.lower(): column for column in table.columns}
    named = [by_name[name] for name in _LABEL_NAMES if name in by_name]
    if "y" in by_name and "x" not in by_name:
        named.append(by_name["y"])
    if named:  # a constant one too, whose refusal names it
        return named[0], TargetRule.NAME
    for column in reversed(table.columns):
        has_texts = column.kind in ("text", "true/false")
        if has_texts and 2 <= len(column.texts) <= max_classes:
            return column, TargetRule.TEXTS
    varied = [column for column in table.columns if not column.is_constant]
    if "y" in by_name and by_name["y"] in varied:
        return by_name["y"], TargetRule.NAME
    return (varied or list(table.columns))[-1], TargetRule.LAST


def is_row_number(column: FileColumn) -> bool:
    """Whether a column counts the rows, by its name and values."""
    if column.kind != "number" or column.name.lower() not in _ROW_NAMES:
        return False
    return bool((np.diff(column.numbers) == 1).all())


def _for_table(table: Table, max_classes: int) -> Choices:
    target, _ = suggested_target(table, max_classes)
    is_number = target.kind == "number" and not _are_classes(target.numbers, max_classes)
    features = []
    for column in table.columns:
        is_left_out = column is target or column.is_constant or is_row_number(column)
        if column.is_numeric and not is_left_out:
            features.append(column.name)
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
    """Whether all finite numbers are integers with few distinct values, which mostly recur."""
    finite = values[np.isfinite(values)]
    num_distinct = np.unique(finite).size
    are_whole = bool((finite == np.round(finite)).all())
    return are_whole and 2 <= num_distinct <= max_classes and 2 * num_distinct <= finite.size
