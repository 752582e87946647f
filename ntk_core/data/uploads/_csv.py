"""CSV text from outside as columns with types; two passes, so that memory is that of the numbers."""

import csv
import io
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ntk_core.data.uploads._candidate import MAX_DISTINCT_TEXTS, Column, ColumnKind, Table
from ntk_core.data.uploads._limits import Limits, check_at_most
from ntk_core.errors import InvalidInput

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "missing"})
NUM_PREVIEWED = 8
MAX_NAME = 100
MAX_CELLS = 2**22
_CHUNK = 2000
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_csv(data: bytes, limits: Limits) -> Table:
    """The table of a CSV file: delimiter found by itself, one header row, UTF-8.

    Raises:
        InvalidInput: empty, not text, no header, names that are missing or occur twice, rows of other lengths, or more
            rows, columns or cells than allowed.
    """
    text = _text(data)
    delimiter = _delimiter(text)
    names = _header(text, delimiter, limits)
    kinds = _kinds(text, delimiter, names, limits)
    return _table(text, delimiter, names, kinds)


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
    """The one that splits the header and the next lines into equally many parts, more than one."""
    lines = [line for _, line in zip(range(20), io.StringIO(text), strict=False) if line.strip()]
    counts = {sign: [line.count(sign) for line in lines] for sign in DELIMITERS}
    usable = {sign: found[0] for sign, found in counts.items() if found[0]}
    if not usable:
        given = "one column only"
        raise InvalidInput("file", given, "columns separated by " + ", ".join(DELIMITERS.values()))
    # Equal counts first, then the most columns: decimal commas vary from row to row or are fewer.
    return max(usable, key=lambda sign: (len(set(counts[sign])) == 1, usable[sign]))


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row and any(cell.strip() for cell in row):
                yield row
    except csv.Error as error:
        raise InvalidInput("file", f"line {reader.line_num:,} ({error})", "rows of cells, quoted in pairs") from None


def _header(text: str, delimiter: str, limits: Limits) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in next(_rows(text, delimiter), []))
    check_at_most("file", len(names), limits.max_columns, "columns")
    if all(_is_number(name) or name.lower() in MISSING for name in names):
        raise InvalidInput("file", "a first row of numbers", "a header, a first row with a name for each column")
    for index, name in enumerate(names):
        if not name:
            raise InvalidInput("file", f"column {index + 1} without a name", "a header that names every column")
        if len(name) > MAX_NAME:
            raise InvalidInput("file", f"column {index + 1}, {name[:20]}…", f"names of at most {MAX_NAME} characters")
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidInput("file", f"column {name}, {count} times", "a header in which every name occurs once")
    return names


def _kinds(text: str, delimiter: str, names: tuple[str, ...], limits: Limits) -> list[ColumnKind]:
    """The kind of each column, by all its rows; row lengths and counts are checked on the way."""
    numeric = [True] * len(names)
    texts: list[set[str]] = [set() for _ in names]
    num_rows = 0
    for row in _body(text, delimiter, names):
        num_rows += 1
        check_at_most("file", num_rows, limits.max_rows, "rows")
        check_at_most("file", num_rows * len(names), MAX_CELLS, "cells")
        for index, cell in enumerate(row):
            if numeric[index] and not _is_number(cell) and cell.strip().lower() not in MISSING:
                numeric[index] = False
            if len(texts[index]) <= MAX_DISTINCT_TEXTS:
                texts[index].add(cell.strip()[:MAX_NAME])
    if num_rows == 0:
        raise InvalidInput("file", "a header without rows", "at least one row for each class")
    return [
        "number" if is_number else "text" if len(found) <= MAX_DISTINCT_TEXTS else "varied text"
        for is_number, found in zip(numeric, texts, strict=True)
    ]


def _body(text: str, delimiter: str, names: tuple[str, ...]) -> Iterator[list[str]]:
    rows = _rows(text, delimiter)
    next(rows)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            given = f"row {number:,} with {len(row)} cells"
            raise InvalidInput("file", given, f"{len(names)} cells in every row, as in the header")
        yield row


def _table(text: str, delimiter: str, names: tuple[str, ...], kinds: list[ColumnKind]) -> Table:
    chunks: list[list[NDArray]] = [[] for _ in names]
    codes: list[dict[str, int]] = [{} for _ in names]
    preview: list[tuple[str, ...]] = []
    for rows in _chunks(_body(text, delimiter, names)):
        if not preview:
            preview = [tuple(cell.strip()[:MAX_NAME] for cell in row) for row in rows[:NUM_PREVIEWED]]
        for index, kind in enumerate(kinds):
            cells = [row[index].strip() for row in rows]
            if kind == "number":
                chunks[index].append(np.asarray([_number(cell) for cell in cells]))
            else:
                known = codes[index] if kind == "text" else {"": 0}
                chunks[index].append(np.asarray([_code(cell, known) for cell in cells], np.int32))
    columns = [
        _column(name, kind, np.concatenate(parts), known, preview[0][index])
        for index, (name, kind, parts, known) in enumerate(zip(names, kinds, chunks, codes, strict=True))
    ]
    return Table(tuple(columns), len(columns[0].numbers) or len(columns[0].codes), tuple(preview), delimiter)


def _column(name: str, kind: ColumnKind, values: NDArray, known: dict[str, int], example: str) -> Column:
    is_missing = np.isnan(values) if kind == "number" else values < 0
    texts = tuple(sorted(known)) if kind == "text" else ()
    if kind == "text":  # in the order of their names
        positions = np.asarray([texts.index(text) for text in known] + [-1], np.int32)
        values = positions[values]
    missing = np.flatnonzero(is_missing)
    return Column(
        name=name,
        kind=kind,
        numbers=values if kind == "number" else np.zeros(0),
        codes=np.zeros(0, np.int32) if kind == "number" else values,
        texts=texts,
        num_missing=len(missing),
        first_missing=int(missing[0]) + 1 if len(missing) else 0,
        example=example,
    )


def _chunks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    chunk: list[list[str]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _code(cell: str, known: dict[str, int]) -> int:
    if cell.lower() in MISSING:
        return -1
    if len(known) == 1 and "" in known:  # varied text: only whether it is there matters
        return 0
    return known.setdefault(cell[:MAX_NAME], len(known))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float:
    return float("nan") if cell.lower() in MISSING else float(cell)
