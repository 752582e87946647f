"""From labels to targets, from raw to standardized inputs, from many samples to a balanced few."""

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import FloatArray, IntArray, stream


def patches(images: NDArray, size: int) -> NDArray:
    """Square patches as tokens, row by row: (n, height, width, c) → (n, T, size² c) with T = height width / size²."""
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // size, size, width // size, size, channels).swapaxes(2, 3)
    return blocks.reshape(n, height * width // size**2, size**2 * channels)


def balanced_subset(labels: NDArray, classes: list[int], num_samples: int, seed: int, split: int) -> NDArray[np.intp]:
    """Indices of ``num_samples`` samples, shuffled, with class counts as equal as the classes allow.

    Counts differ by at most one unless a class runs out. Each class has its own random order, so under one seed a
    smaller subset is contained in a larger one with the same classes, and other classes do not change the choice.
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
    """Targets ``(n, C)`` with a single 1 in each row ("one-hot"), or ``(n, 1)`` with 2·label − 1 ("plus-minus")."""
    if targets == "plus-minus":
        return (2 * labels - 1).astype(np.float32)[:, None]
    y = np.zeros((len(labels), num_classes), dtype=np.float32)
    y[np.arange(len(labels)), labels] = 1
    return y


def standardize_inputs(x: FloatArray, x_test: FloatArray, how: str) -> tuple[FloatArray, FloatArray]:
    """Both sets, standardized.

    - "raw": as they are.
    - "unit-norm": x √d / ‖x‖ for each input, d the number of its entries; a zero input stays zero.
    - "centered": x − mean for each feature, of the training set, then each input scaled as by "unit-norm".
    - "standard": (x − mean) / deviation for each feature, both of the training set; a feature that is constant there
      becomes 0 in both sets.
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
        scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=varies).astype(np.float32)
        mean = mean.astype(np.float32)
        return (x - mean) * scale, (x_test - mean) * scale
    return x, x_test


def _unit_norm(x: FloatArray) -> FloatArray:
    flat = x.reshape(len(x), int(np.prod(x.shape[1:])))
    norms = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64))
    factors = np.sqrt(flat.shape[1]) / np.where(norms > 0, norms, np.inf)
    return (flat * factors[:, None].astype(np.float32)).reshape(x.shape)


def _random_order(n: int, *purpose: int) -> NDArray[np.intp]:
    # Sorting uniform numbers instead of Generator.permutation, whose algorithm may change between NumPy versions.
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
