"""From the bytes of a file to what it holds; of npz files numbers and short texts only, nothing is unpickled."""

import io
import math
import sys

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import DEFAULT_LIMITS, Archive, Limits, is_zip
from ntk_core.data.uploads._candidate import Arrays, Candidate
from ntk_core.data.uploads._csv import read_csv
from ntk_core.data.uploads._image_folders import is_image_archive, read_image_folders
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

MAX_ARRAYS = 64
MAX_TEXT_BYTES = 400  # of one text: 100 characters
_FORMATS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_KNOWN = {
    b"\x89PNG": "a single image",
    b"\xff\xd8\xff": "a single image",
    b"%PDF": "a PDF file",
    b"\x1f\x8b": "a gzip file",
    b"\x93NUM": "a single npy array",
    b"\x89HDF": "an HDF5 file",
    b"SQLi": "an SQLite file",
    b"PAR1": "a Parquet file",
    b"\x80\x04\x95": "a pickle",
    b"\x80\x05\x95": "a pickle",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
}
_ALLOWED = "a CSV file, an npz file or a zip of image folders"


def parse_upload(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Candidate:
    """What the bytes of a CSV file, an npz file or a zip of image folders hold; the name of the file plays no part.

    >>> parse_upload(b"a,b,kind\\n1,2,x\\n3,4,y\\n").names
    ('a', 'b', 'kind')

    Raises:
        InvalidInput: field ``file``, one sentence: too large, damaged, dangerous, or of another kind.
    """
    if len(data) > limits.max_bytes:
        found, most = size(len(data)), size(limits.max_bytes)
        if found == most:  # after rounding
            found, most = (f"{count:,} bytes" for count in (len(data), limits.max_bytes))
        raise InvalidInput("file", f"a file of {found}", f"at most {most}")
    if not data:
        raise InvalidInput("file", "an empty file", _ALLOWED)
    if not is_zip(data):
        for magic, given in _KNOWN.items():
            if data.startswith(magic):
                raise InvalidInput("file", given, _ALLOWED)
        return read_csv(data, limits)
    archive = Archive(data, limits)
    if not archive.names:
        raise InvalidInput("file", "an empty archive", "an npz file or a zip of image folders")
    if any(name.endswith(".npy") for name in archive.names):
        return _read_npz(archive, limits)
    if is_image_archive(archive):
        return read_image_folders(archive, limits)
    raise InvalidInput("file", f"an archive with {archive.names[0]}", "arrays (.npy) or images (.png, .jpg, .bmp)")


def _read_npz(archive: Archive, limits: Limits) -> Arrays:
    """All arrays of the archive."""
    if len(archive.names) > MAX_ARRAYS:
        raise InvalidInput("file", f"{len(archive.names):,} arrays", f"at most {MAX_ARRAYS} arrays")
    return Arrays({name.removesuffix(".npy"): _array(archive, name) for name in archive.names})


def _array(archive: Archive, name: str) -> NDArray:
    if not name.endswith(".npy"):
        raise InvalidInput("file", name, "arrays only (.npy) inside an npz file")
    data, field = archive.read(name), f"array {name.removesuffix('.npy')}"
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
            raise InvalidInput("file", f"{field}, of shape {shape},", "arrays with at least one entry")
        if math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
            raise InvalidInput("file", f"{field}, of shape {shape},", "the number of bytes of its shape")
        array = np.frombuffer(data, dtype, offset=stream.tell())
        if dtype.kind == "U" and array.view(dtype.byteorder.replace("|", "=") + "u4").max() > sys.maxunicode:
            raise InvalidInput("file", f"{field}, of broken texts,", allowed)
        return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    except InvalidInput:
        raise
    except Exception:
        raise InvalidInput("file", f"{name}, damaged", "an npz file as NumPy writes it") from None
