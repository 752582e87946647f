"""One column of a table: which cells are numbers, which are missing, and which texts are classes.

A cell is a number only if it is written as one: an optional sign, digits without leading zeros, an
optional decimal point with digits, an optional exponent; ASCII only. So ``1_0``, ``01``, ``1,5``,
``1,000``, ``0x10`` and full-width digits are text.

A column is text if two of its texts would become one number: codes such as ``1e2`` and ``100``, or
numbers that float64 cannot represent, such as ``1e-400``. Zeros at the end of a fraction are the
exception: ``1``, ``1.0`` and ``1.00`` are the same measurement. Classes are always the texts as
written, so as classes ``1`` and ``1.0`` differ.

Beside a column with decimal commas, a column whose points all precede three digits is text, since
``1.034`` may be a thousand and thirty-four there.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data.uploads._candidate import MAX_DISTINCT_TEXTS, ColumnKind, FileColumn

# Words that stand for a missing value in a column of numbers. In a column of texts they are texts.
MISSING_WORDS = frozenset(
    {
        "na",
        "n/a",
        "n.a.",
        "#n/a",
        "<na>",
        "nan",
        "-nan",
        "null",
        "none",
        "?",
        "-",
        "--",
        ".",
        "missing",
    }
)
MISSING_TEXTS = MISSING_WORDS | {""}
TRUTH = {"true": 1.0, "false": 0.0}
# Float64 represents every whole number up to this one.
MAX_WHOLE = 2**53
MAX_EXAMPLE = 100
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>0|[1-9][0-9]*)(?:\.(?P<fraction>[0-9]*))?|\.(?P<only>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+))?"
)
# The same numbers without groups, which takes half of the time.
_PLAIN = re.compile(re.sub(r"\(\?P<[a-z]+>", "(?:", _NUMBER.pattern))
_OTHER_LINE = re.compile(rf"^(?!(?:{_PLAIN.pattern})$).*$", re.MULTILINE)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_ADVICE = (
    (r"[+-]?0[0-9]+(\.[0-9]*)?", "numbers without leading zeros; padded codes are text"),
    (r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", "numbers without thousands separators"),
    (r"[+-]?[0-9]*,[0-9]+", "numbers with a decimal point, not a decimal comma"),
    (r"[+-]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]*)?", "numbers without thousands separators"),
    (r"[0-9]+([_' \u00a0\u2009\u202f][0-9]+)+", "numbers without separators between digits"),
    (r"[+-]?0[xXoObB][0-9a-fA-F]+", "decimal numbers"),
    (r"[0-9]+[-/.][0-9]+[-/.][0-9]+.*", "numbers instead of dates, such as days since the first"),
    (r"[+-]?[0-9.]+ ?%", "numbers without percent signs"),
    (r"\u2212[0-9.]+", "numbers with the ASCII minus sign -"),
    (r"#[A-Z/0!?]+", "columns without errors of a spreadsheet"),
)
# A number of a table with decimal commas, and one whose points may separate thousands.
_WITH_COMMA = re.compile(r"[+-]?[0-9]*(\.[0-9]{3})*,[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+")


def is_number(text: str) -> bool:
    """Whether a cell is written as a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def is_numeric(text: str) -> bool:
    """Whether a cell is a number or written infinite."""
    return is_number(text) or _INFINITE.fullmatch(text) is not None


def is_missing(text: str) -> bool:
    """Whether a cell of a numeric column is missing: empty, or a word such as ``NA``."""
    return text.lower() in MISSING_TEXTS


def has_decimal_commas(column: FileColumn) -> bool:
    """Whether the first text of a column that is no number has a decimal comma."""
    return _WITH_COMMA.fullmatch(column.obstacle) is not None


def may_have_thousands(cells: Sequence[str]) -> bool:
    """Whether some cells contain a point, each of them before groups of three digits."""
    with_point = {cell.strip() for cell in cells if "." in cell and not is_missing(cell.strip())}
    return bool(with_point) and all(map(_GROUPED.fullmatch, with_point))


def clean_cell(raw: str) -> str:
    """Return a cell without spaces around it, in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", raw.strip())


def advice_for(text: str) -> str:
    """Return what to write instead of a text in a column of numbers; empty if unknown."""
    normal = unicodedata.normalize("NFKC", text)
    if normal != text and is_number(normal):
        return "numbers in ASCII digits"
    for pattern, advice in _ADVICE:
        if re.fullmatch(pattern, text):
            return advice
    return ""


def column_of(
    name: str, cells: Sequence[str], lines: Sequence[int], *, as_text: bool = False
) -> FileColumn:
    """Parse one column.

    A table may contain millions of different cells: columns of plain numbers take a faster way,
    and in all others each different text is examined once.

    Args:
        cells: as written in the file.
        lines: line of each cell in the file.
        as_text: whether its numbers are ambiguous.
    """
    plain = None if as_text else _plain_numbers(name, cells, lines)
    if plain is not None:
        return plain
    distinct, indices, merged = _distinct_texts(cells)
    position = {text: index for index, text in enumerate(distinct)}

    lowered = map(str.lower, distinct)
    missing = np.fromiter(map(MISSING_TEXTS.__contains__, lowered), bool, len(distinct))
    kind, values, pairs = _kind_of(distinct, missing)
    if as_text:
        kind = "text"
    numbers = np.zeros(0)
    if kind in ("number", "true/false"):
        numbers = values[indices]

    has_too_many_texts = len(distinct) - ("" in position) > MAX_DISTINCT_TEXTS
    texts: list[str] = []
    codes = np.zeros(0, np.int32)
    if not has_too_many_texts:
        texts = sorted(filter(None, distinct))
        if kind == "number":
            texts.sort(key=_order)  # equal numbers stay in the order of their texts
        code_of = {text: code for code, text in enumerate(texts)}
        codes = np.array([code_of.get(text, -1) for text in distinct], np.int32)[indices]
    elif kind == "text":
        kind = "varied text"

    is_gap = missing
    if kind not in ("number", "true/false"):
        is_gap = np.array([text == "" for text in distinct], bool)  # of texts, only empty cells
    gaps = is_gap[indices]
    first_missing = lines[int(gaps.argmax())] if gaps.any() else 0
    counts = Counter(distinct[index] for index in indices[gaps].tolist())
    obstacle = _obstacle(distinct, kind)
    first = int((indices == position[obstacle]).argmax()) if obstacle else 0
    valued = (text for text in distinct if not is_missing(text))
    example = next(valued, next(filter(None, distinct), ""))
    return FileColumn(
        name,
        kind,
        numbers,
        codes,
        tuple(texts),
        int(gaps.sum()),
        first_missing,
        example[:MAX_EXAMPLE],
        missing=dict(counts),
        num_empty=int((indices == position.get("", -1)).sum()),
        obstacle=obstacle[:MAX_EXAMPLE],
        obstacle_line=lines[first] if obstacle else 0,
        clash=pairs.clash,
        merged=merged,
        equal=pairs.equal if kind == "number" else (),
    )


def _distinct_texts(
    cells: Sequence[str],
) -> tuple[list[str], NDArray[np.int64], tuple[str, ...]]:
    """Return (the different texts of cells, position of each cell's text, merged cells).

    Texts are cleaned. Merged cells are two different ones with one text, if there are any.
    """
    raws = list(dict.fromkeys(cells))
    cleaned = list(map(str.strip, raws))
    if not all(map(str.isascii, raws)):
        cleaned = list(map(clean_cell, raws))
    distinct = list(dict.fromkeys(cleaned))
    position = {text: index for index, text in enumerate(distinct)}
    index_of_raw = dict(zip(raws, map(position.__getitem__, cleaned), strict=True))
    indices = np.fromiter(map(index_of_raw.__getitem__, cells), np.int64, len(cells))
    merged = _merged(raws, cleaned) if len(distinct) < len(raws) else ()
    return distinct, indices, merged


def _plain_numbers(name: str, cells: Sequence[str], lines: Sequence[int]) -> FileColumn | None:
    """Return a column of many different numbers; None for columns that need a closer look.

    One search over the joined cells replaces a match for each cell.
    """
    if len(cells) <= MAX_DISTINCT_TEXTS:
        return None
    text = "\n".join(cells)
    has_breaks = text.count("\n") >= len(cells)
    other = _OTHER_LINE.search(text)
    if has_breaks or (other and not is_missing(other[0])):
        return None
    if other is None:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    else:
        words = set(_OTHER_LINE.findall(text))
        if not all(map(is_missing, words)):
            return None
        values = (np.nan if cell in words else float(cell) for cell in cells)
        numbers = np.fromiter(values, np.float64, len(cells))

    gaps = np.isnan(numbers)
    different, group, sizes = np.unique(numbers[~gaps], return_inverse=True, return_counts=True)
    # Texts are at least as many as values.
    if len(different) <= MAX_DISTINCT_TEXTS or np.abs(different).max() >= MAX_WHOLE:
        return None
    zeros = {cells[index] for index in np.flatnonzero(numbers == 0).tolist()}
    if any(map(_vanishes, zeros)):
        return None
    repeated = np.flatnonzero(~gaps)[sizes[group] > 1]
    texts = list(dict.fromkeys(cells[index] for index in repeated.tolist()))
    pairs = _pairs(texts, np.array(list(map(float, texts))))
    if pairs.clash:
        return None
    missing = Counter(cells[index] for index in np.flatnonzero(gaps).tolist())
    return FileColumn(
        name,
        "number",
        numbers,
        codes=np.zeros(0, np.int32),
        texts=(),
        num_missing=int(gaps.sum()),
        first_missing=lines[int(gaps.argmax())] if gaps.any() else 0,
        example=next(cell for cell in cells if not is_missing(cell))[:MAX_EXAMPLE],
        missing=dict(missing),
        num_empty=missing[""],
        equal=pairs.equal,
    )


@dataclass(frozen=True)
class _Pairs:
    """Texts of numbers that are one number.

    Attributes:
        clash: two texts in different notations, or one number that float64 cannot represent.
        equal: two texts that differ by zeros at the end of a fraction, or a clash.
    """

    clash: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()


def _kind_of(
    distinct: Sequence[str], missing: NDArray[np.bool_]
) -> tuple[ColumnKind, NDArray[np.float64], _Pairs]:
    """Return the kind of a column, the values of its texts, and texts of one number.

    Args:
        distinct: the different texts.
        missing: which of them stand for a missing value in a column of numbers.
    """
    none = np.zeros(0)
    if not any(distinct):
        return "empty", none, _Pairs()
    present = np.flatnonzero(~missing)
    if not present.size:
        return "text", none, _Pairs()  # words such as None only
    valued = [distinct[index] for index in present.tolist()]
    values = np.full(len(distinct), np.nan)
    if len(valued) <= len(TRUTH) and TRUTH.keys() >= {text.lower() for text in valued}:
        if len({text.lower() for text in valued}) < len(valued):
            return "text", none, _Pairs()  # such as True beside TRUE
        values[present] = [TRUTH[text.lower()] for text in valued]
        return "true/false", values, _Pairs()
    if not all(map(_PLAIN.fullmatch, valued)) and not all(map(is_numeric, valued)):
        return "text", none, _Pairs()
    values[present] = list(map(float, valued))
    pairs = _pairs(valued, values[present])
    if pairs.clash:
        return "text", none, pairs
    return "number", values, pairs


def _order(text: str) -> tuple[bool, float, str]:
    """Sort numbers by value, and words such as ``NA`` after them."""
    if is_missing(text):
        return True, 0.0, text
    return False, float(text), text


def _decimal(text: str) -> tuple[object, ...]:
    """Return what is left of a number's text without zeros at the end of its fraction."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return (text,)
    fraction = (match["fraction"] or match["only"] or "").rstrip("0")
    whole = match["whole"] or "0"
    exponent = int(match["exponent"]) if match["exponent"] else 0
    if whole == "0" and not fraction:
        return ("", "0", "", 0)  # of -0.0 and 0e+00 too
    return match["sign"], whole, fraction, exponent


def _vanishes(text: str) -> bool:
    """Whether a number is so small that float64 represents it as 0."""
    digits = re.split("[eE]", text)[0]
    return re.search("[1-9]", digits) is not None


def _pairs(texts: Sequence[str], values: NDArray[np.float64]) -> _Pairs:
    """Return texts whose numbers are one; ``values`` are the numbers of the texts."""
    # A whole number beyond 2^53 may round to 2^53 itself.
    for index in np.flatnonzero(np.abs(values) >= MAX_WHOLE).tolist():
        text = texts[index]
        if _WHOLE.fullmatch(text) and abs(int(text[:400])) > MAX_WHOLE:
            return _Pairs((text[:MAX_EXAMPLE],))
    for index in np.flatnonzero(values == 0).tolist():
        if _vanishes(texts[index]):
            return _Pairs((texts[index][:MAX_EXAMPLE],))
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    shared = np.flatnonzero((sizes[group] > 1) & np.isfinite(values))
    equal: tuple[str, ...] = ()
    first_of: dict[float, str] = {}
    decimals: dict[float, tuple[object, ...]] = {}
    for index in shared.tolist():
        text = texts[index]
        value = float(values[index])
        first = first_of.setdefault(value, text)
        if first is text:
            decimals[value] = _decimal(text)
            continue
        pair = (first[:MAX_EXAMPLE], text[:MAX_EXAMPLE])
        equal = equal or pair
        if decimals[value] != _decimal(text):
            return _Pairs(pair, equal)
    return _Pairs((), equal)


def _obstacle(distinct: Sequence[str], kind: ColumnKind) -> str:
    """Return the first text that is no number, in a column of texts."""
    if kind not in ("text", "varied text"):
        return ""
    for text in distinct:
        if not is_missing(text) and not is_numeric(text):
            return text
    # Numbers that would change: the first of them, and no word such as NA before it.
    valued = (text for text in distinct if not is_missing(text))
    return next(valued, next(filter(None, distinct), ""))


def _merged(raws: Sequence[str], cleaned: Sequence[str]) -> tuple[str, ...]:
    """Return two different cells of the file that are one text here; nothing if there are none."""
    first: dict[str, str] = {}
    for raw, text in zip(raws, cleaned, strict=True):
        other = first.setdefault(text, raw)
        if other != raw and text:
            return other[:MAX_EXAMPLE], raw[:MAX_EXAMPLE]
    return ()
