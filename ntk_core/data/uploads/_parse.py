"""Parser of uploaded files; npz files may contain numbers and short texts only, never pickles."""

from __future__ import annotations

import csv
import io
import math
import posixpath
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._archive import DEFAULT_LIMITS, Archive, Limits, check_at_most
from ntk_core.data.uploads._candidate import (
    MAX_DISTINCT_TEXTS,
    Arrays,
    Candidate,
    Column,
    ColumnKind,
    ImageEntry,
    ImageFolders,
    Table,
)
from ntk_core.environment import check_installed
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size

if TYPE_CHECKING:
    from PIL.Image import Image

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", "missing")
NUM_PREVIEWED = 8
MAX_NAME = 100
MAX_CELLS = 2**22
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
MAX_ARRAYS = 64
MAX_TEXT_BYTES = 400  # of one text: 100 characters
_IMAGES, _ENDINGS = ("PNG", "JPEG", "BMP"), (".png", ".jpg", ".jpeg", ".bmp")
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
}
_ALLOWED = "a CSV file, an npz file or a zip of image folders"


class BadLine(InvalidInput):
    """A line of a file with too few or too many values."""

    template = "{1}; {2}"


def parse_upload(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Candidate:
    """Parse the bytes of a CSV file, an npz file or a zip of image folders; file names are ignored.

    >>> parse_upload(b"a,b,kind\\n1,2,x\\n3,4,y\\n").names
    ('a', 'b', 'kind')

    Raises:
        InvalidInput: field ``file``, for files that are too large, damaged, dangerous, or of another type.
    """
    if len(data) > limits.max_bytes:
        found, most = size(len(data)), size(limits.max_bytes)
        if found == most:  # after rounding
            found, most = (f"{count:,} bytes" for count in (len(data), limits.max_bytes))
        raise InvalidInput("file", f"a file of {found}", f"at most {most}")
    if not data:
        raise InvalidInput("file", "an empty file", _ALLOWED)
    if not data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        for given, magic in _KNOWN.items():
            if data.startswith(magic):
                raise InvalidInput("file", given, _ALLOWED)
        return _read_csv(data, limits)
    archive = Archive(data, limits)
    if not archive.names:
        raise InvalidInput("file", "an empty archive", "an npz file or a zip of image folders")
    if any(name.endswith(".npy") for name in archive.names):
        return _read_npz(archive, limits)
    if 2 * sum(name.lower().endswith(_ENDINGS) for name in archive.names) > len(archive.names):
        return _read_folders(archive, limits)
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


def _read_folders(archive: Archive, limits: Limits) -> ImageFolders:
    """Return the sizes and modes in the headers of all images; a folder is a class."""
    found: list[ImageEntry] = []
    pixels = 0
    for name in archive.names:
        folder = posixpath.basename(posixpath.dirname(name))
        if not name.lower().endswith(_ENDINGS):
            raise InvalidInput("file", name, "images only: " + ", ".join(_ENDINGS))
        if not folder:
            raise InvalidInput(
                "file", f"{name}, outside of all folders", "one folder of images for each class"
            )
        with _opened(archive, name, limits) as image:
            found.append(ImageEntry(name, folder, image.width, image.height, image.mode))
            pixels += image.width * image.height
        check_at_most("file", pixels, limits.max_all_pixels, "pixels in all images together")
    return ImageFolders(archive.data, tuple(found))


def read_pixels(
    archive: Archive, name: str, side: int, gray: bool, limits: Limits
) -> NDArray[np.uint8]:
    """Return pixels (height, width, 1 or 3) of one image, averaged to ``side`` × ``side`` unless 0."""
    from PIL import Image

    with _opened(archive, name, limits) as image:
        try:
            converted = image.convert("L" if gray else "RGB")
            if side:
                converted = converted.resize((side, side), Image.Resampling.BOX)
            pixels = np.asarray(converted, np.uint8)
        except Exception:
            raise _broken(name) from None
    return pixels[..., None] if gray else pixels


def _opened(archive: Archive, name: str, limits: Limits) -> Image:
    check_installed("cli", "Reading images", "PIL")
    from PIL import Image

    data = archive.read(name)
    try:
        image = Image.open(io.BytesIO(data), formats=_IMAGES)
    except Exception:
        raise _broken(name) from None
    if image.width * image.height > limits.max_pixels:
        given = f"{name}, {image.width:,} × {image.height:,} pixels"
        raise InvalidInput("file", given, f"at most {limits.max_pixels:,} pixels per image")
    return image


def _broken(name: str) -> InvalidInput:
    return InvalidInput(
        "file", f"{name}, which cannot be read as an image", "images in PNG, JPEG or BMP"
    )


def _read_csv(data: bytes, limits: Limits) -> Table:
    """Parse a CSV file in UTF-8 or UTF-16 with one header row; infer the delimiter."""
    check_installed("cli", "Reading a CSV file", "pandas")
    import pandas as pd  # slow import

    text = _text(data)
    delimiter = _delimiter(text)
    names, rows, lines = _rows(text, delimiter, limits)
    cells = pd.DataFrame(rows, lines, list(names), dtype="str")
    columns = tuple(_column_of(name, cells[name].str.strip()) for name in names)
    preview = tuple(tuple(cell.strip()[:MAX_NAME] for cell in row) for row in rows[:NUM_PREVIEWED])
    return Table(columns, len(rows), preview)


def _text(data: bytes) -> str:
    if not data.strip():
        raise InvalidInput("file", "an empty file", "a table with a header row")
    try:
        text = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        given = f"byte {error.start + 1:,} (0x{data[error.start]:02x}), no UTF-8 text,"
        raise InvalidInput(
            "file", given, "a CSV file in UTF-8, an npz file or a zip of image folders"
        ) from None
    if "\0" in text:
        raise InvalidInput(
            "file", "a file of another kind", "a CSV file, an npz file or a zip of image folders"
        )
    return text


def _delimiter(text: str) -> str:
    """Return the delimiter that splits the header and the next lines into equally many parts, more than one."""
    lines = [line for _, line in zip(range(20), io.StringIO(text), strict=False) if line.strip()]
    counts = {sign: [line.count(sign) for line in lines] for sign in DELIMITERS}
    usable = {sign: found[0] for sign, found in counts.items() if found[0]}
    if not usable:
        raise InvalidInput(
            "file", "one column only", "columns separated by " + ", ".join(DELIMITERS.values())
        )
    # Equal counts first, then the most columns: decimal commas vary from row to row or are fewer.
    return max(usable, key=lambda sign: (len(set(counts[sign])) == 1, usable[sign]))


def _rows(
    text: str, delimiter: str, limits: Limits
) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Return column names, nonblank rows, and the first line of each row in the file."""
    names: tuple[str, ...] = ()
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            begins, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if not names:
                names = _header(row, limits)
                continue
            if len(row) != len(names):
                given = f"Line {begins:,} has {len(row)} {'value' if len(row) == 1 else 'values'}"
                raise BadLine("file", given, f"the header has {len(names)} columns")
            rows.append(row)
            lines.append(begins)
            check_at_most("file", len(rows), limits.max_rows, "rows")
            check_at_most("file", len(rows) * len(names), MAX_CELLS, "cells")
    except csv.Error as error:
        raise InvalidInput(
            "file", f"line {reader.line_num:,} ({error})", "rows of cells, quoted in pairs"
        ) from None
    if not rows:
        raise InvalidInput("file", "a header without rows", "at least one row for each class")
    return names, rows, lines


def _header(row: list[str], limits: Limits) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in row)
    check_at_most("file", len(names), limits.max_columns, "columns")
    if all(_is_number(name) or name.lower() in MISSING for name in names):
        raise InvalidInput(
            "file", "a first row of numbers", "a header, a first row with a name for each column"
        )
    for index, name in enumerate(names, start=1):
        if not name:
            raise InvalidInput(
                "file", f"column {index} without a name", "a header that names every column"
            )
        if len(name) > MAX_NAME:
            raise InvalidInput(
                "file", f"column {index}, {name[:20]}…", f"names of at most {MAX_NAME} characters"
            )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput(
            "file", f"column {name}, {count} times", "a header in which every name occurs once"
        )
    return names


def _column_of(name: str, cells: Any) -> Column:
    """Parse a column, indexed by lines: numbers if all values are numeric, else codes of texts."""
    import pandas as pd

    missing = cells.str.lower().isin(MISSING)
    first_missing = int(missing.idxmax()) if missing.any() else 0
    numbers, codes = np.zeros(0), np.zeros(0, np.int32)
    texts: tuple[str, ...] = ()
    try:
        numbers = cells.mask(missing, "nan").to_numpy(dtype=object).astype(np.float64)
    except ValueError:
        positions, found = pd.factorize(cells.str[:MAX_NAME].mask(missing), sort=True)
        codes, texts = positions.astype(np.int32), tuple(map(str, found))
        if len(texts) > MAX_DISTINCT_TEXTS:  # too many for classes: only missing values matter
            codes, texts = np.minimum(codes, 0), ()
    kind: ColumnKind = "number" if len(numbers) else "text" if texts else "varied text"
    example = cells.iloc[0][:MAX_NAME]
    return Column(name, kind, numbers, codes, texts, int(missing.sum()), first_missing, example)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
