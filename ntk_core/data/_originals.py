"""The full image sets, read from copies that people already have and verified by their checksums.

No copy is parsed. As many bytes as the original has are taken from its end, whatever header comes before them, and used
if they have its checksum: a damaged or hostile file costs at most the memory of a good one.
"""

import gzip
import hashlib
import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import TABLE
from ntk_core.environment import settings
from ntk_core.errors import InvalidInput

ROOT_VARIABLE = "LINEARITY_LAB_DATA"
LabeledImages = tuple[NDArray, NDArray]  # (n, height, width, channels) and (n,)
Copy = Callable[[], AbstractContextManager[IO[bytes] | gzip.GzipFile]]
MAX_HEADER_BYTES = 4096  # of npy files; those of IDX files have 16 at most


@dataclass(frozen=True)
class Originals:
    """Where copies of a full set may be, and the SHA-256 of its uncompressed files.

    Attributes:
        num_images: of a set in the MNIST format, to train and to test.
        num_records: in each batch of CIFAR-10: a label, then the red, green and blue planes.
        kept_labels: of CIFAR-10, ascending: new labels are their positions.
    """

    folders: tuple[str, ...]
    sha256: dict[str, str]
    npz: str | None = None
    num_images: tuple[int, ...] = ()
    num_records: int = 0
    kept_labels: tuple[int, ...] = ()

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of the bytes in each file."""
        if self.kept_labels:
            return [(self.num_records, 1 + 3 * 32 * 32)] * len(self.sha256)
        return [shape for count in self.num_images for shape in ((count, 28, 28), (count,))]

    def header(self, shape: tuple[int, ...]) -> bytes:
        """What comes before the bytes of this shape: in MNIST, 0x0800 + ndim and the dimensions, big-endian."""
        return b"" if self.kept_labels else struct.pack(f">{1 + len(shape)}I", 0x0800 + len(shape), *shape)

    def sets(self, files: Sequence[NDArray]) -> tuple[LabeledImages, LabeledImages]:
        """Training and test images of the bytes of all files."""
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
    """Full training and test images of ``name`` from the first place that has them."""
    originals = ORIGINALS[name]
    for root in _roots():
        if copies := _copies(originals, root):
            files = zip(copies, originals.sha256.items(), originals.shapes, strict=True)
            return originals.sets(
                [_verified(copy, *checksum, originals.header(shape), shape) for copy, checksum, shape in files]
            )
    raise InvalidInput("source", "full", f"shipped, since no full copy of {name} was found (set {ROOT_VARIABLE})")


def _roots() -> Iterator[Path]:
    if root := settings().data:
        yield Path(root).expanduser()
    yield Path("~/.keras/datasets").expanduser()  # Keras
    yield Path("data")  # the usual root of torchvision
    yield Path("/usr/share/datasets")  # Debian


def _copies(originals: Originals, root: Path) -> list[Copy]:
    """How the files of a set in this directory are opened; none where one is missing."""
    for folder in originals.folders:
        found = [copy for name in originals.sha256 if (copy := _plain_or_gzip(root / folder / name))]
        if len(found) == len(originals.sha256):
            return found
    if originals.npz and (root / originals.npz).is_file():
        return [partial(_member, root / originals.npz, name) for name in ("x_train", "y_train", "x_test", "y_test")]
    return []


def _plain_or_gzip(path: Path) -> Copy | None:
    compressed = path.with_name(path.name + ".gz")
    if path.is_file():
        return lambda: path.open("rb")
    return partial(gzip.GzipFile, compressed) if compressed.is_file() else None


@contextmanager
def _member(path: Path, name: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
        yield stream


def _verified(copy: Copy, name: str, sha256: str, header: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The bytes of one file behind its header."""
    size = math.prod(shape)
    try:
        with copy() as stream:
            data = stream.read(MAX_HEADER_BYTES + size + 1)[-size:]
    except Exception:  # of gzip, zipfile or the npy header on damaged bytes
        data = b""
    if hashlib.sha256(header + data).hexdigest() != sha256:
        raise InvalidInput("source", name, f"the original file, whose SHA-256 starts with {sha256[:16]}")
    return np.frombuffer(data, np.uint8).reshape(shape)
