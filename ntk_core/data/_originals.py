"""The full image sets, read from copies that people already have and verified by their checksums.

Readers of IDX, npz and CIFAR-10 files know the expected shape, compare the header with it before they allocate, and
never read further: a damaged or hostile file costs at most the memory of a good one. Nothing is unpickled.
"""

import gzip
import hashlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import TABLE
from ntk_core.environment import settings
from ntk_core.errors import InvalidInput

ROOT_VARIABLE = "LINEARITY_LAB_DATA"
LabeledImages = tuple[NDArray, NDArray]  # (n, height, width, channels) and (n,)
CIFAR_RECORD_BYTES = 1 + 3 * 32 * 32  # label, then the red, green and blue planes
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What gzip, zipfile and the npy header parser were seen or are documented to raise on damaged bytes.
READ_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)


@dataclass(frozen=True)
class IdxOriginals:
    """Where a set in the MNIST format may lie, and the SHA-256 of its four uncompressed files."""

    folders: tuple[str, ...]
    num_images: tuple[int, int]
    sha256: dict[str, str]
    npz: str | None = None


@dataclass(frozen=True)
class CifarOriginals:
    """The binary batches of CIFAR-10, their SHA-256, and the labels kept, ascending: new labels are their positions."""

    folder: str
    num_records: int
    kept_labels: tuple[int, ...]
    sha256: dict[str, str]


def _originals(entry: dict[str, Any]) -> IdxOriginals | CifarOriginals:
    return CifarOriginals(**entry) if "folder" in entry else IdxOriginals(**entry)


ORIGINALS = {name: _originals(entry) for name, entry in TABLE["originals"].items()}
ORIGINALS["digits"] = ORIGINALS["mnist"]


def read_originals(name: str) -> tuple[LabeledImages, LabeledImages]:
    """Full training and test images of ``name`` from the first place that has them.

    Raises:
        InvalidInput: they are nowhere, or a file is damaged or not the original.
    """
    originals = ORIGINALS[name]
    for root in _roots():
        if isinstance(originals, CifarOriginals):
            found = _read_cifar(originals, root)
        else:
            found = _read_idx_set(originals, root)
        if found is not None:
            return found
    raise InvalidInput("source", "full", f"shipped, since no full copy of {name} was found (set {ROOT_VARIABLE})")


def _roots() -> Iterator[Path]:
    if root := settings().data:
        yield Path(root).expanduser()
    yield Path("~/.keras/datasets").expanduser()  # Keras
    yield Path("data")  # the usual root of torchvision
    yield Path("/usr/share/datasets")  # Debian


def _read_idx_set(originals: IdxOriginals, root: Path) -> tuple[LabeledImages, LabeledImages] | None:
    num_train, num_test = originals.num_images
    shapes = [(num_train, 28, 28), (num_train,), (num_test, 28, 28), (num_test,)]
    arrays = _read_idx_files(originals, root, shapes)
    if arrays is None and originals.npz is not None and (root / originals.npz).is_file():
        names = ("x_train", "y_train", "x_test", "y_test")
        members = {name: (shape, "u1") for name, shape in zip(names, shapes, strict=True)}
        arrays = list(read_npz(root / originals.npz, members).values())
    if arrays is None:
        return None
    for array, (file_name, expected) in zip(arrays, originals.sha256.items(), strict=True):
        _check_sha256(idx_sha256(array), expected, file_name)
    return (arrays[0][..., None], arrays[1]), (arrays[2][..., None], arrays[3])


def _read_idx_files(originals: IdxOriginals, root: Path, shapes: list[tuple[int, ...]]) -> list[NDArray] | None:
    for folder in originals.folders:
        candidates = [_plain_or_gzip(root / folder / file_name) for file_name in originals.sha256]
        paths = [path for path in candidates if path is not None]
        if len(paths) == len(shapes):
            return [read_idx(path, shape) for path, shape in zip(paths, shapes, strict=True)]
    return None


def _plain_or_gzip(path: Path) -> Path | None:
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    return None


def _read_cifar(originals: CifarOriginals, root: Path) -> tuple[LabeledImages, LabeledImages] | None:
    paths = [root / originals.folder / file_name for file_name in originals.sha256]
    if not all(path.is_file() for path in paths):
        return None
    batches = []
    for path, expected in zip(paths, originals.sha256.values(), strict=True):
        images, labels = read_cifar_batch(path, originals.num_records)
        _check_sha256(file_sha256(path), expected, path.name)
        kept = np.isin(labels, originals.kept_labels)
        indices = np.searchsorted(originals.kept_labels, labels[kept]).astype(np.uint8)
        batches.append((images[kept], indices))
    images, labels = (np.concatenate(parts) for parts in zip(*batches[:-1], strict=True))
    return (images, labels), batches[-1]


def _check_sha256(actual: str, expected: str, file_name: str) -> None:
    if actual != expected:
        raise InvalidInput("source", file_name, "the original file, whose SHA-256 starts with " + expected[:16])


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def read_idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The uint8 array of an IDX file, plain or ``.gz``: big-endian magic 0x0800 + ndim, the dimensions, then the bytes.

    Raises:
        InvalidInput: header, length or compression are not those of an array of this shape.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            header = _idx_header(shape)
            if stream.read(len(header)) != header:
                raise InvalidInput("source", path.name, f"an IDX file of bytes with shape {shape}")
            return _read_exactly(stream, shape, np.dtype(np.uint8), path.name)
    except InvalidInput:
        raise
    except READ_ERRORS:
        raise InvalidInput("source", path.name, "a readable IDX file, plain or gzip") from None


def read_npz(path: Path, members: dict[str, tuple[tuple[int, ...], str]]) -> dict[str, NDArray]:
    """The arrays ``members`` (name → shape, dtype) of an npz archive; others are not looked at.

    Raises:
        InvalidInput: an array is missing, of another shape or type, or the archive is damaged.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, (shape, dtype) in members.items():
                member = archive.getinfo(f"{name}.npy")
                if member.compress_type not in _COMPRESSIONS:
                    raise InvalidInput("source", path.name, "an archive without compression or with deflate")
                with archive.open(member) as stream:
                    if _npy_header(stream) != (shape, False, np.dtype(dtype)):
                        allowed = f"an array {name} of type {dtype} with shape {shape}"
                        raise InvalidInput("source", path.name, allowed)
                    arrays[name] = _read_exactly(stream, shape, np.dtype(dtype), path.name)
    except InvalidInput:
        raise
    except READ_ERRORS:
        raise InvalidInput("source", path.name, f"a readable npz archive with {', '.join(members)}") from None
    return arrays


def read_cifar_batch(path: Path, num_records: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images ``(n, 32, 32, 3)`` and labels ``(n,)`` of a CIFAR-10 binary batch.

    Raises:
        InvalidInput: the file does not hold exactly ``num_records`` records.
    """
    try:
        with path.open("rb") as stream:
            records = _read_exactly(stream, (num_records, CIFAR_RECORD_BYTES), np.dtype(np.uint8), path.name)
    except OSError:
        raise InvalidInput("source", path.name, "a readable CIFAR-10 binary file") from None
    images = records[:, 1:].reshape(num_records, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, records[:, 0]


def idx_sha256(array: NDArray[np.uint8]) -> str:
    """SHA-256 of the uncompressed IDX file that holds this array, whatever file it was read from."""
    digest = hashlib.sha256(_idx_header(array.shape))
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _idx_header(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f">{1 + len(shape)}I", 0x0800 + len(shape), *shape)


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _read_exactly(stream: _Readable, shape: tuple[int, ...], dtype: np.dtype, file_name: str) -> NDArray:
    num_bytes = int(np.prod(shape)) * dtype.itemsize
    data = stream.read(num_bytes)
    # The byte too many also makes gzip and zip compare their checksums, which they do at the end only.
    if len(data) != num_bytes or stream.read(1):
        raise InvalidInput("source", file_name, f"a file with exactly {num_bytes:,} bytes of data")
    return np.frombuffer(data, dtype=dtype).reshape(shape)
