"""Image sets: the shipped files or the full originals, cut to a balanced subset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import Dataset, FloatArray
from ntk_core.data._info import DatasetInfo, DatasetShapes, labeled, shapes_of
from ntk_core.data._options import Options
from ntk_core.data._originals import LabeledImages, read_originals
from ntk_core.data._transforms import balanced_subset, patches
from ntk_core.errors import InvalidInput

SHIPPED_FILES = Path(__file__).parent / "files"
POOLING = 4  # side of the blocks in Hu, Xiao, Adlam & Pennington (2020)


@dataclass(frozen=True)
class ShippedFile:
    """Images that come with the program, as many of each class.

    Attributes:
        name: of the file.
        image_shape: of one image.
        num_images: to train and to test.
        holds_sums: whether each entry is the sum over a 4×4 block of the image.
    """

    name: str
    image_shape: tuple[int, ...]
    num_images: tuple[int, int]
    holds_sums: bool = False

    def read(self) -> tuple[LabeledImages, LabeledImages]:
        """Training and test images with their labels."""
        suffix = "_sum16" if self.holds_sums else ""
        with np.load(SHIPPED_FILES / self.name, allow_pickle=False) as archive:
            x, labels, x_test, labels_test = (
                archive[name] for name in (f"x_train{suffix}", "y_train", f"x_test{suffix}", "y_test")
            )
        if len(self.image_shape) == 2:
            x, x_test = x[..., None], x_test[..., None]
        return (x, labels), (x_test, labels_test)


@dataclass(frozen=True, kw_only=True)
class ImageSet(DatasetInfo):
    """Images in [0, 1], (n, height, width, channels) or as patches (n, T, d), as many of each class.

    Attributes:
        files: side of the images → settings of the :class:`ShippedFile` for it.
        full: images of each class in the full set, to train and to test.
    """

    files: Mapping[str, Options]
    full: tuple[tuple[int, ...], tuple[int, ...]]

    @cached_property
    def file_of(self) -> dict[int, ShippedFile]:
        """Side of the images → shipped file."""
        return {int(side): ShippedFile(**given) for side, given in self.files.items()}

    def shapes(self, options: Options) -> DatasetShapes:
        side = self._side(options)
        file = self.file_of[side]
        shape: tuple[int, ...] = (side, side, file.image_shape[2] if len(file.image_shape) == 3 else 1)
        counts: Sequence[tuple[int, ...]] = self.full
        if options["source"] == "shipped":
            counts = [(n // len(self.class_names),) * len(self.class_names) for n in file.num_images]
        indices = self._indices(options)
        num_train, num_test = (sum(per_class[index] for index in indices) for per_class in counts)
        size = options["patch_size"]
        if size:
            shape = (side // size) ** 2, size * size * shape[-1]
        elif options["flatten"]:
            shape = (int(np.prod(shape)),)
        return shapes_of(options, shape, options["classes"], (num_train, num_test))

    def check(self, options: Options) -> None:
        """Refuse also patches that do not fill an image."""
        super().check(options)
        side, size = self._side(options), options["patch_size"]
        sizes = [0] if options["flatten"] else [each for each in range(1, side + 1) if side % each == 0]
        if size and size not in sizes:
            divide = f"0, or one of {', '.join(map(str, sizes))}, which divide {side} pixels"
            allowed = "0 where images are one vector" if options["flatten"] else divide
            raise InvalidInput("patch_size", size, allowed, min(sizes, key=lambda each: abs(each - size)))

    def load(self, options: Options) -> Dataset:
        """A balanced subset, its labels numbered in the order of the chosen classes."""
        side, class_indices, shapes = self._side(options), self._indices(options), self.shapes(options)
        sets = read_originals(self.name) if options["source"] == "full" else self.file_of[side].read()
        is_pooled = side <= 8
        arrays: list[NDArray] = []
        for split, (images, labels) in enumerate(sets):
            count = options["num_samples"] if split == 0 else options["num_test"]
            indices = balanced_subset(labels, class_indices, count, options["seed"], split)
            chosen = images[indices]
            if is_pooled and chosen.shape[1] > 8:
                chosen = block_sums(chosen)
            positions = np.full(max(class_indices) + 1, -1)
            positions[class_indices] = np.arange(len(class_indices))
            x = _unit_interval(chosen, is_pooled)
            x = patches(x, options["patch_size"]) if options["patch_size"] else x.reshape(-1, *shapes.input_shape)
            arrays += [x, positions[labels[indices]]]
        x, labels, x_test, labels_test = arrays
        return labeled(
            self.name, options, shapes.class_names, (x, labels, x_test, labels_test), self._provenance(options)
        )

    def _side(self, options: Options) -> int:
        return int(options.get("resolution", next(iter(self.file_of))))

    def _indices(self, options: Options) -> list[int]:
        return [self.class_names.index(name) for name in options["classes"]]

    def _provenance(self, options: Options) -> str:
        """Origin, licence and citation, and what was chosen from it."""
        if options["source"] == "full":
            source = "the full set, verified by its SHA-256"
        else:
            source = "the images shipped with the program (first ones of each class)"
        pooling = " Average-pooled over 4×4 blocks, as in Hu, Xiao, Adlam & Pennington (2020)."
        size = options["patch_size"]
        cut = f", cut into patches of {size}×{size} pixels, each a token" if size else ""
        return (
            f"{self.origin}{pooling if options.get('resolution') == 8 else ''} "
            f"Our choice: a random subset of {source}, as many of each class, values from 0 to 1 before "
            f"standardization{cut}."
        )


def block_sums(images: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Sums over each 4×4 block and channel: ``(n, 4h, 4w, c)`` uint8 → ``(n, h, w, c)`` uint16, exactly."""
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // POOLING, POOLING, width // POOLING, POOLING, channels)
    return blocks.sum(axis=(2, 4), dtype=np.uint16)


def _unit_interval(images: NDArray, is_pooled: bool) -> FloatArray:
    return images.astype(np.float32) / np.float32(255 * POOLING**2 if is_pooled else 255)
