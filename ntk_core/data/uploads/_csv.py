"""CSV text from outside as a table of typed columns."""

import csv
import io
from collections import Counter
from typing import Any

import numpy as np

from ntk_core.data.uploads._archive import Limits, check_at_most
from ntk_core.data.uploads._candidate import MAX_DISTINCT_TEXTS, Column, ColumnKind, Table
from ntk_core.environment import check_installed
from ntk_core.errors import InvalidInput

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", "missing")
NUM_PREVIEWED = 8
MAX_NAME = 100
MAX_CELLS = 2**22
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class BadLine(InvalidInput):
    """A line of a file with too few or too many values."""

    template = "{1}; {2}"


def read_csv(data: bytes, limits: Limits) -> Table:
    """The table of a CSV file in UTF-8 or UTF-16 with one header row; the delimiter is inferred."""
    check_installed("cli", "Reading a CSV file", "pandas")
    import pandas as pd  # takes longer to import than most files to parse

    text = _text(data)
    delimiter = _delimiter(text)
    names, rows, lines = _rows(text, delimiter, limits)
    cells = pd.DataFrame(rows, columns=list(names), dtype="str")
    columns = tuple(_column(name, cells[name].str.strip(), lines) for name in names)
    preview = tuple(tuple(cell.strip()[:MAX_NAME] for cell in row) for row in rows[:NUM_PREVIEWED])
    return Table(columns, len(rows), preview, delimiter)


def _text(data: bytes) -> str:
    if not data.strip():
        raise InvalidInput("file", "an empty file", "a table with a header row")
    try:
        text = data.decode("utf-16" if data[:2] in _UTF16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        given = f"byte {error.start + 1:,} (0x{data[error.start]:02x}), no UTF-8 text,"
        raise InvalidInput("file", given, "a CSV file in UTF-8, an npz file or a zip of image folders") from None
    if "\0" in text:
        raise InvalidInput("file", "a file of another kind", "a CSV file, an npz file or a zip of image folders")
    return text


def _delimiter(text: str) -> str:
    """The sign that splits the header and the next lines into equally many parts, more than one."""
    lines = [line for _, line in zip(range(20), io.StringIO(text), strict=False) if line.strip()]
    counts = {sign: [line.count(sign) for line in lines] for sign in DELIMITERS}
    usable = {sign: found[0] for sign, found in counts.items() if found[0]}
    if not usable:
        raise InvalidInput("file", "one column only", "columns separated by " + ", ".join(DELIMITERS.values()))
    # Equal counts first, then the most columns: decimal commas vary from row to row or are fewer.
    return max(usable, key=lambda sign: (len(set(counts[sign])) == 1, usable[sign]))


def _rows(text: str, delimiter: str, limits: Limits) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Names of the columns, rows of cells without blank ones, and the line of the file on which each row begins."""
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
        raise InvalidInput("file", f"line {reader.line_num:,} ({error})", "rows of cells, quoted in pairs") from None
    if not rows:
        raise InvalidInput("file", "a header without rows", "at least one row for each class")
    return names, rows, lines


def _header(row: list[str], limits: Limits) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in row)
    check_at_most("file", len(names), limits.max_columns, "columns")
    if all(_is_number(name) or name.lower() in MISSING for name in names):
        raise InvalidInput("file", "a first row of numbers", "a header, a first row with a name for each column")
    for index, name in enumerate(names, start=1):
        if not name:
            raise InvalidInput("file", f"column {index} without a name", "a header that names every column")
        if len(name) > MAX_NAME:
            raise InvalidInput("file", f"column {index}, {name[:20]}…", f"names of at most {MAX_NAME} characters")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InvalidInput("file", f"column {name}, {count} times", "a header in which every name occurs once")
    return names


def _column(name: str, cells: Any, lines: list[int]) -> Column:
    """A column as numbers if all its values are, else as codes of its texts."""
    import pandas as pd

    missing = cells.str.lower().isin(MISSING).to_numpy()
    first_missing = lines[int(missing.argmax())] if missing.any() else 0
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
