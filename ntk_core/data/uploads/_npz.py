"""Arrays of an npz file from outside: numbers and short texts only, nothing is ever unpickled."""

import io
import math
import sys

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import READ_ERRORS, Archive
from ntk_core.data.uploads._candidate import Arrays
from ntk_core.data.uploads._limits import Limits
from ntk_core.errors import InvalidInput

MAX_ARRAYS = 64
MAX_TEXT_BYTES = 400  # of one text: 100 characters
_FORMATS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_npz_arrays(archive: Archive, limits: Limits) -> Arrays:
    """All arrays of the archive.

    Raises:
        InvalidInput: an entry is no npy file, an array of objects or records, or empty.
    """
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
    except READ_ERRORS:
        raise InvalidInput("file", f"{name}, damaged", "an npz file as NumPy writes it") from None
