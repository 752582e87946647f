"""CSV files: encoding, delimiter and header, each decided by what the file contains."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from linearity_lab.data.uploads._archive import Limits, check_at_most
from linearity_lab.data.uploads._candidate import HeaderRule, Table
from linearity_lab.data.uploads._cells import (
    clean_cell,
    column_of,
    has_decimal_commas,
    is_missing,
    is_numeric,
    may_have_thousands,
)
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
NUM_PREVIEWED = 8
MAX_NAME = 100
MAX_CELLS = 2**22
# Rows that the first one is compared with, and rows and letters that a delimiter is chosen by.
_COMPARED = 1000
_SAMPLED_ROWS = 20
_SAMPLED_LETTERS = 2**20
_ALLOWED = "a CSV file, an npz file or a zip of image folders"
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_OTHER_TEXTS = (
    (r"<(!doctype|html|head|body|table|script|svg|!--)", "a web page (HTML)"),
    (r"<\?xml", "an XML file"),
    (r"<(?!na>)/?[a-z][a-z0-9]*(\s[^<>]*)?/?>", "a web page (HTML)"),
    (r'\{\s*("|\}|$)', "a JSON file"),
    (r'\[\s*(["\[{\]]|-?[0-9]+\s*(,|$))', "a JSON file"),
    (r"@relation\b", "an ARFF file"),
    (r"version https://git-lfs", "a pointer of Git LFS, without the data,"),
)


class BadLine(InvalidInput):
    """A line of a file with too few or too many values."""

    template = "{1}; {2}"


def read_csv(data: bytes, limits: Limits, header: bool | None = None) -> Table:
    """Parse a CSV file in UTF-8 or UTF-16; infer the delimiter.

    Args:
        header: whether the first row names the columns; None to compare it with the rows below.
    """
    text = _text(data)
    _check_is_table(text)
    delimiter, num_skipped = _delimiter(text)
    rows, lines = _rows(text, delimiter, num_skipped, limits, header)
    has_header, rule = header_of(rows, header)
    if has_header:
        names = _names(rows[0], limits)
        rows = rows[1:]
        lines = lines[1:]
        if not rows:
            raise InvalidInput("file", "a header without rows", "at least one row for each class")
    else:
        names = tuple(f"column {index}" for index in range(1, len(rows[0]) + 1))
    check_at_most("file", len(rows), limits.max_rows, "rows")
    columns = []
    cells_of = list(zip(*rows, strict=True))
    for name, cells in zip(names, cells_of, strict=True):
        columns.append(column_of(name, cells, lines))
    if any(map(has_decimal_commas, columns)):
        for index, cells in enumerate(cells_of):
            if columns[index].kind == "number" and may_have_thousands(cells):
                columns[index] = column_of(names[index], cells, lines, as_text=True)
    preview = []
    for row in rows[:NUM_PREVIEWED]:
        preview.append(tuple(clean_cell(cell)[:MAX_NAME] for cell in row))
    return Table(tuple(columns), len(rows), tuple(preview), rule, DELIMITERS[delimiter])


def _text(data: bytes) -> str:
    if not data.strip():
        raise InvalidInput("file", "an empty file", "a table with a row per sample")
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise InvalidInput("file", "text in UTF-32", "a CSV file in UTF-8")
    encoding = "utf-8"
    for mark, its_encoding in _BOMS.items():
        if data.startswith(mark):
            encoding = its_encoding
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            given = f"byte {error.start + 1:,}, no UTF-16 text,"
        else:
            given = f"byte {error.start + 1:,} (0x{data[error.start]:02x}), no UTF-8 text,"
        raise InvalidInput(
            "file", given, "a CSV file in UTF-8, an npz file or a zip of image folders"
        ) from None
    if "\0" in text:
        if len(data) >= 8 and data[:40].count(0) * 3 >= len(data[:40]):
            given = "text in UTF-16 without its byte order mark"
            raise InvalidInput("file", given, "a CSV file in UTF-8")
        raise InvalidInput("file", "a file of another kind", _ALLOWED)
    return text.lstrip("\ufeff")  # a mark may be there twice, and names would begin with it


def _check_is_table(text: str) -> None:
    """Refuse text of another format by its name."""
    start = text[:1000].lstrip("\ufeff \t\r\n")
    for pattern, given in _OTHER_TEXTS:
        if re.match(pattern, start.lower(), re.MULTILINE):
            raise InvalidInput("file", given, f"a table, in {_ALLOWED}")


def _reader(text: str, delimiter: str) -> "CsvReader":
    stream = io.StringIO(text, newline="")
    return csv.reader(stream, delimiter=delimiter, strict=True, skipinitialspace=True)


def _is_blank(row: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in row)


def _sampled_widths(text: str, delimiter: str) -> list[int]:
    """Return the numbers of cells of the first rows; fewer rows where quotes are wrong."""
    widths = []
    reader = _reader(text[:_SAMPLED_LETTERS], delimiter)
    try:
        for row in islice(reader, _SAMPLED_ROWS):
            if not _is_blank(row):
                widths.append(len(row))
    except csv.Error:
        pass
    if len(text) > _SAMPLED_LETTERS and len(widths) > 1:
        widths.pop()  # the last row may be cut
    return widths


def _delimiter(text: str) -> tuple[str, int]:
    """Return the delimiter, and the number of rows before the table: one for ``sep=;``, else 0.

    It splits the first rows into equally many cells, more than one.
    """
    if declared := re.match(r'"?sep=(.)"?[ \t]*(\r\n|\r|\n|\Z)', text, re.IGNORECASE):
        if declared[1] not in DELIMITERS:
            words = ", ".join(DELIMITERS.values())
            raise InvalidInput(
                "file", f"the line sep={declared[1]}", f"columns separated by {words}"
            )
        return declared[1], 1
    scores = {}
    splits_below = False
    for delimiter in DELIMITERS:
        widths = _sampled_widths(text, delimiter)
        if widths and widths[0] > 1:
            # Equal widths first, then the most columns: decimal commas vary from row to row.
            scores[delimiter] = (len(set(widths)) == 1, widths[0])
        splits_below |= len(widths) > 2 and set(widths[1:]) != {1} and len(set(widths[1:])) == 1
    if scores:
        return max(scores, key=scores.__getitem__), 0
    if splits_below:
        given = "a first line without columns"
        raise InvalidInput("file", given, "a table that begins in the first line")
    first = text.strip().splitlines()[0]
    given = "one column only"
    if len(first.split()) > 1:
        given = "columns separated by spaces, or one column only"
    words = ", ".join(DELIMITERS.values())
    raise InvalidInput("file", given, f"columns separated by {words}")


def _rows(
    text: str, delimiter: str, num_skipped: int, limits: Limits, header: bool | None
) -> tuple[list[list[str]], list[int]]:
    """Return nonblank rows, all of one width, and the first line of each in the file."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = _reader(text, delimiter)
    line = 1
    try:
        for index, row in enumerate(reader):
            begins = line
            line = reader.line_num + 1
            if index < num_skipped or _is_blank(row):
                continue
            if rows and len(row) != len(rows[0]):
                what = "header" if _is_header(rows, header) else "first row"
                given = f"Line {begins:,} has {len(row)} {'value' if len(row) == 1 else 'values'}"
                raise BadLine("file", given, f"the {what} has {len(rows[0])} columns")
            rows.append(row)
            lines.append(begins)
            check_at_most("file", len(row), limits.max_columns, "columns")
            # One row more than allowed, which may be the header.
            check_at_most("file", len(rows) - 1, limits.max_rows, "rows")
            check_at_most("file", (len(rows) - 1) * len(row), MAX_CELLS, "cells")
    except csv.Error as error:
        raise InvalidInput(
            "file", f"line {reader.line_num:,} ({error})", "rows of cells, quoted in pairs"
        ) from None
    if not rows:
        raise InvalidInput("file", "an empty file", "a table with a row per sample")
    return rows, lines


def _is_header(rows: Sequence[Sequence[str]], header: bool | None) -> bool:
    try:
        return header_of(rows, header)[0]
    except InvalidInput:
        return False


def header_of(rows: Sequence[Sequence[str]], header: bool | None = None) -> tuple[bool, HeaderRule]:
    """Return whether the first row names the columns, and by which rule.

    A row whose cells are of the same kinds as the columns below is a sample; a text above numbers
    is a name. Where both are possible, the choice is refused and left to the user: numbers that
    count, or a new text above classes, such as ``400.5, 410.5, kind``.

    Raises:
        InvalidInput: field ``header``, if the first row can be either.
    """
    if header is not None:
        return header, HeaderRule.CHOSEN
    top = [clean_cell(cell) for cell in rows[0]]
    below = rows[1:_COMPARED]
    has_other = any(cell and not is_numeric(cell) for cell in top)
    if not below:
        if not any(is_numeric(cell) for cell in top):
            return True, HeaderRule.TEXTS
        raise InvalidInput("file", "one row only", "at least two samples of each class")
    above_numbers = []  # cells of the first row above columns of numbers
    recurs = False
    is_new = False
    for index, cell in enumerate(top):
        cells = [clean_cell(row[index]) for row in below]
        valued = [each for each in cells if not is_missing(each)]
        recurs |= bool(cell) and cell in cells
        if valued and 2 * sum(map(is_numeric, valued)) > len(valued):
            above_numbers.append(cell)
        elif cell and not is_numeric(cell):
            is_new |= cell not in cells and _all_recur(cells)
    names = [cell for cell in above_numbers if not is_missing(cell) and not is_numeric(cell)]
    values = [cell for cell in above_numbers if is_numeric(cell)]
    if not above_numbers:
        repeated = len(set(top)) < len(top)
        is_sample = recurs or repeated or not all(top)
        return (False, HeaderRule.SAME_KINDS) if is_sample else (True, HeaderRule.TEXTS)
    if names and not values:
        return True, HeaderRule.NAMES
    if not names and not values:  # empty or NA above every number
        return (False, HeaderRule.SAME_KINDS) if recurs or not has_other else _refuse_either(top)
    if names and all(re.fullmatch("[0-9]+", value) for value in values):
        if len(set(top)) == len(top):  # such as id, 2019, 2020
            return True, HeaderRule.NAMES
        return _refuse_either(top)
    if names or is_new or _are_counted(values):
        return _refuse_either(top)
    return False, HeaderRule.SAME_KINDS


def _refuse_either(top: Sequence[str]) -> tuple[bool, HeaderRule]:
    given = f"a first row ({', '.join(top[:4])}{', …' if len(top) > 4 else ''})"
    raise InvalidInput("header", given, "the choice whether it names the columns or is a sample")


def _all_recur(cells: Sequence[str]) -> bool:
    """Whether each text of a column occurs twice or more, as classes do."""
    return min(Counter(filter(None, cells)).values(), default=0) > 1


def _are_counted(values: Sequence[str]) -> bool:
    """Whether these are whole numbers in equal steps, as indices and years above columns are."""
    if len(values) < 2 or not all(re.fullmatch("[0-9]{1,9}", value) for value in values):
        return False
    numbers = [int(value) for value in values]
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) > 1 or min(steps) < 1:
        return False
    return len(numbers) > 2 or steps == {1}


def _names(row: Sequence[str], limits: Limits) -> tuple[str, ...]:
    names = tuple(clean_cell(cell) for cell in row)
    check_at_most("file", len(names), limits.max_columns, "columns")
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
