"""From what a file holds and what a person chose to arrays that networks can learn."""

from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import DEFAULT_LIMITS, Archive, Limits, check_at_most
from ntk_core.data.uploads._candidate import (
    MAX_DISTINCT_TEXTS,
    TASKS,
    Arrays,
    Candidate,
    Choices,
    Column,
    ImageFolders,
    Table,
)
from ntk_core.data.uploads._cleaned import Cleaned, cleaned_classes, cleaned_targets, named
from ntk_core.data.uploads._image_folders import read_pixels
from ntk_core.errors import InvalidInput

MAX_CHANNELS = 4


def clean_upload(candidate: Candidate, choices: Choices, limits: Limits = DEFAULT_LIMITS) -> Cleaned:
    """Inputs and targets, checked.

    Raises:
        InvalidInput: one sentence with the choice it is about (``features``, ``target``, ``classes``, ``side``) or
            ``file``.
    """
    if choices.task not in TASKS:
        raise InvalidInput("task", choices.task, "one of " + ", ".join(TASKS))
    return _clean(candidate, choices, limits)


@singledispatch
def _clean(candidate: Candidate, choices: Choices, limits: Limits) -> Cleaned:
    raise TypeError(f"no upload is a {type(candidate).__name__}")


@_clean.register
def _(candidate: Table, choices: Choices, limits: Limits) -> Cleaned:
    target, features = _column(candidate, "target", choices.target), _features(candidate, choices)
    rows = _kept_rows(candidate, choices, target, features)
    if choices.task == "regression":
        if target.kind != "number":
            raise InvalidInput("target", f"{target.name}, text such as {target.example}", "a column of numbers")
        x = _inputs(features, rows, limits)
        return cleaned_targets(x, target.numbers[rows], choices.scale_targets, limits, choices.features)
    labels, names = _classes_of_column(target, rows, limits)
    labels, names, kept = _chosen_classes(labels, names, choices.classes)
    x = _inputs(features, rows[kept], limits)
    return cleaned_classes(x, labels[kept], names, "target", limits, choices.features)


@_clean.register
def _(candidate: Arrays, choices: Choices, limits: Limits) -> Cleaned:
    x, y = _array(candidate, "features", *choices.features[:1]), _array(candidate, "target", choices.target)
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
        given = f"{choices.target}, of shape {y.shape}"
        raise InvalidInput("target", given, f"one entry for each input of {choices.features[0]}, {x.shape}")
    x = _shaped_inputs(x, choices.features[0], choices.tokens)
    if choices.task == "regression":
        if y.dtype.kind not in "biuf":
            raise InvalidInput("target", f"{choices.target}, texts", "an array of numbers")
        return cleaned_targets(x, y.reshape(len(y), -1), choices.scale_targets, limits)
    labels, names = _classes_of_array(y, choices.target, limits)
    labels, names, kept = _chosen_classes(labels, names, choices.classes)
    return cleaned_classes(x[kept], labels[kept], names, "target", limits)


@_clean.register
def _(candidate: ImageFolders, choices: Choices, limits: Limits) -> Cleaned:
    if choices.task == "regression":
        raise InvalidInput("task", "regression", "classes: a folder is a class")
    if not 0 <= choices.side <= limits.max_side:
        raise InvalidInput("side", choices.side, f"an integer from 0 to {limits.max_side}; 0: as they are")
    names = candidate.folders
    labels = np.asarray([names.index(entry.folder) for entry in candidate.entries])
    labels, names, kept = _chosen_classes(labels, names, choices.classes)
    entries = [entry for entry, is_kept in zip(candidate.entries, kept, strict=True) if is_kept]
    if not choices.side:
        _check_sizes(candidate, limits)
    height, width = (choices.side,) * 2 if choices.side else candidate.sizes[0]
    channels = 1 if choices.gray else 3
    check_at_most("file", len(entries) * height * width * channels, limits.max_values, "numbers in all inputs together")
    cleaned = np.empty((len(entries), height, width, channels), np.uint8)
    archive = Archive(candidate.data, limits)
    for index, entry in enumerate(entries):
        cleaned[index] = read_pixels(archive, entry, choices.side, choices.gray, limits)
    return cleaned_classes(_unit_interval(cleaned), labels[kept], names, "classes", limits)


def _check_sizes(candidate: ImageFolders, limits: Limits) -> None:
    sizes = [f"{height} × {width}" for height, width in candidate.sizes]
    if len(sizes) > 1:
        given = f"0, with images of {len(sizes)} sizes ({named(sizes)})"
        raise InvalidInput("side", given, f"a side from 1 to {limits.max_side} that all are scaled to")
    if max(candidate.sizes[0]) > limits.max_side:
        raise InvalidInput("side", f"0, with images of {sizes[0]}", f"a side from 1 to {limits.max_side}")


def _column(table: Table, field: str, name: str) -> Column:
    found = table.column(name)
    if found is None:
        raise InvalidInput(field, name or "nothing", "one of the columns " + named(table.names))
    return found


def _features(table: Table, choices: Choices) -> list[Column]:
    if not choices.features:
        raise InvalidInput("features", "nothing", "at least one column of numbers")
    features = [_column(table, "features", name) for name in dict.fromkeys(choices.features)]
    for column in features:
        if column.name == choices.target:
            raise InvalidInput("features", column.name, "columns other than the target")
        if column.kind != "number":
            given = f"{column.name}, text such as {column.example or 'nothing'}"
            raise InvalidInput("features", given, "columns of numbers, with a decimal point")
    return features


def _kept_rows(table: Table, choices: Choices, target: Column, features: list[Column]) -> NDArray[np.intp]:
    """Rows without missing values in the chosen columns."""
    used = [target, *features]
    incomplete = [column for column in used if column.num_missing]
    if incomplete and not choices.drop_missing:
        counted = [f"{c.name} ({c.num_missing:,} missing, the first in line {c.first_missing:,})" for c in incomplete]
        field = "target" if incomplete[0] is target else "features"
        raise InvalidInput(field, named(counted), "columns without missing values, or rows with missing values dropped")
    is_kept = np.ones(table.num_rows, bool)
    for column in incomplete:
        is_kept &= ~np.isnan(column.numbers) if column.kind == "number" else column.codes >= 0
    if not is_kept.any():
        raise InvalidInput("features", "a missing value in every row", "columns with fewer missing values")
    for column in used:
        infinite = int(np.isinf(column.numbers[is_kept]).sum()) if column.kind == "number" else 0
        if infinite:
            field = "target" if column is target else "features"
            raise InvalidInput(field, f"{column.name} ({infinite:,} infinite or beyond 1.8e308)", "finite numbers")
    return np.flatnonzero(is_kept)


def _inputs(features: list[Column], rows: NDArray[np.intp], limits: Limits) -> NDArray[np.float64]:
    check_at_most("file", len(rows) * len(features), limits.max_values, "numbers in all inputs together")
    return np.stack([column.numbers[rows] for column in features], axis=1)


def _classes_of_column(target: Column, rows: NDArray[np.intp], limits: Limits) -> tuple[NDArray, tuple[str, ...]]:
    if target.kind == "varied text":
        given = f"{target.name}, with more than {MAX_DISTINCT_TEXTS} different texts"
        raise InvalidInput("target", given, f"at most {limits.max_classes} classes")
    if target.kind == "text":
        present, labels = np.unique(target.codes[rows], return_inverse=True)
        return labels, tuple(target.texts[code] for code in present)
    return _numbered_classes(target.numbers[rows], target.name, limits)


def _numbered_classes(values: NDArray, name: str, limits: Limits) -> tuple[NDArray, tuple[str, ...]]:
    present, labels = np.unique(values, return_inverse=True)
    if len(present) > limits.max_classes:
        given = f"{name}, {len(present):,} different values"
        raise InvalidInput("target", given, f"at most {limits.max_classes} classes, or regression")
    return labels, tuple(f"{v:g}" if float(f"{v:g}") == v else str(v) for v in present.tolist())


def _chosen_classes(
    labels: NDArray, names: tuple[str, ...], chosen: tuple[str, ...]
) -> tuple[NDArray, tuple[str, ...], NDArray[np.bool_]]:
    """(labels among the chosen classes, their names, which samples are kept)."""
    if not chosen:
        return labels, names, np.ones(len(labels), bool)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise InvalidInput("classes", unknown[0], "classes of the file: " + named(names))
    kept = tuple(name for name in names if name in chosen)
    positions = np.asarray([kept.index(name) if name in kept else -1 for name in names])
    return positions[labels], kept, positions[labels] >= 0


def _array(candidate: Arrays, field: str, name: str = "") -> NDArray:
    if name not in candidate.arrays:
        raise InvalidInput(field, name or "nothing", "one of the arrays " + named(tuple(candidate.arrays)))
    return candidate.arrays[name]


def _shaped_inputs(x: NDArray, name: str, tokens: bool) -> NDArray:
    """Inputs as (n, d), (n, T, d) or (n, height, width, channels); bytes of images as numbers from 0 to 1."""
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
        allowed = f"(n, features), (n, height, width) or (n, height, width, channels), 1 to {MAX_CHANNELS} channels"
        raise InvalidInput("features", f"{name}, of shape {x.shape}", allowed)
    return _unit_interval(x) if x.ndim == 4 and x.dtype == np.uint8 else x


def _classes_of_array(y: NDArray, name: str, limits: Limits) -> tuple[NDArray, tuple[str, ...]]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and y.dtype.kind in "biuf":
        if not (((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all()):
            raise InvalidInput("target", f"{name}, of shape {y.shape}", "labels (n,), one-hot rows, or regression")
        return y.argmax(axis=1), tuple(f"class {index}" for index in range(y.shape[1]))
    if y.ndim != 1:
        raise InvalidInput("target", f"{name}, of shape {y.shape}", "labels (n,), one-hot rows, or regression")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidInput("target", f"{name}, {int((~np.isfinite(y)).sum()):,} values NaN or infinite", "class labels")
    if y.dtype.kind in "biuf":
        return _numbered_classes(y, name, limits)
    present, labels = np.unique(y, return_inverse=True)
    check_at_most("target", len(present), limits.max_classes, "classes")
    return labels, tuple(_as_text(text) for text in present.tolist())


def _as_text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _unit_interval(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    return images.astype(np.float32) / np.float32(255)
