"""Arrays that were checked once, and the checks that all kinds of uploads share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import Limits, check_at_most
from ntk_core.errors import InvalidInput

NUM_NAMED = 3
# A feature is refused if rounding to float32 moves its values by more than this share of their spread.
MAX_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Cleaned:
    """What networks will see of an upload.

    Attributes:
        x: inputs (n, *input_shape) float32; images channels last, from 0 to 1.
        labels: (n,) int64 positions in ``class_names``; empty for regression.
        targets: (n, k) float32 for regression; (n, 0) for classes.
        class_names: one per class; none for regression.
    """

    x: NDArray[np.float32]
    labels: NDArray[np.int64]
    targets: NDArray[np.float32]
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
        return {name: int((self.labels == index).sum()) for index, name in enumerate(self.class_names)}


def cleaned_classes(
    x: NDArray,
    labels: NDArray,
    class_names: Sequence[str],
    field: str,
    limits: Limits,
    columns: Sequence[str] = (),
) -> Cleaned:
    """Inputs with class labels; ``columns`` names the features."""
    if len(class_names) < 2:
        only = f"one class only ({class_names[0]})" if class_names else "no class"
        raise InvalidInput(field, only, "at least 2 classes")
    check_at_most(field, len(class_names), limits.max_classes, "classes")
    if len(set(class_names)) < len(class_names):
        raise InvalidInput(field, f"classes {named(class_names)}", "classes with different names")
    counts = np.bincount(labels, minlength=len(class_names))
    for name, count in zip(class_names, counts, strict=True):
        if count < limits.min_per_class:
            given = f"class {name} with {count} sample{'s' if count != 1 else ''}"
            raise InvalidInput(field, given, f"at least {limits.min_per_class} samples of each class")
    inputs = checked_inputs(x, limits, columns)
    return Cleaned(inputs, labels.astype(np.int64), np.zeros((len(inputs), 0), np.float32), tuple(class_names))


def cleaned_targets(x: NDArray, targets: NDArray, scale: bool, limits: Limits, columns: Sequence[str] = ()) -> Cleaned:
    """Inputs with numbers to be learned; ``columns`` names the features."""
    values = np.asarray(targets, np.float64).reshape(len(targets), -1)
    check_at_most("target", values.shape[1], limits.max_classes, "targets")
    if len(values) < 2:
        raise InvalidInput("target", f"{len(values)} samples", "at least 2 samples")
    check_finite("target", values, "target")
    if (values.min(axis=0) == values.max(axis=0)).any():
        raise InvalidInput("target", "a constant target", "a target that varies")
    if scale:
        with np.errstate(over="ignore", invalid="ignore"):  # the check below reports it
            values = (values - values.mean(axis=0)) / values.std(axis=0)
    small = _as_float32("target", values, "target")
    return Cleaned(checked_inputs(x, limits, columns), np.zeros(0, np.int64), small, ())


def checked_inputs(x: NDArray, limits: Limits, columns: Sequence[str] = ()) -> NDArray[np.float32]:
    """Inputs as float32."""
    check_at_most("file", len(x), limits.max_rows, "samples")
    check_at_most("file", x.size, limits.max_values, "numbers in all inputs together")
    if len(x) < 2 or x.size == 0:
        raise InvalidInput("file", f"{len(x)} samples of shape {x.shape[1:]}", "at least 2 samples")
    check_finite("features", x, "input")
    small = _as_float32("features", x, "inputs")
    if x.ndim == 2:
        _check_columns(x, small, columns)
    elif (small == small[:1]).all():
        raise InvalidInput("features", "inputs that are all equal", "inputs that differ")
    return small


def check_finite(field: str, values: NDArray, noun: str) -> None:
    """Refuse NaN and infinities, with their number and the first place."""
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) + 1
        raise InvalidInput(
            field, f"{int(bad.sum()):,} values NaN or infinite, the first in sample {row:,}", f"finite {noun} values"
        )


def named(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:NUM_NAMED])
    return f"{shown} and {len(names) - NUM_NAMED} more" if len(names) > NUM_NAMED else shown


def _check_columns(x: NDArray, small: NDArray[np.float32], names: Sequence[str]) -> None:
    def called(flags: NDArray) -> str:
        found = [names[i] if names else f"column {i + 1}" for i in np.flatnonzero(flags).tolist()]
        return named(found)

    constant = x.min(axis=0) == x.max(axis=0)
    if constant.any():
        raise InvalidInput("features", f"{called(constant)}, constant", "columns that vary")
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.abs(x - small.astype(np.float64)).max(axis=0) > MAX_ROUNDING * x.std(axis=0, dtype=np.float64)
    if rounded.any():
        allowed = "numbers whose differences float32 can hold (24 bits); subtract a constant or leave the column out"
        raise InvalidInput("features", f"{called(rounded)}, huge against its differences", allowed)


def _as_float32(field: str, values: NDArray, noun: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(values, np.float32)
    if not np.isfinite(small).all():
        raise InvalidInput(field, f"{noun} beyond 3.4e38", "numbers that float32 can hold")
    return small
