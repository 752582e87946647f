"""Parser of uploaded files; npz files may contain numbers and short texts only, never pickles."""

import io
import math
import sys

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data.uploads._archive import DEFAULT_LIMITS, Archive, Limits
from linearity_lab.data.uploads._candidate import Arrays, Candidate
from linearity_lab.data.uploads._images import ENDINGS, read_folders
from linearity_lab.data.uploads._tables import read_csv
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

MAX_ARRAYS = 64
MAX_TEXT_BYTES = 400  # of one text: 100 characters
_FORMATS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_KNOWN: dict[str, bytes | tuple[bytes, ...]] = {
    "a single image": (b"\x89PNG", b"\xff\xd8\xff"),
    "a PDF file": b"%PDF",
    "a gzip file": b"\x1f\x8b",
    "a single npy array": b"\x93NUM",
    "an HDF5 file": b"\x89HDF",
    "an SQLite file": b"SQLi",
    "a Parquet file": b"PAR1",
    "a pickle": (b"\x80\x04\x95", b"\x80\x05\x95"),
    "a RAR archive": b"Rar!",
    "a 7z archive": b"7z\xbc\xaf",
    "an old Excel workbook (.xls)": b"\xd0\xcf\x11\xe0",
    "a Feather file": (b"ARROW1", b"FEA1"),
    "a MATLAB file": b"MATLAB 5",
    "a bzip2 file": b"BZh",
    "an xz file": b"\xfd7zXZ",
    "a zstd file": b"\x28\xb5\x2f\xfd",
}
_ALLOWED = "a CSV file, an npz file or a zip of image folders"


def parse_upload(
    data: bytes, limits: Limits = DEFAULT_LIMITS, header: bool | None = None
) -> Candidate:
    """Parse the bytes of a CSV file, an npz file or a zip of image folders; file names are ignored.

    >>> parse_upload(b"a,b,kind\\n1,2,x\\n3,4,y\\n").names
    ('a', 'b', 'kind')

    Args:
        header: whether the first row of a table names the columns; None to compare it
            with the rows below.

    Raises:
        InvalidInput: field ``header``, if this comparison is undecided.
        InvalidInput: field ``file``, for files that are too large, damaged, dangerous, or of
            another type.
    """
    if len(data) > limits.max_bytes:
        found = size(len(data))
        most = size(limits.max_bytes)
        if found == most:  # after rounding
            found, most = (f"{count:,} bytes" for count in (len(data), limits.max_bytes))
        raise InvalidInput("file", f"a file of {found}", f"at most {most}")
    if not data:
        raise InvalidInput("file", "an empty file", _ALLOWED)
    if not data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        for given, magic in _KNOWN.items():
            if data.startswith(magic):
                raise InvalidInput("file", given, _ALLOWED)
        return read_csv(data, limits, header)
    archive = Archive(data, limits)
    if not archive.names:
        raise InvalidInput("file", "an empty archive", "an npz file or a zip of image folders")
    if any(name.endswith(".npy") for name in archive.names):
        return _read_npz(archive, limits)
    if 2 * sum(name.lower().endswith(ENDINGS) for name in archive.names) > len(archive.names):
        return read_folders(archive, limits)
    if any(name.startswith("xl/") for name in archive.names):
        raise InvalidInput("file", "an Excel workbook", "the sheet saved as CSV (UTF-8)")
    if "mimetype" in archive.names or "[Content_Types].xml" in archive.names:
        raise InvalidInput("file", "an office document", "the sheet saved as CSV (UTF-8)")
    raise InvalidInput(
        "file", f"an archive with {archive.names[0]}", "arrays (.npy) or images (.png, .jpg, .bmp)"
    )


def _read_npz(archive: Archive, limits: Limits) -> Arrays:
    """Read all arrays of the archive."""
    if len(archive.names) > MAX_ARRAYS:
        raise InvalidInput("file", f"{len(archive.names):,} arrays", f"at most {MAX_ARRAYS} arrays")
    return Arrays({name.removesuffix(".npy"): _array(archive, name) for name in archive.names})


def _array(archive: Archive, name: str) -> NDArray:
    if not name.endswith(".npy"):
        raise InvalidInput("file", name, "arrays only (.npy) inside an npz file")
    data = archive.read(name)
    field = f"array {name.removesuffix('.npy')}"
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        shape, is_fortran, dtype = _FORMATS[version](stream)
        allowed = "numbers, true and false, or short texts"
        if dtype.hasobject:
            raise InvalidInput("file", f"{field}, of Python objects (a pickle),", allowed)
        if dtype.kind not in "biufUS" or (dtype.kind in "US" and dtype.itemsize > MAX_TEXT_BYTES):
            raise InvalidInput("file", f"{field}, of type {dtype},", allowed)
        if not all(isinstance(size, int) and size > 0 for size in shape):
            raise InvalidInput(
                "file", f"{field}, of shape {shape},", "arrays with at least one entry"
            )
        if math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
            raise InvalidInput(
                "file", f"{field}, of shape {shape},", "the number of bytes of its shape"
            )
        array = np.frombuffer(data, dtype, offset=stream.tell())
        if (
            dtype.kind == "U"
            and array.view(dtype.byteorder.replace("|", "=") + "u4").max() > sys.maxunicode
        ):
            raise InvalidInput("file", f"{field}, of broken texts,", allowed)
        return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    except InvalidInput:
        raise
    except Exception:
        raise InvalidInput("file", f"{name}, damaged", "an npz file as NumPy writes it") from None
