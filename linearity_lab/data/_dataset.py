"""The frozen ``Dataset``, and what builds it.

These are the table of data sets, random streams, and transformations of samples.
"""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ntk_core.errors import InvalidInput
from ntk_core.streams import stream

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


def _tuples(value: object) -> Any:
    """Convert lists of TOML to tuples."""
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


TABLE = _tuples(
    tomllib.loads((Path(__file__).parent / "datasets.toml").read_text(encoding="utf-8"))
)
# One independent stream per purpose: changing one size does not change other draws.
MEANS, TRAIN, TEST = range(3)


def uniform_integers(draw: np.random.Generator, shape: tuple[int, ...], count: int) -> IntArray:
    """Integers from 0 to ``count`` − 1."""
    # floor(C·u) instead of Generator.integers, whose algorithm may change between NumPy versions.
    return np.floor(count * draw.random(shape)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test data, validated, read-only and free of JAX.

    Classification has at least two ``class_names`` and labels ``0 … C-1``; regression has neither
    (``class_names=()`` and empty labels). The test arrays may be empty: shapes ``(0, …)``. Equality
    is identity; compare contents with ``data_fingerprint``.

    Attributes:
        name: its name in ``load_dataset``, or any other for your own data.
        x: inputs, ``(n, *input_shape)`` float32; images are channels-last.
        y: targets, ``(n, num_outputs)`` float32.
        labels: class indices, ``(n,)`` int64.
        x_test, y_test, labels_test: the same for the test set.
        class_names: one name per class.
        provenance: origin, license, citation, and our choices.

    Raises:
        InvalidInput: names the array that is empty, not numeric, not finite or of the wrong shape.

    >>> from linearity_lab import load_dataset
    >>> data = load_dataset("sine", num_samples=8)
    >>> data.x.shape, data.y.shape, data.class_names
    ((8, 1), (8, 1), ())
    """

    name: str
    x: FloatArray
    y: FloatArray
    labels: IntArray
    x_test: FloatArray
    y_test: FloatArray
    labels_test: IntArray
    class_names: tuple[str, ...]
    provenance: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(self.class_names))
        for field in ("x", "y", "x_test", "y_test"):
            object.__setattr__(self, field, _finite_floats(field, getattr(self, field)))
        for field in ("labels", "labels_test"):
            object.__setattr__(self, field, _integers(field, getattr(self, field)))
        if len(self.class_names) == 1 or len(set(self.class_names)) < len(self.class_names):
            raise InvalidInput(
                "class_names",
                self.class_names,
                "at least 2 different names, or none for regression",
            )
        if self.x.ndim < 2 or self.x.size == 0:
            raise InvalidInput(
                "x",
                f"shape {self.x.shape}",
                "shape (n, …) with at least one sample and one feature",
            )
        if self.y.ndim != 2 or self.y.shape[1] == 0:
            raise InvalidInput("y", f"shape {self.y.shape}", "shape (n, number of outputs)")
        _check_shape("x_test", self.x_test, (len(self.x_test), *self.input_shape))
        for suffix, n in (("", len(self.x)), ("_test", len(self.x_test))):
            _check_shape("y" + suffix, getattr(self, "y" + suffix), (n, self.num_outputs))
            labels = getattr(self, "labels" + suffix)
            _check_shape("labels" + suffix, labels, (n if self.class_names else 0,))
            if labels.size and not 0 <= labels.min() <= labels.max() < len(self.class_names):
                given = f"labels from {labels.min()} to {labels.max()}"
                raise InvalidInput(
                    "labels" + suffix, given, f"integers from 0 to {len(self.class_names) - 1}"
                )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch axis."""
        return self.x.shape[1:]

    @property
    def num_outputs(self) -> int:
        """Number of target columns C: the classes, or 1 for plus-minus targets."""
        return self.y.shape[1]


def data_fingerprint(dataset: Dataset) -> str:
    """Return the SHA-256 of the six arrays, in hexadecimal.

    It covers shapes, types and bytes, and is the same on every machine.

    Name and provenance are excluded: equal numbers have equal fingerprints.
    """
    digest = hashlib.sha256()
    for field in ("x", "y", "labels", "x_test", "y_test", "labels_test"):
        array = getattr(dataset, field)
        little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{field} {little_endian.dtype.str} {little_endian.shape};".encode())
        # Empty arrays cannot be cast to bytes.
        if little_endian.size:
            digest.update(little_endian.data.cast("B"))
    return digest.hexdigest()


def _finite_floats(field: str, values: ArrayLike) -> FloatArray:
    array = _numeric(field, values, "biuf", "an array of numbers")
    with np.errstate(over="ignore"):  # overflow becomes inf, which is reported below
        floats = array.astype(np.float32, copy=False)
    finite = np.isfinite(floats)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        given = (
            f"{floats.size - int(finite.sum()):,} missing or infinite values, the first at {first},"
        )
        raise InvalidInput(field, given, "finite numbers (float32)")
    return _read_only(floats)


def _integers(field: str, values: ArrayLike) -> IntArray:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)  # an empty list arrives as float64
    return _read_only(
        _numeric(field, array, "iu", "an array of integers").astype(np.int64, copy=False)
    )


def _numeric(field: str, values: ArrayLike, kinds: str, allowed: str) -> NDArray:
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise InvalidInput(field, "rows of different lengths", allowed) from None
    if array.dtype.kind not in kinds:
        raise InvalidInput(field, f"an array of type {array.dtype}", allowed)
    return array


def _read_only(array: NDArray) -> NDArray:
    view = array.view()  # on a view, so the caller's array stays writable
    view.flags.writeable = False
    return view


def _check_shape(field: str, array: NDArray, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise InvalidInput(
            field, f"shape {array.shape}", f"shape {expected}, to match the other arrays"
        )


def patches(images: NDArray, size: int) -> NDArray:
    """Cut images into square patches as tokens.

    (n, height, width, c) → (n, T, size² c), T = height width / size².
    """
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // size, size, width // size, size, channels).swapaxes(2, 3)
    return blocks.reshape(n, height * width // size**2, size**2 * channels)


def balanced_subset(
    labels: NDArray, classes: list[int], num_samples: int, seed: int, split: int
) -> NDArray[np.intp]:
    """Return shuffled indices of ``num_samples`` samples with balanced classes.

    Counts differ by at most one unless a class runs out. Each class has its own random order, so
    under one seed a smaller subset is contained in a larger one with the same classes, and other
    classes do not change the choice.
    """
    members = [np.flatnonzero(labels == label) for label in classes]
    counts = _fair_counts(num_samples, [len(member) for member in members])
    chosen = [
        member[_random_order(len(member), seed, split, label)[:count]]
        for member, count, label in zip(members, counts, classes, strict=True)
    ]
    indices = np.concatenate(chosen)
    return indices[_random_order(len(indices), seed, split)]


def encode_targets(labels: IntArray, num_classes: int, targets: str) -> FloatArray:
    """Return targets of labels.

    "one-hot" gives ``(n, C)`` with a 1 in each row, "plus-minus" ``(n, 1)`` with 2·label − 1.
    """
    if targets == "plus-minus":
        return (2 * labels - 1).astype(np.float32)[:, None]
    y = np.zeros((len(labels), num_classes), dtype=np.float32)
    y[np.arange(len(labels)), labels] = 1
    return y


def standardize_inputs(
    x: FloatArray, x_test: FloatArray, how: str
) -> tuple[FloatArray, FloatArray]:
    """Standardize both sets.

    - "raw": unchanged.
    - "unit-norm": x √d / ‖x‖ for each input, d the number of its entries; a zero input stays zero.
    - "centered": x − mean for each feature, of the training set, then each input
      scaled as by "unit-norm".
    - "standard": (x − mean) / deviation for each feature, both of the training set; a feature that
      is constant there becomes 0 in both sets.
    """
    if how == "unit-norm":
        return _unit_norm(x), _unit_norm(x_test)
    if how == "centered":
        mean = x.mean(axis=0, dtype=np.float64).astype(np.float32)
        return _unit_norm(x - mean), _unit_norm(x_test - mean)
    if how == "standard":
        mean = x.mean(axis=0, dtype=np.float64)
        deviation = x.std(axis=0, dtype=np.float64)
        # A rounded mean can leave a constant feature with a tiny deviation; extremes are exact.
        varies = (x.max(axis=0) > x.min(axis=0)) & (deviation > 0)
        scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=varies).astype(
            np.float32
        )
        mean = mean.astype(np.float32)
        return (x - mean) * scale, (x_test - mean) * scale
    return x, x_test


def _unit_norm(x: FloatArray) -> FloatArray:
    flat = x.reshape(len(x), int(np.prod(x.shape[1:])))
    norms = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64))
    factors = np.sqrt(flat.shape[1]) / np.where(norms > 0, norms, np.inf)
    found = np.empty_like(flat)
    # Factors of tiny inputs are beyond float32.
    tiny = factors > np.finfo(np.float32).max
    found[~tiny] = flat[~tiny] * factors[~tiny, None].astype(np.float32)
    found[tiny] = flat[tiny] * factors[tiny, None]
    return found.reshape(x.shape)


def _random_order(n: int, *purpose: int) -> NDArray[np.intp]:
    # Sorting uniform numbers instead of Generator.permutation, whose algorithm may change
    # between NumPy versions.
    return np.argsort(stream(*purpose).random(n), kind="stable")


def _fair_counts(total: int, available: list[int]) -> list[int]:
    counts = [0] * len(available)
    while total > 0:
        open_classes = [index for index, count in enumerate(counts) if count < available[index]]
        share = max(1, total // len(open_classes))
        for index in open_classes:
            taken = min(share, available[index] - counts[index], total)
            counts[index] += taken
            total -= taken
    return counts
