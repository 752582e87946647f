"""Validated arrays for training, from a parsed file and the user's choices."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data.uploads._archive import DEFAULT_LIMITS, Archive, Limits, check_at_most
from linearity_lab.data.uploads._candidate import (
    MAX_DISTINCT_TEXTS,
    TASKS,
    Arrays,
    Candidate,
    Choices,
    FileColumn,
    ImageFolders,
    Table,
)
from linearity_lab.data.uploads._cells import MAX_WHOLE, advice_for
from linearity_lab.data.uploads._images import BACKGROUNDS, read_pixels
from ntk_core.errors import InvalidInput

MAX_CHANNELS = 4
MAX_NAME = 100
NUM_NAMED = 3
# A feature is refused if rounding to float32 moves its values by more than this share of their
# spread.
MAX_ROUNDING = 1e-3
HELD = (
    "numbers whose differences float32 can hold (24 bits); "
    "subtract a constant or leave the column out"
)
# Standardizing larger or smaller inputs would leave the range of float32.
MAX_SIZE = 1e30
T = TypeVar("T", FileColumn, NDArray)


class MissingValues(InvalidInput):
    """Rows with missing values that were not dropped."""


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Uploaded data as arrays for networks.

    Attributes:
        x: inputs (n, *input_shape) float32; images channels last, from 0 to 1.
        labels: (n,) int64 positions in ``class_names``; empty for regression.
        targets: (n, k) float32 for regression; (n, 0) for classes.
        class_names: one per class; empty for regression.
    """

    x: NDArray
    labels: NDArray
    targets: NDArray
    class_names: tuple[str, ...]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.x.shape[1:]

    @property
    def num_outputs(self) -> int:
        """Classes C, or columns of the target."""
        return len(self.class_names) or self.targets.shape[1]

    @property
    def counts(self) -> dict[str, int]:
        """Samples of each class."""
        return {
            name: int((self.labels == index).sum()) for index, name in enumerate(self.class_names)
        }


def clean_upload(
    candidate: Candidate, choices: Choices, limits: Limits = DEFAULT_LIMITS
) -> Cleaned:
    """Return validated inputs and targets.

    Raises:
        InvalidInput: one sentence that names the choice (``features``, ``target``, ``classes``,
            ``side``) or ``file``.
        MissingValues: if a chosen column has missing values and rows with them are not dropped.
    """
    if choices.task not in TASKS:
        raise InvalidInput("task", choices.task, "one of " + ", ".join(TASKS))
    if isinstance(candidate, Table):
        return _of_table(candidate, choices, limits)
    if isinstance(candidate, Arrays):
        return _of_arrays(candidate, choices, limits)
    return _of_images(candidate, choices, limits)


def _of_table(table: Table, choices: Choices, limits: Limits) -> Cleaned:
    target = _named("target", choices.target, table.by_name, "columns")
    features = _features(table, choices)
    rows = _kept_rows(table, choices, target, features)

    def inputs(kept: NDArray[np.intp]) -> NDArray[np.float64]:
        check_at_most(
            "file", len(kept) * len(features), limits.max_values, "numbers in all inputs together"
        )
        return np.stack([column.numbers[rows[kept]] for column in features], axis=1)

    if choices.task == "regression":
        if not target.is_numeric:
            raise _not_numbers("target", target, "a column of numbers")
        x = inputs(np.arange(len(rows)))
        return _with_targets(x, target.numbers[rows], choices, limits, choices.features)
    if not target.can_be_classes:
        most = f"at most {limits.max_classes} classes"
        if target.kind == "empty":
            raise InvalidInput(
                "target", f"{target.name}, empty in every row", "a column of classes"
            )
        if target.kind == "number":
            given = f"{target.name}, {target.num_distinct:,} different values"
            raise InvalidInput("target", given, f"{most}, or regression")
        given = f"{target.name}, with more than {MAX_DISTINCT_TEXTS} different texts"
        raise InvalidInput("target", given, most)
    _check_dropped_classes(target, rows, choices)
    present, labels = np.unique(target.codes[rows], return_inverse=True)
    names = tuple(target.texts[code] for code in present)
    if target.kind == "number" and len(names) > limits.max_classes:
        given = f"{target.name}, {len(names):,} different values"
        raise InvalidInput("target", given, f"at most {limits.max_classes} classes, or regression")
    return _with_classes("target", labels, names, choices, limits, inputs, choices.features)


def _check_dropped_classes(target: FileColumn, rows: NDArray[np.intp], choices: Choices) -> None:
    """Refuse to drop all rows of a class together with missing values of the inputs."""
    dropped = np.setdiff1d(target.codes[target.codes >= 0], target.codes[rows])
    for code in dropped.tolist():
        name = target.texts[code]
        if not choices.classes or name in choices.classes:
            given = f"class {name}, only in rows with missing values"
            allowed = "inputs with fewer missing values, or the other classes only"
            raise InvalidInput("classes", given, allowed)


def _of_arrays(candidate: Arrays, choices: Choices, limits: Limits) -> Cleaned:
    x = _named("features", (*choices.features, "")[0], candidate.arrays, "arrays")
    y = _named("target", choices.target, candidate.arrays, "arrays")
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
        given = f"{choices.target}, of shape {y.shape}"
        raise InvalidInput(
            "target", given, f"one entry for each input of {choices.features[0]}, {x.shape}"
        )
    x = _shaped_inputs(x, choices.features[0], choices.tokens)
    if choices.task == "regression":
        if y.dtype.kind not in "biuf":
            raise InvalidInput("target", f"{choices.target}, texts", "an array of numbers")
        return _with_targets(x, y, choices, limits)
    labels, names = _classes_of_array(y, choices.target, limits)
    return _with_classes("target", labels, names, choices, limits, x.__getitem__)


def _of_images(candidate: ImageFolders, choices: Choices, limits: Limits) -> Cleaned:
    side = choices.side
    sizes = candidate.sizes
    if choices.background and choices.background not in BACKGROUNDS:
        raise InvalidInput("background", choices.background, "white or black")
    if choices.task == "regression":
        raise InvalidInput("task", "regression", "classes: a folder is a class")
    if not 0 <= side <= limits.max_side:
        raise InvalidInput("side", side, f"an integer from 0 to {limits.max_side}; 0: as they are")
    words = [f"{height} × {width}" for height, width in sizes]
    allowed = f"a side from 1 to {limits.max_side}"
    if not side and len(sizes) > 1:
        given = f"0, with images of {len(sizes)} sizes ({_listed(words)})"
        raise InvalidInput("side", given, f"{allowed} that all are scaled to")
    if not side and max(sizes[0]) > limits.max_side:
        raise InvalidInput("side", f"0, with images of {words[0]}", allowed)
    shape = (*((side, side) if side else sizes[0]), 1 if choices.gray else 3)

    def inputs(kept: NDArray[np.intp]) -> NDArray[np.float32]:
        num_values = len(kept) * shape[0] * shape[1] * shape[2]
        check_at_most("file", num_values, limits.max_values, "numbers in all inputs together")
        archive = Archive(candidate.data, limits)
        found = np.empty((len(kept), *shape), np.float32)
        for place, index in enumerate(kept):
            path = candidate.entries[index].path
            found[place] = read_pixels(
                archive, path, side, choices.gray, limits, choices.background
            )
        return found

    names, labels = np.unique([entry.folder for entry in candidate.entries], return_inverse=True)
    return _with_classes("classes", labels, tuple(names.tolist()), choices, limits, inputs)


def _with_classes(
    field: str,
    labels: NDArray,
    names: tuple[str, ...],
    choices: Choices,
    limits: Limits,
    inputs: Callable[[NDArray[np.intp]], NDArray],
    columns: Sequence[str] = (),
) -> Cleaned:
    """Return the samples of the chosen classes.

    Args:
        inputs: returns the inputs of the samples at these positions.
        columns: names of the features.
    """
    if unknown := [name for name in choices.classes if name not in names]:
        raise InvalidInput("classes", unknown[0], "classes of the file: " + _listed(names))
    chosen = [
        index for index, name in enumerate(names) if not choices.classes or name in choices.classes
    ]
    kept = np.flatnonzero(np.isin(labels, chosen))
    labels = np.searchsorted(chosen, labels[kept])
    names = tuple(names[index] for index in chosen)
    if len(names) < 2:
        raise InvalidInput(
            field, f"one class only ({names[0]})" if names else "no class", "at least 2 classes"
        )
    check_at_most(field, len(names), limits.max_classes, "classes")
    _check_names(field, names)
    for name, count in zip(names, np.bincount(labels, minlength=len(names)), strict=True):
        if count < limits.min_per_class:
            given = f"class {name} with {count} sample{'s' if count != 1 else ''}"
            allowed = f"at least {limits.min_per_class} samples of each chosen class"
            raise InvalidInput(field, given, allowed)
    x = _checked_inputs(inputs(kept), limits, columns)
    return Cleaned(x, labels.astype(np.int64), np.zeros((len(x), 0), np.float32), names)


def _check_names(field: str, names: Sequence[str]) -> None:
    """Refuse class names that are long, or that look equal on a screen."""
    seen: dict[str, str] = {}
    for name in names:
        if len(name) > MAX_NAME:
            given = f"class {name[:20]}… of {len(name):,} characters"
            raise InvalidInput(field, given, f"classes of at most {MAX_NAME} characters")
        visible = _visible(name)
        if visible in seen:
            given = f"classes {seen[visible]!a} and {name!a}, which look equal"
            raise InvalidInput(field, given, "classes with different names")
        seen[visible] = name


def _visible(name: str) -> str:
    """Return a name without invisible characters, spaces around it and differences of spaces."""
    normal = unicodedata.normalize("NFC", name)
    letters = [letter for letter in normal if unicodedata.category(letter) not in ("Cf", "Cc")]
    return " ".join("".join(letters).split())


def _with_targets(
    x: NDArray, targets: NDArray, choices: Choices, limits: Limits, columns: Sequence[str] = ()
) -> Cleaned:
    """Return inputs with numeric targets; ``columns`` names the features."""
    values = np.asarray(targets, np.float64).reshape(len(targets), -1)
    check_at_most("target", values.shape[1], limits.max_classes, "targets")
    if len(values) < 2:
        raise InvalidInput("target", f"{len(values)} samples", "at least 2 samples")
    _check_finite("target", values, "target")
    if (values.min(axis=0) == values.max(axis=0)).any():
        raise InvalidInput("target", "a constant target", "a target that varies")
    # Powers of 2 change no digit, and squares of the values stay in range.
    units = np.frexp(np.abs(values).max(axis=0))[1]  # (k,)
    scaled = np.ldexp(values, -units)
    deviation = scaled.std(axis=0)
    if choices.scale_targets:
        rounding = np.full(len(units), np.finfo(np.float64).eps)
        small = _as_float32("target", (scaled - scaled.mean(axis=0)) / deviation, "target")
        held = "float64 can hold"
    else:
        small = _as_float32("target", values, "target")
        rounding = np.abs(scaled - np.ldexp(small.astype(np.float64), -units)).max(axis=0)
        held = "float32 can hold (24 bits)"
    if (rounding > MAX_ROUNDING * deviation).any():
        allowed = f"numbers whose differences {held}, in other units or minus a constant"
        raise InvalidInput("target", "a target of numbers that would be rounded", allowed)
    return Cleaned(_checked_inputs(x, limits, columns), np.zeros(0, np.int64), small, ())


def _checked_inputs(x: NDArray, limits: Limits, names: Sequence[str]) -> NDArray[np.float32]:
    """Return inputs as float32; ``names`` are column names."""
    check_at_most("file", len(x), limits.max_rows, "samples")
    check_at_most("file", x.size, limits.max_values, "numbers in all inputs together")
    if len(x) < 2 or x.size == 0:
        raise InvalidInput("file", f"{len(x)} samples of shape {x.shape[1:]}", "at least 2 samples")
    _check_finite("features", x, "input")
    small = _as_float32("features", x, "inputs")
    if x.ndim != 2:
        if (small == small[:1]).all():
            raise InvalidInput("features", "inputs that are all equal", "inputs that differ")
        _check_size("inputs", float(np.abs(small).max()))
        has_all_digits = np.can_cast(x.dtype, np.float32)
        if not has_all_digits and _is_rounded(x, small, None):
            raise InvalidInput("features", "inputs huge against their differences", HELD)
        return small
    columns = [names[i] if names else f"column {i + 1}" for i in range(x.shape[1])]
    constant = x.min(axis=0) == x.max(axis=0)
    if constant.any():
        found = _listed(list(compress(columns, constant)))
        raise InvalidInput("features", f"{found}, constant", "columns that vary")
    for name, largest in zip(columns, np.abs(small).max(axis=0).tolist(), strict=True):
        _check_size(name, largest)
    rounded = _is_rounded(x, small, 0)
    if rounded.any():
        found = _listed(list(compress(columns, rounded)))
        raise InvalidInput("features", f"{found}, huge against its differences", HELD)
    return small


def _check_size(name: str, largest: float) -> None:
    """Refuse inputs that standardization would move out of the range of float32."""
    if largest > MAX_SIZE:
        given = f"{name}, beyond {MAX_SIZE:.0e}"
    elif largest < 1 / MAX_SIZE:
        given = f"{name}, below {1 / MAX_SIZE:.0e} in every row"
    else:
        return
    raise InvalidInput("features", given, "numbers in other units")


def _is_rounded(x: NDArray, small: NDArray[np.float32], axis: int | None) -> NDArray[np.bool_]:
    """Whether rounding moves values by a large share of their spread along the axis."""
    moved = np.abs(x - small.astype(np.float64)).max(axis=axis)
    return np.asarray(moved > MAX_ROUNDING * x.std(axis=axis, dtype=np.float64))


def _check_finite(field: str, values: NDArray, noun: str) -> None:
    """Refuse NaN and infinities, with their number and the first place."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) + 1
        given = f"{int(bad.sum()):,} values NaN or infinite, the first in sample {row:,}"
        raise InvalidInput(field, given, f"finite {noun} values")


def _as_float32(field: str, values: NDArray, noun: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(values, np.float32)
    if not np.isfinite(small).all():
        raise InvalidInput(field, f"{noun} beyond 3.4e38", "numbers that float32 can hold")
    return small


def _listed(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:NUM_NAMED])
    return f"{shown} and {len(names) - NUM_NAMED} more" if len(names) > NUM_NAMED else shown


def _named(field: str, name: str, found: Mapping[str, T], noun: str) -> T:
    """Return the column or array of this name."""
    if name not in found:
        raise InvalidInput(field, name or "nothing", f"one of the {noun} {_listed(tuple(found))}")
    return found[name]


def _features(table: Table, choices: Choices) -> list[FileColumn]:
    if not choices.features:
        others = [column for column in table.columns if column.name != choices.target]
        texts = [column for column in others if column.obstacle]
        if texts and not any(column.is_numeric for column in others):
            # Such as a row of units below the header, which makes every column text.
            raise _not_numbers("features", texts[0], "at least one column of numbers")
        raise InvalidInput("features", "nothing", "at least one column of numbers")
    features = [
        _named("features", name, table.by_name, "columns")
        for name in dict.fromkeys(choices.features)
    ]
    for column in features:
        if column.name == choices.target:
            raise InvalidInput("features", column.name, "columns other than the target")
        if not column.is_numeric:
            raise _not_numbers("features", column, "columns of numbers, with a decimal point")
    return features


def _not_numbers(field: str, column: FileColumn, allowed: str) -> InvalidInput:
    """Return the refusal of a column of texts where numbers are needed."""
    if column.kind == "empty":
        return InvalidInput(field, f"{column.name}, empty in every row", allowed)
    if len(column.clash) > 1:
        first, second = column.clash
        given = f"{column.name}, with {first} and {second}"
        return InvalidInput(field, given, "numbers in one notation; different codes are text")
    if column.clash:
        given = f"{column.name}, with {column.clash[0]}"
        is_whole = column.clash[0].lstrip("+-").isdigit()
        allowed = f"whole numbers up to {MAX_WHOLE:,}; longer ones are text"
        if not is_whole:
            allowed = "numbers from 5e-324 on, or 0; smaller ones are text"
        return InvalidInput(field, given, allowed)
    given = f"{column.name}, text such as {column.obstacle}"
    if advice := advice_for(column.obstacle):
        allowed = f"{advice} (line {column.obstacle_line:,})"
    return InvalidInput(field, given, allowed)


def _kept_rows(
    table: Table, choices: Choices, target: FileColumn, features: list[FileColumn]
) -> NDArray[np.intp]:
    """Return rows without missing values in the chosen columns."""
    used = [target, *features]
    gaps = {}
    for column in used:
        if column is target and choices.task == "classes" and column.can_be_classes:
            # A class may be called NA or None; only an empty cell is no class.
            gaps[column.name] = column.codes < 0
        elif column.is_numeric:
            gaps[column.name] = np.isnan(column.numbers)
        elif column.codes.size:
            gaps[column.name] = column.codes < 0
        else:
            gaps[column.name] = np.zeros(table.num_rows, bool)
    incomplete = [column for column in used if gaps[column.name].any()]
    if incomplete and not choices.drop_missing:
        counted = []
        for column in incomplete:
            count = int(gaps[column.name].sum())
            counted.append(
                f"{column.name} ({count:,} missing, the first in line {column.first_missing:,})"
            )
        field = "target" if incomplete[0] is target else "features"
        allowed = "columns without missing values, or rows with missing values dropped"
        raise MissingValues(field, _listed(counted), allowed)
    is_kept = np.ones(table.num_rows, bool)
    for column in incomplete:
        is_kept &= ~gaps[column.name]
    if not is_kept.any():
        raise InvalidInput(
            "features", "a missing value in every row", "columns with fewer missing values"
        )
    for column in used:
        as_classes = column is target and choices.task == "classes"
        infinite = 0
        if column.kind == "number" and not as_classes:
            infinite = int(np.isinf(column.numbers[is_kept]).sum())
        if infinite:
            field = "target" if column is target else "features"
            raise InvalidInput(
                field, f"{column.name} ({infinite:,} infinite or beyond 1.8e308)", "finite numbers"
            )
    return np.flatnonzero(is_kept)


def _numbered_classes(
    values: NDArray, name: str, limits: Limits
) -> tuple[NDArray, tuple[str, ...]]:
    present, labels = np.unique(values, return_inverse=True)
    if len(present) > limits.max_classes:
        given = f"{name}, {len(present):,} different values"
        raise InvalidInput("target", given, f"at most {limits.max_classes} classes, or regression")
    return labels, tuple(f"{v:g}" if float(f"{v:g}") == v else str(v) for v in present.tolist())


def _shaped_inputs(x: NDArray, name: str, tokens: bool) -> NDArray:
    """Return inputs (n, d), (n, T, d) or (n, height, width, channels).

    Image bytes scaled to 0 … 1.
    """
    if x.dtype.kind not in "biuf":
        raise InvalidInput("features", f"{name}, texts", "an array of numbers")
    if x.ndim == 1:
        x = x[:, None]
    if tokens:
        if x.ndim != 3:
            raise InvalidInput("features", f"{name}, of shape {x.shape}", "(n, T, d) for tokens")
        return x
    if x.ndim == 3:
        x = x[..., None]
    if x.ndim not in (2, 4) or (x.ndim == 4 and x.shape[-1] > MAX_CHANNELS):
        allowed = (
            "(n, features), (n, height, width) or (n, height, width, channels), 1 to "
            f"{MAX_CHANNELS} channels"
        )
        raise InvalidInput("features", f"{name}, of shape {x.shape}", allowed)
    return x / np.float32(np.iinfo(x.dtype).max) if is_scaled(x) else x


def is_scaled(images: NDArray) -> bool:
    """Whether images of this type are divided by its largest value: bytes and 16-bit numbers."""
    return images.ndim == 4 and images.dtype.kind == "u" and images.dtype.itemsize <= 2


def _classes_of_array(y: NDArray, name: str, limits: Limits) -> tuple[NDArray, tuple[str, ...]]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    is_numeric = y.dtype.kind in "biuf"
    if y.ndim == 2 and is_numeric and ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all():
        return y.argmax(axis=1), tuple(f"class {index}" for index in range(y.shape[1]))
    if y.ndim != 1:
        raise InvalidInput(
            "target", f"{name}, of shape {y.shape}", "labels (n,), one-hot rows, or regression"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidInput(
            "target",
            f"{name}, {int((~np.isfinite(y)).sum()):,} values NaN or infinite",
            "class labels",
        )
    if is_numeric:
        return _numbered_classes(y, name, limits)
    present, labels = np.unique(y, return_inverse=True)
    check_at_most("target", len(present), limits.max_classes, "classes")
    return labels, tuple(
        text if isinstance(text, str) else text.decode("utf-8", "replace")
        for text in present.tolist()
    )
