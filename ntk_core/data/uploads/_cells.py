"""One column of a table: which cells are numbers, which are missing, and which texts are classes.

A cell is a number only if it is written as one: an optional sign, digits without leading zeros, an
optional decimal point with digits, an optional exponent; ASCII only. So ``1_0``, ``01``, ``1,5``,
``1,000``, ``0x10`` and full-width digits are text.

A column is text if two of its texts would become one number: codes such as ``1e2`` and ``100``, or
whole numbers that float64 cannot represent. Zeros at the end of a fraction are the exception:
``1``, ``1.0`` and ``1.00`` are the same measurement. Classes are always the texts as written, so as
classes ``1`` and ``1.0`` differ.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ntk_core.data.uploads._candidate import MAX_DISTINCT_TEXTS, Column, ColumnKind

# Words that stand for a missing value in a column of numbers. In a column of texts they are texts.
MISSING_WORDS = frozenset(
    {
        "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "-nan", "null", "none",
        "?", "-", "--", ".", "missing",
    }
)  # fmt: skip
TRUTH = {"true": 1.0, "false": 0.0}
# Float64 represents every whole number up to this one.
MAX_WHOLE = 2**53
MAX_EXAMPLE = 100
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>0|[1-9][0-9]*)(?:\.(?P<fraction>[0-9]*))?|\.(?P<only>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+))?"
)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_ADVICE = (
    (r"[+-]?0[0-9]+(\.[0-9]*)?", "numbers without leading zeros; padded codes are text"),
    (r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", "numbers without thousands separators"),
    (r"[+-]?[0-9]*,[0-9]+", "numbers with a decimal point, not a decimal comma"),
    (r"[0-9]+([_' \u00a0\u2009\u202f][0-9]+)+", "numbers without separators between digits"),
    (r"[+-]?0[xXoObB][0-9a-fA-F]+", "decimal numbers"),
    (r"[0-9]+[-/.][0-9]+[-/.][0-9]+.*", "numbers instead of dates, such as days since the first"),
    (r"[+-]?[0-9.]+ ?%", "numbers without percent signs"),
    (r"\u2212[0-9.]+", "numbers with the ASCII minus sign -"),
    (r"#[A-Z/0!?]+", "columns without errors of a spreadsheet"),
)


def is_number(text: str) -> bool:
    """Whether a cell is written as a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def is_numeric(text: str) -> bool:
    """Whether a cell is a number or written infinite."""
    return is_number(text) or _INFINITE.fullmatch(text) is not None


def is_missing(text: str) -> bool:
    """Whether a cell of a numeric column is missing: empty, or a word such as ``NA``."""
    return not text or text.lower() in MISSING_WORDS


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


def column_of(name: str, cells: Sequence[str], lines: Sequence[int]) -> Column:
    """Parse one column.

    Args:
        cells: as written in the file.
        lines: line of each cell in the file.
    """
    cleaned = {raw: clean_cell(raw) for raw in dict.fromkeys(cells)}
    position = {text: index for index, text in enumerate(dict.fromkeys(cleaned.values()))}
    distinct = list(position)
    index_of_raw = {raw: position[text] for raw, text in cleaned.items()}
    indices = np.array([index_of_raw[raw] for raw in cells], np.int64)  # (n,), into distinct

    kind, clash = _kind_of(distinct)
    numbers = np.zeros(0)
    if kind == "number":
        numbers = np.array([_value(text) for text in distinct])[indices]
    elif kind == "true/false":
        numbers = np.array([TRUTH.get(text.lower(), np.nan) for text in distinct])[indices]

    texts = sorted(filter(None, distinct))
    if kind == "number":
        texts.sort(key=_order)
    codes = np.zeros(0, np.int32)
    if len(texts) > MAX_DISTINCT_TEXTS:
        if kind == "text":
            kind = "varied text"
        texts = []
    else:
        code_of = {text: code for code, text in enumerate(texts)}
        codes = np.array([code_of.get(text, -1) for text in distinct], np.int32)[indices]

    has_numbers = kind in ("number", "true/false")
    is_gap = np.array([is_missing(text) if has_numbers else not text for text in distinct])
    gaps = is_gap[indices]
    first_missing = lines[int(gaps.argmax())] if gaps.any() else 0
    counts = Counter(distinct[index] for index in indices[gaps].tolist())
    obstacle = _obstacle(distinct, kind)
    first = indices.tolist().index(position[obstacle]) if obstacle else 0
    example = next(filter(None, distinct), "")
    return Column(
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
        clash=clash,
        merged=_merged(cleaned),
        equal=_equal_numbers(distinct) if kind == "number" else (),
    )


def _kind_of(distinct: Sequence[str]) -> tuple[ColumnKind, tuple[str, ...]]:
    """Return the kind of a column, and texts that keep it from being numbers though each is one."""
    present = [text for text in distinct if text]
    if not present:
        return "empty", ()
    valued = [text for text in present if not is_missing(text)]
    if not valued:
        return "text", ()  # words such as None only
    spellings = {text.lower() for text in valued}
    if spellings <= TRUTH.keys():
        return ("true/false", ()) if len(spellings) == len(valued) else ("text", ())
    if not all(is_numeric(text) for text in valued):
        return "text", ()
    clash = _clash(valued)
    return ("text", clash) if clash else ("number", ())


def _value(text: str) -> float:
    return np.nan if is_missing(text) else float(text)


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


def _clash(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts whose numbers would be one, or one whole number that float64 cannot represent."""
    for text in texts:
        if re.fullmatch(r"[+-]?[0-9]+", text) and abs(int(text[:400])) > MAX_WHOLE:
            return (text[:MAX_EXAMPLE],)
    finite = [text for text in texts if np.isfinite(float(text))]
    by_value: dict[float, str] = {}
    for text in finite:
        other = by_value.setdefault(float(text), text)
        if other is not text and _decimal(other) != _decimal(text):
            return other[:MAX_EXAMPLE], text[:MAX_EXAMPLE]
    return ()


def _equal_numbers(distinct: Sequence[str]) -> tuple[str, ...]:
    """Return two texts of the same number, such as 1 and 1.0; nothing if there are none."""
    by_value: dict[float, str] = {}
    for text in distinct:
        if is_missing(text) or not np.isfinite(float(text)):
            continue
        other = by_value.setdefault(float(text), text)
        if other is not text:
            return other[:MAX_EXAMPLE], text[:MAX_EXAMPLE]
    return ()


def _obstacle(distinct: Sequence[str], kind: ColumnKind) -> str:
    """Return the first text that is no number, in a column of texts."""
    if kind not in ("text", "varied text"):
        return ""
    for text in distinct:
        if not is_missing(text) and not is_numeric(text):
            return text
    return next(filter(None, distinct), "")


def _merged(cleaned: dict[str, str]) -> tuple[str, ...]:
    """Return two different cells of the file that are one text here; nothing if there are none."""
    first: dict[str, str] = {}
    for raw, text in cleaned.items():
        other = first.setdefault(text, raw)
        if other != raw and text:
            return other[:MAX_EXAMPLE], raw[:MAX_EXAMPLE]
    return ()
