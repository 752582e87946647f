"""Balanced subsets of image sets: shipped files, or users' copies of the full sets.

Copies are not parsed: their last bytes, as many as the original has, are used if the checksum
agrees. A damaged or hostile file needs at most the memory of a valid one.
"""

import gzip
import hashlib
import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data._dataset import TABLE, balanced_subset, patches
from linearity_lab.data._info import DatasetInfo, DatasetShapes, Samples, shapes_of
from linearity_lab.data._options import Options
from linearity_lab.environment import environment_settings
from ntk_core.errors import InvalidInput

SHIPPED_FILES = Path(__file__).parent / "files"
POOLING = 4  # side of the blocks in Hu, Xiao, Adlam & Pennington (2020)
ROOT_VARIABLE = "LINEARITY_LAB_DATA"
LabeledImages = tuple[NDArray, NDArray]  # (n, height, width, channels) and (n,)
Copy = Callable[[], AbstractContextManager["_Readable"]]
MAX_HEADER_BYTES = 4096  # headers of npy files; IDX headers have at most 16 bytes


@dataclass(frozen=True, kw_only=True)
class ImageSet(DatasetInfo):
    """Images in [0, 1] with balanced classes.

    Their shape is (n, height, width, channels), or (n, T, d) as patches.

    Attributes:
        files: side of the images → ``name`` of the shipped file, ``image_shape`` in it, and
            ``num_images`` to train and to test, balanced.
        full: images of each class in the full set, to train and to test.
    """

    files: Mapping[str, Options]
    full: tuple[tuple[int, ...], tuple[int, ...]]

    def shapes(self, options: Options) -> DatasetShapes:
        side = self._side(options)
        file = self.files[str(side)]
        shape: tuple[int, ...] = (side, side, (*file["image_shape"], 1)[2])
        counts: Sequence[tuple[int, ...]] = self.full
        if options["source"] == "shipped":
            counts = [
                (n // len(self.class_names),) * len(self.class_names) for n in file["num_images"]
            ]
        indices = self._indices(options)
        num_train, num_test = (sum(per_class[index] for index in indices) for per_class in counts)
        size = options["patch_size"]
        if size:
            shape = (side // size) ** 2, size * size * shape[-1]
        elif options["flatten"]:
            shape = (int(np.prod(shape)),)
        return shapes_of(options, shape, options["classes"], (num_train, num_test))

    def check(self, options: Options) -> None:
        """Also refuse patches that do not fill an image."""
        super().check(options)
        side = self._side(options)
        size = options["patch_size"]
        sizes = (
            [0] if options["flatten"] else [each for each in range(1, side + 1) if side % each == 0]
        )
        if size and size not in sizes:
            divide = f"0, or one of {', '.join(map(str, sizes))}, which divide {side} pixels"
            allowed = "0 if images are flattened" if options["flatten"] else divide
            raise InvalidInput(
                "patch_size", size, allowed, min(sizes, key=lambda each: abs(each - size))
            )

    def samples(self, options: Options) -> tuple[Samples, Samples]:
        """Return balanced subsets, labels numbered in the order of the chosen classes."""
        side = self._side(options)
        class_indices = self._indices(options)
        shape = self.shapes(options).input_shape
        sets = read_originals(self.name) if options["source"] == "full" else self._shipped(side)
        positions = np.full(max(class_indices) + 1, -1)
        positions[class_indices] = np.arange(len(class_indices))

        def subset(split: int, count: int) -> Samples:
            images, labels = sets[split]
            indices = balanced_subset(labels, class_indices, count, options["seed"], split)
            chosen = images[indices]
            is_pooled = side <= 8
            if is_pooled and chosen.shape[1] > 8:
                chosen = block_sums(chosen)
            x = chosen.astype(np.float32) / np.float32(255 * POOLING**2 if is_pooled else 255)
            x = (
                patches(x, options["patch_size"])
                if options["patch_size"]
                else x.reshape(-1, *shape)
            )
            return x, positions[labels[indices]]

        return subset(0, options["num_samples"]), subset(1, options["num_test"])

    def _shipped(self, side: int) -> tuple[LabeledImages, LabeledImages]:
        file = self.files[str(side)]
        with np.load(SHIPPED_FILES / file["name"], allow_pickle=False) as archive:
            sums = "_sum16" if "x_train_sum16" in archive else ""  # over 4×4 blocks
            train, test = (
                (archive[f"x_{each}{sums}"], archive[f"y_{each}"]) for each in ("train", "test")
            )
        shape = (*file["image_shape"], 1)[:3]
        return (train[0].reshape(-1, *shape), train[1]), (test[0].reshape(-1, *shape), test[1])

    def _side(self, options: Options) -> int:
        return int(options.get("resolution", next(iter(self.files))))

    def _indices(self, options: Options) -> list[int]:
        return [self.class_names.index(name) for name in options["classes"]]

    def provenance(self, options: Options) -> str:
        """Origin, licence, citation and our choices."""
        if options["source"] == "full":
            source = "the full set, verified by its SHA-256"
        else:
            source = "the images shipped with the program (first ones of each class)"
        pooling = " Average-pooled over 4×4 blocks, as in Hu, Xiao, Adlam & Pennington (2020)."
        size = options["patch_size"]
        cut = f", cut into patches of {size}×{size} pixels, each a token" if size else ""
        return (
            f"{self.origin}{pooling if options.get('resolution') == 8 else ''} "
            f"Our choice: a random subset of {source}, as many of each class, values from 0 to 1 "
            f"before standardization{cut}."
        )


def block_sums(images: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Sum each 4×4 block and channel.

    ``(n, 4h, 4w, c)`` uint8 → ``(n, h, w, c)`` uint16, exactly.
    """
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // POOLING, POOLING, width // POOLING, POOLING, channels)
    return blocks.sum(axis=(2, 4), dtype=np.uint16)


@dataclass(frozen=True)
class Originals:
    """Possible places of a full set, and the SHA-256 of its uncompressed files.

    Attributes:
        shapes: of the bytes in each file; in a batch of CIFAR-10 a label, then the red,
            green and blue planes.
        kept_labels: kept classes of CIFAR-10, ascending; new labels are their positions.
    """

    folders: tuple[str, ...]
    sha256: dict[str, str]
    shapes: tuple[tuple[int, ...], ...]
    npz: str | None = None
    kept_labels: tuple[int, ...] = ()

    def header(self, shape: tuple[int, ...]) -> bytes:
        """Header of a file with this shape.

        In MNIST, 0x0800 + ndim and the dimensions, big-endian.
        """
        return (
            b""
            if self.kept_labels
            else struct.pack(f">{1 + len(shape)}I", 0x0800 + len(shape), *shape)
        )

    def sets(self, files: Sequence[NDArray]) -> tuple[LabeledImages, LabeledImages]:
        """Return training and test images from the bytes of all files."""
        if self.kept_labels:
            return self._kept(np.concatenate(files[:-1])), self._kept(files[-1])
        x, labels, x_test, labels_test = files
        return (x[..., None], labels), (x_test[..., None], labels_test)

    def _kept(self, records: NDArray) -> LabeledImages:
        records = records[np.isin(records[:, 0], self.kept_labels)]
        images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return images, np.searchsorted(self.kept_labels, records[:, 0]).astype(np.uint8)


ORIGINALS = {name: Originals(**entry) for name, entry in TABLE["originals"].items()}
ORIGINALS["digits"] = ORIGINALS["mnist"]


def read_originals(name: str) -> tuple[LabeledImages, LabeledImages]:
    """Read full training and test images of ``name`` from the first place that has them."""
    originals = ORIGINALS[name]
    # The configured folder, Keras, torchvision, Debian.
    places = [environment_settings().data, "~/.keras/datasets", "data", "/usr/share/datasets"]
    for root in (Path(place).expanduser() for place in places if place):
        if copies := _copies(originals, root):
            files = zip(copies, originals.sha256.items(), originals.shapes, strict=True)
            return originals.sets(
                [
                    _verified(copy, *checksum, originals.header(shape), shape)
                    for copy, checksum, shape in files
                ]
            )
    raise InvalidInput(
        "source", "full", f"shipped, since no full copy of {name} was found (set {ROOT_VARIABLE})"
    )


def _copies(originals: Originals, root: Path) -> list[Copy]:
    """Return openers of the set's files in this directory; empty if one is missing."""
    for folder in originals.folders:
        pairs = [(root / folder / name, root / folder / f"{name}.gz") for name in originals.sha256]
        if all(plain.is_file() or packed.is_file() for plain, packed in pairs):
            return [
                partial(_opened, plain if plain.is_file() else packed) for plain, packed in pairs
            ]
    if originals.npz and (root / originals.npz).is_file():
        return [
            partial(_member, root / originals.npz, name)
            for name in ("x_train", "y_train", "x_test", "y_test")
        ]
    return []


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _opened(path: Path) -> AbstractContextManager[_Readable]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def _member(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        yield stream


def _verified(
    copy: Copy, name: str, sha256: str, header: bytes, shape: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Read the bytes of one file after its header."""
    size = math.prod(shape)
    try:
        with copy() as stream:
            data = stream.read(MAX_HEADER_BYTES + size + 1)[-size:]
    except Exception:  # of gzip, zipfile or the npy header on damaged bytes
        data = b""
    if hashlib.sha256(header + data).hexdigest() != sha256:
        raise InvalidInput(
            "source", name, f"the original file, whose SHA-256 starts with {sha256[:16]}"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)
