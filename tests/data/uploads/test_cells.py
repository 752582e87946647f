"""Cells keep their meaning: numbers, missing values, classes, headers and formats of tables."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from linearity_lab.data.uploads import (
    Choices,
    HeaderRule,
    Table,
    clean_upload,
    described,
    parse_upload,
    suggested_choices,
)
from linearity_lab.data.uploads._cells import column_of
from ntk_core.errors import InvalidInput


def table(text: str, header: bool | None = None) -> Table:
    found = parse_upload(text.encode(), header=header)
    assert isinstance(found, Table)
    return found


def with_labels(*labels: str) -> str:
    """Twelve rows of two numbers, and these labels in turn."""
    rows = [f"{i * 0.5},{i * i},{labels[i % len(labels)]}" for i in range(12)]
    return "\n".join(["a,b,label", *rows])


def column(*cells: str):
    """Return the parsed first column; the second one contains letters."""
    rows = [f'"{cell}";{"uv"[i % 2]}' for i, cell in enumerate(cells)]
    return table("\n".join(["a;kind", *rows]), header=True).columns[0]


@pytest.mark.parametrize(
    "labels",
    [
        ("None", "Mild", "Severe"),
        ("EU", "NA", "AS"),
        ("-", "+"),
        ("?", "!"),
        ("nan", "inf"),
        ("1_0", "10", "1_2"),
        ("01", "1", "001"),
        ("1", "1.0"),
        ("1e2", "100"),
        ("0", "1", "None"),
        ("9007199254740993", "9007199254740992"),
        ("True", "False", "TRUE"),
        ("\uff11", "1"),
    ],
)
@pytest.mark.parametrize("drop", [False, True])
def test_every_text_of_the_target_is_a_class(labels, drop):
    candidate = table(with_labels(*labels))
    choices = replace(
        suggested_choices(candidate),
        target="label",
        task="classes",
        drop_missing=drop,
        features=("a", "b"),
    )
    found = clean_upload(candidate, choices)
    assert found.counts == dict.fromkeys(labels, 12 // len(labels))
    assert [found.class_names[label] for label in found.labels[: len(labels)]] == list(labels)


@pytest.mark.parametrize(
    "cells",
    [
        ("1", "-2.5", "+3", ".5", "4.", "1e-05", "2.50E+3"),
        ("1", "1.0", "1.00", "2"),
        ("0.0", "-0.0", "0", "3"),
        (" 5", "6 ", "7"),
    ],
)
def test_decimal_numbers_are_numbers(cells):
    found = column(*cells)
    assert found.kind == "number"
    np.testing.assert_array_equal(found.numbers, [float(cell) for cell in cells])


@pytest.mark.parametrize(
    "cell",
    [
        "1_0",
        "01",
        "-007",
        "1,5",
        "1,000",
        "0x10",
        "\uff11\uff12",
        "\u0661",
        "1 000",
        "12%",
        "2024-01-31",
        "31.01.2024",
        "1e",
        "e5",
        "--1",
        "1.2.3",
        "\u22121",
        "$5",
        "1f",
        "#DIV/0!",
        "9007199254740993",
    ],
)
def test_other_texts_are_no_numbers_and_are_named(cell):
    found = column("1", cell, "3", "4")
    assert found.kind == "text"
    rows = "\n".join(f'"{each}";{i};{"uv"[i % 2]}' for i, each in enumerate(["1", cell, "3", "4"]))
    candidate = table(f"a;b;kind\n{rows}", header=True)
    with pytest.raises(InvalidInput, match="features: a, ") as refused:
        clean_upload(candidate, Choices(("a",), "kind"))
    assert cell in refused.value.given


def test_numbers_in_two_notations_are_text():
    assert column("1e2", "100", "7").clash == ("1e2", "100")
    assert column("+1", "1", "7").kind == "text"
    assert column("1", "1.0", "7").equal == ("1", "1.0")


@pytest.mark.parametrize("cell", ["1e-400", "-.5e-330", "9.99E-99999"])
def test_numbers_that_float64_reads_as_0_are_text(cell):
    assert column("1", cell, "3").clash == (cell,)
    assert column(cell, *map(str, range(300))).clash == (cell,)  # the way of plain numbers
    assert column("0e-400", "0", "0.000").kind == "number"
    candidate = table(f"a;b;kind\n{cell};1;x\n2;2;y\n", header=True)
    with pytest.raises(InvalidInput, match="numbers from 5e-324 on, or 0"):
        clean_upload(candidate, Choices(("a",), "kind"))


def test_missing_values_of_a_feature_are_counted_by_their_text():
    found = column("1", "NA", "", "?", "NA", "3")
    assert (found.kind, found.num_missing, found.first_missing) == ("number", 4, 3)
    assert found.missing == {"NA": 2, "": 1, "?": 1}
    assert column("", "", "").kind == "empty"


def test_true_and_false_are_numbers_or_classes():
    rows = "\n".join(f"{i},{i % 3 == 0},{i % 2 == 0}" for i in range(12))
    candidate = table(f"a,smokes,ill\n{rows}")
    found = clean_upload(candidate, suggested_choices(candidate))
    np.testing.assert_array_equal(found.x[:, 1], [float(i % 3 == 0) for i in range(12)])
    assert found.counts == {"False": 6, "True": 6}


@pytest.mark.parametrize("labels", [("cat", "cat\u200b"), ("New York", "New\u00a0York")])
def test_classes_that_look_equal_are_refused(labels):
    candidate = table(with_labels(*labels))
    with pytest.raises(InvalidInput, match="which look equal"):
        clean_upload(candidate, suggested_choices(candidate))


def test_spaces_and_unicode_forms_are_one_class_and_reported():
    for labels in (("cat", "cat ", "dog"), ("\u00e4hre", "a\u0308hre", "tea")):
        candidate = table(with_labels(*labels))
        choices = suggested_choices(candidate)
        assert sorted(clean_upload(candidate, choices).counts.values()) == [4, 8]
        assert any("are one text" in sentence for sentence in described(candidate, choices))


def test_long_texts_with_one_beginning_are_not_merged():
    candidate = table(with_labels("x" * 150 + "1", "x" * 150 + "2"))
    with pytest.raises(InvalidInput, match="at most 100 characters"):
        clean_upload(candidate, suggested_choices(candidate))


FLOWERS = "5.1,3.5,setosa\n4.9,3.0,setosa\n6.0,2.9,virginica\n6.1,2.8,virginica\n"


@pytest.mark.parametrize(
    ("text", "rule", "num_rows"),
    [
        (FLOWERS, HeaderRule.SAME_KINDS, 4),
        ("sepal,petal,kind\n" + FLOWERS, HeaderRule.NAMES, 4),
        ("id,2019,2020\n1,2.5,3\n2,3.5,4\n", HeaderRule.NAMES, 2),
        ("0,0,0\n0,1,1\n1,0,1\n1,1,0\n", HeaderRule.SAME_KINDS, 4),
        ("NA,3.5,a\n4,3,a\n6,2,b\n5,2.5,b\n", HeaderRule.SAME_KINDS, 4),
        ("word,kind\nred,a\nblue,b\n", HeaderRule.TEXTS, 2),
        ("red,a\nblue,b\nred,b\n", HeaderRule.SAME_KINDS, 3),
    ],
)
def test_header_is_found_by_the_columns_below(text, rule, num_rows):
    found = table(text)
    assert (found.header, found.num_rows) == (rule, num_rows)


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n.5,1.5,0\n.7,2,1\n",
        "land,2019,2020\nA,1,2.5\nB,4,3\n",
        "x1,3.5,a\n4,3,a\n6,2,b\n",
        "400.5,410.5,kind\n.1,.2,a\n.3,.2,a\n",  # wavelengths, or a sample of a rare class
    ],
)
def test_undecided_header_is_left_to_the_user(text):
    with pytest.raises(InvalidInput) as refused:
        table(text)
    assert refused.value.field == "header"
    assert "--" not in str(refused.value)  # pages show it, too
    assert table(text, header=True).num_rows == 2
    assert table(text, header=False).num_rows == 3


def test_points_in_the_plane_are_classified_by_their_label():
    candidate = table("x,y,label\n" + "\n".join(f"{i * 0.5},{i * i},{i % 2}" for i in range(12)))
    choices = suggested_choices(candidate)
    assert (choices.features, choices.target, choices.task) == (("x", "y"), "label", "classes")
    words = " ".join(described(candidate, choices))
    assert "Target: label, a class, suggested because of its name." in words
    assert "Inputs: x, y." in words


def test_row_numbers_are_no_inputs():
    candidate = table("id,a,kind\n" + "\n".join(f"{i},{i % 5},{'uv'[i % 2]}" for i in range(9)))
    choices = suggested_choices(candidate)
    assert choices.features == ("a",)
    assert "Not used: id (row numbers)." in described(candidate, choices)


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (b"<!DOCTYPE html><html><body>1,2</body></html>", "a web page (HTML)"),
        (b'\n <HTML>\n<p class="a,b">', "a web page (HTML)"),
        (b'<?xml version="1.0"?><a/>', "an XML file"),
        (b'<div class="x">1,2</div>\n', "a web page (HTML)"),
        (b"<p>1,2</p>\n<br/>\n", "a web page (HTML)"),
        (b'{"a": 1, "b": 2}\n{"a": 2, "b": 3}\n', "a JSON file"),
        (b'[{"a": 1, "b": 2}]', "a JSON file"),
        (b"[1, 2, 3]", "a JSON file"),
        (b"@RELATION iris\n@DATA\n1,2\n", "an ARFF file"),
        (b"1 2 a\n3 4 b\n", "columns separated by spaces"),
        (b"A report\n\na,b,c\n1,2,3\n4,5,6\n7,8,9\n", "a first line without columns"),
        (b"sep=:\na:b\n1:2\n", "the line sep=:"),
        (b"\xd0\xcf\x11\xe0" + bytes(40), "an old Excel workbook"),
        ("a,b\n1,2\n".encode("utf-16-le"), "text in UTF-16 without"),
        (b"\xff\xfe\x00\x00" + "a,b\n1,2\n".encode("utf-32-le"), "text in UTF-32"),
        (b"1,2,x\n", "one row only"),
    ],
)
def test_other_formats_are_refused_by_name(data, given):
    with pytest.raises(InvalidInput) as refused:
        parse_upload(data)
    assert refused.value.given.startswith(given)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\na;b;kind\n1,5;2;u\n3,5;4;v\n",
        'a, b, kind\n1, 2, "class, u"\n3, 4, "class, v"\n',
        'a,b,kind\n1,2,"u\nv"\n3,4,"x\ny"\n',
        "a\tb\tkind\r1\t2\tu\r3\t4\tv\r",
    ],
)
def test_spellings_of_spreadsheets_are_read(text):
    written = [text.encode(encoding) for encoding in ("utf-8", "utf-8-sig", "utf-16")]
    written.append("\ufeff".encode() + text.encode("utf-8-sig"))  # two byte order marks
    for data in written:
        found = parse_upload(data)
        assert isinstance(found, Table)
        assert (found.names, found.num_rows) == (("a", "b", "kind"), 2)


PIECES = (
    "1",
    "1.0",
    "1.00",
    "1e0",
    "1e2",
    "100",
    "01",
    "1_0",
    "10",
    "-0",
    "0.0",
    "-0.000",
    "+1",
    ".5",
    "0.5",
    "5.",
    "5",
    "1e999",
    "inf",
    "-Infinity",
    "NA",
    "None",
    "nan",
    "-",
    "?",
    "",
    " ",
    " 7",
    "7 ",
    "\u0661",
    "\u22121",
    "\uff11",
    "0x1F",
    "1,5",
    "true",
    "True",
    "false",
    "x",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "1e300",
    "2024-01-31",
    "1e-400",
    "a\u0308",
    "\u00e4",
)
DECIMAL = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def cell_by_cell(cells: list[str]) -> tuple[str, list[float], list[int]]:
    """Return kind, numbers and missing rows of a column by the rules of ``_cells``,
    one cell at a time.
    """
    texts = [unicodedata.normalize("NFC", cell.strip()) for cell in cells]
    words = {"na", "nan", "none", "-", "?", ""}
    missing = [row for row, text in enumerate(texts) if text.lower() in words]
    empty = [row for row, text in enumerate(texts) if not text]
    valued = [text for text in texts if text.lower() not in words]
    if len(empty) == len(texts):
        return "empty", [], empty
    if valued and all(text.lower() in ("true", "false") for text in valued):
        if len(set(valued)) == len({text.lower() for text in valued}):
            return "true/false", [], missing
        return "text", [], empty
    for text in valued:
        infinite = text.lower().lstrip("+-") in ("inf", "infinity")
        if not infinite and not DECIMAL.fullmatch(text):
            return "text", [], empty
        if text.lstrip("+-").isdigit() and abs(int(text)) > 2**53:
            return "text", [], empty
        if not infinite and float(text) == 0 and Decimal(text) != 0:
            return "text", [], empty
    if not valued:
        return "text", [], empty
    for index, text in enumerate(valued):
        for other in valued[:index]:
            if float(text) != float(other) or not np.isfinite(float(text)):
                continue
            # Equal numbers must be written alike, apart from zeros at the end of a fraction.
            if float(text) != 0 and without_zeros(text) != without_zeros(other):
                return "text", [], empty
            if float(text) == 0 and has_digits(text) != has_digits(other):
                return "text", [], empty
    numbers = [np.nan if row in missing else float(text) for row, text in enumerate(texts)]
    return "number", numbers, missing


def without_zeros(text: str) -> tuple[str, str]:
    """Return the digits without zeros at the end of the fraction, and the exponent."""
    digits, _, exponent = text.lower().partition("e")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    sign = digits[:1] if digits[:1] in "+-" else ""
    digits = digits.removeprefix(sign)
    return sign + ("0" + digits if digits.startswith(".") else digits), str(int(exponent or 0))


def has_digits(text: str) -> bool:
    """Whether a number has a digit other than 0, so that it is 0 by rounding only."""
    return any(digit in "123456789" for digit in text.lower().partition("e")[0])


@pytest.mark.sampled(16)  # random
@pytest.mark.first_cases(12)  # random columns
@pytest.mark.parametrize("seed", range(40))
def test_columns_are_those_of_one_cell_at_a_time(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        num_pieces = int(rng.integers(0, 5))
        cells = [PIECES[index] for index in rng.integers(0, len(PIECES), num_pieces)]
        if rng.random() < 0.6:
            # More different numbers than there may be different classes.
            decimals = rng.normal(size=250) * 10.0 ** rng.integers(-3, 4)
            cells += [f"{value:.{rng.integers(1, 12)}f}" for value in decimals]
        rng.shuffle(cells)
        found = column_of("a", cells, range(2, len(cells) + 2))
        kind, numbers, missing = cell_by_cell(cells)
        assert found.kind.removeprefix("varied ") == kind, cells
        assert found.num_missing == len(missing)
        assert found.first_missing == (missing[0] + 2 if missing else 0)
        if kind == "number":
            expected = np.array(numbers)
            np.testing.assert_array_equal(found.numbers.view(np.int64), expected.view(np.int64))
        if found.texts:
            written = ["" if code < 0 else found.texts[code] for code in found.codes]
            assert written == [unicodedata.normalize("NFC", cell.strip()) for cell in cells]


def test_text_in_every_column_is_named():
    rows = "\n".join(f"{i},{i * i},{'uv'[i % 2]}" for i in range(6))
    candidate = table(f"length,mass,kind\nm,kg,-\n{rows}")
    with pytest.raises(InvalidInput) as refused:
        clean_upload(candidate, suggested_choices(candidate))
    assert refused.value.field == "features"
    assert refused.value.given == "length, text such as m"


def test_words_for_missing_values_in_brackets_are_no_web_page():
    found = table("<NA>,3.5,a\n4,3,a\n6,2,b\n5,2.5,b\n")
    assert found.columns[0].missing == {"<NA>": 1}


def test_decimal_commas_are_explained_beside_the_inputs():
    rows = "\n".join(f"{i},5;{i}.25;{'ab'[i % 2]}" for i in range(8))
    candidate = table("height;weight;kind\n" + rows)
    words = " ".join(described(candidate, suggested_choices(candidate)))
    advice = "numbers with a decimal point, not a decimal comma"
    assert f"height (text such as 0,5; use {advice})" in words


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("1.034", "2.718", "text"),  # a thousand and thirty-four beside 0,5
        ("1.034", "12", "text"),
        ("1.034", "NA", "text"),
        ("0.034", "2.718", "number"),
        ("1.034", "2.71", "number"),
        ("1e3", "2", "number"),
    ],
)
def test_points_beside_decimal_commas_may_group_thousands(first, second, kind):
    def rows_with(decimal):
        rows = [f"{[first, second][i % 2]};{i}{decimal}5;{'uv'[i % 2]}" for i in range(8)]
        return table("\n".join(["a;b;kind", *rows]))

    assert rows_with(".").columns[0].kind == "number"
    found = rows_with(",")
    assert found.columns[0].kind == kind
    if kind == "text":
        with pytest.raises(InvalidInput, match=r"1\.034 .*without thousands separators"):
            clean_upload(found, replace(suggested_choices(found), features=("a",)))


def test_examples_are_no_words_for_missing_values():
    found = table("code,kind\nNA,a\n1e2,b\n100,a\n7,b\n").by_name["code"]
    assert (found.kind, found.obstacle, found.obstacle_line) == ("text", "1e2", 3)
    assert found.example == "1e2"
    only = table("code,kind\nNA,a\nnone,b\nNA,a\nNA,b\n", header=True).by_name["code"]
    assert only.example == "NA"


def test_no_class_is_dropped_with_missing_values():
    rows = [f"{'NA' if i % 3 == 2 else i},{i * i},{'abc'[i % 3]}" for i in range(12)]
    candidate = table("\n".join(["u,v,kind", *rows]))
    choices = replace(suggested_choices(candidate), drop_missing=True)
    given = r"^classes: class c, only in rows with missing values"
    with pytest.raises(InvalidInput, match=given):
        clean_upload(candidate, choices)
    assert clean_upload(candidate, replace(choices, classes=("a", "b"))).counts == {"a": 4, "b": 4}


@pytest.mark.parametrize("unit", ["e-200", "e-40", "", "e40", "e200", "e300"])
def test_scaled_targets_do_not_depend_on_units(unit):
    rows = [f"{i},{(-1) ** i * (i + 1)}{unit}" for i in range(8)]
    candidate = table("\n".join(["a,price", *rows]))
    choices = Choices(("a",), "price", "regression")
    numbers = np.array([(-1) ** i * (i + 1.0) for i in range(8)])
    expected = (numbers - numbers.mean()) / numbers.std()
    np.testing.assert_allclose(clean_upload(candidate, choices).targets[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("first", "step", "scale_targets"),
    [(0, 1e-50, False), (100_000_000, 1, False), (2**53 - 10, 1, True), (10**13, 1, True)],
)
def test_targets_that_lose_their_differences_are_refused(first, step, scale_targets):
    rows = [f"{i},{first + i * step}" for i in range(6)]
    candidate = table("\n".join(["a,price", *rows]))
    choices = Choices(("a",), "price", "regression", scale_targets=scale_targets)
    with pytest.raises(InvalidInput, match=r"^target: a target of numbers that would be rounded"):
        clean_upload(candidate, choices)


@pytest.mark.parametrize(("first", "scale_targets"), [(1000, False), (10**11, True)])
def test_targets_keep_their_differences(first, scale_targets):
    candidate = table("\n".join(["a,price", *(f"{i},{first + i}" for i in range(6))]))
    choices = Choices(("a",), "price", "regression", scale_targets=scale_targets)
    targets = clean_upload(candidate, choices).targets[:, 0].astype(np.float64)
    found = (targets - targets[0]) / (targets[-1] - targets[0])
    np.testing.assert_allclose(found, np.arange(6) / 5, atol=1e-3)


@pytest.mark.parametrize(("unit", "given"), [("e-46", "below 1e-30"), ("e31", r"beyond 1e\+30")])
def test_inputs_that_cannot_be_standardized_are_refused(unit, given):
    rows = [f"{i}{unit},{i},{'xy'[i % 2]}" for i in range(6)]
    candidate = table("\n".join(["a,b,kind", *rows]))
    with pytest.raises(InvalidInput, match=rf"^features: a, {given}"):
        clean_upload(candidate, suggested_choices(candidate))
