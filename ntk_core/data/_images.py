"""Image sets: the shipped files or the full originals, cut to a balanced subset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import FloatArray, IntArray
from ntk_core.data._originals import LabeledImages, read_originals
from ntk_core.data._readers import read_npz
from ntk_core.data._transforms import balanced_subset

SHIPPED_FILES = Path(__file__).parent / "files"
POOLING = 4  # side of the blocks in Hu, Xiao, Adlam & Pennington (2020)

_MNIST = (
    "MNIST by Yann LeCun, Corinna Cortes and Christopher J. C. Burges, 'The MNIST database of handwritten digits' "
    "(1998), licence CC BY-SA 3.0."
)
_ORIGINS = {
    "mnist": _MNIST,
    "digits": _MNIST + " The images are MNIST average-pooled over 4×4 blocks to 7×7 (our choice); they are not the 8×8 "
    "digits of scikit-learn.",
    "fashion-mnist": "Fashion-MNIST by Han Xiao, Kashif Rasul and Roland Vollgraf (2017, arXiv:1708.07747), Zalando "
    "Research, licence MIT.",
    "cifar2": "Cats and horses of CIFAR-10 by Alex Krizhevsky, 'Learning Multiple Layers of Features from Tiny "
    "Images', technical report, University of Toronto (2009); no licence is stated.",
}


def load_images(
    name: str, options: Mapping[str, Any], class_indices: list[int]
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Balanced training and test images in [0, 1], each with its labels, numbered in the order of ``class_indices``.

    Images are ``(n, height, width, channels)``.

    Raises:
        InvalidInput: a full set is asked for that is not on this computer, or damaged.
    """
    resolution = options.get("resolution")
    sets = read_originals(name) if options["source"] == "full" else _read_shipped(name, resolution)
    is_pooled = name == "digits" or resolution == 8
    arrays: list[NDArray] = []
    for split, (images, labels) in enumerate(sets):
        count = options["num_samples"] if split == 0 else options["num_test"]
        indices = balanced_subset(labels, class_indices, count, options["seed"], split)
        chosen = images[indices]
        if is_pooled and chosen.shape[1] > 8:
            chosen = block_sums(chosen)
        positions = np.full(max(class_indices) + 1, -1)
        positions[class_indices] = np.arange(len(class_indices))
        arrays += [_unit_interval(chosen, is_pooled), positions[labels[indices]]]
    x, labels, x_test, labels_test = arrays
    return x, labels, x_test, labels_test


def image_provenance(name: str, options: Mapping[str, Any]) -> str:
    """Origin, licence and citation of an image set, and what was chosen from it."""
    if options["source"] == "full":
        source = "the full set, verified by its SHA-256"
    else:
        source = "the images shipped with the program (first ones of each class)"
    pooling = " Average-pooled over 4×4 blocks, as in Hu, Xiao, Adlam & Pennington (2020)."
    return (
        f"{_ORIGINS[name]}{pooling if options.get('resolution') == 8 else ''} "
        f"Our choice: a random subset of {source}, as many of each class, values from 0 to 1 before standardization."
    )


def block_sums(images: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Sums over each 4×4 block and channel: ``(n, 4h, 4w, c)`` uint8 → ``(n, h, w, c)`` uint16, exactly."""
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // POOLING, POOLING, width // POOLING, POOLING, channels)
    return blocks.sum(axis=(2, 4), dtype=np.uint16)


def _read_shipped(name: str, resolution: int | None) -> tuple[LabeledImages, LabeledImages]:
    shape: tuple[int, ...]
    if name == "cifar2" and resolution == 8:
        file_name, suffix, dtype, shape, num_train, num_test = (
            "cifar2_8x8.npz",
            "_sum16",
            "u2",
            (8, 8, 3),
            10_000,
            2_000,
        )
    elif name == "cifar2":
        file_name, suffix, dtype, shape, num_train, num_test = "cifar2_32x32.npz", "", "u1", (32, 32, 3), 1_000, 200
    else:
        file_name = "fashion_mnist_8k.npz" if name == "fashion-mnist" else "mnist_8k.npz"
        suffix, dtype, shape, num_train, num_test = "", "u1", (28, 28), 6_000, 2_000
    members = {
        f"x_train{suffix}": ((num_train, *shape), dtype),
        "y_train": ((num_train,), "u1"),
        f"x_test{suffix}": ((num_test, *shape), dtype),
        "y_test": ((num_test,), "u1"),
    }
    x, labels, x_test, labels_test = read_npz(SHIPPED_FILES / file_name, members).values()
    if len(shape) == 2:
        x, x_test = x[..., None], x_test[..., None]
    return (x, labels), (x_test, labels_test)


def _unit_interval(images: NDArray, is_pooled: bool) -> FloatArray:
    return images.astype(np.float32) / np.float32(255 * POOLING**2 if is_pooled else 255)
