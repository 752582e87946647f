"""Readers of image files: IDX, npz and CIFAR-10 binary.

Each is told the shape to expect, compares the header with it before it allocates, and never reads further: a damaged or
hostile file costs at most the memory of a good one. Nothing is unpickled and no archive is unpacked to disk.
"""

import gzip
import hashlib
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from ntk_core.errors import InvalidInput

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
