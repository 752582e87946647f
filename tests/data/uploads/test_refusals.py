"""Refusals of uploaded files: one sentence that names the fault."""

from __future__ import annotations

import io
import stat
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from linearity_lab.data.uploads import (
    Choices,
    Limits,
    clean_upload,
    parse_upload,
    suggested_choices,
)
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import archive, arrays, blobs, flowers, image, pets

SMALL = Limits(
    max_bytes=100_000,
    max_unpacked_bytes=200_000,
    max_entries=30,
    max_rows=80,
    max_columns=6,
    max_classes=4,
)
N = 20
X, Y = np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2


def refusal(data: bytes, limits: Limits = SMALL, **changes) -> InvalidInput:
    """Return the error of a file under the suggested choices with these changes."""

    def read() -> None:
        candidate = parse_upload(data, limits)
        clean_upload(candidate, replace(suggested_choices(candidate), **changes), limits)

    with pytest.raises(InvalidInput) as error:
        read()
    assert "\n" not in str(error.value)
    return error.value


def table(*rows: str, header: str = "a,b,kind") -> bytes:
    return "\n".join([header, *rows]).encode()


def rows(num: int = 6) -> list[str]:
    return [f"{i},{i * i},{'xy'[i % 2]}" for i in range(num)]


def with_link() -> bytes:
    stream, link = io.BytesIO(), zipfile.ZipInfo("cat/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr(link, "/etc/passwd")
    return stream.getvalue()


def patched(data: bytes, at: int, value: bytes) -> bytes:
    """Replace bytes after every header of a zip's directory (b"PK\\x01\\x02")."""
    found = bytearray(data)
    start = data.find(b"PK\x01\x02")
    while start >= 0:
        found[start + at : start + at + len(value)] = value
        start = data.find(b"PK\x01\x02", start + 4)
    return bytes(found)


TABLES = [
    (b"", "file", "an empty file"),
    (b"a,b\n" + b"1,2\n" * 30_000, "file", "a file of"),
    (table(*rows(90)), "file", "81 rows"),
    (table("1," * 6 + "2", header="a,b,c,d,e,f,g"), "file", "7 columns"),
    (table(*rows(), header="1,2,3"), "header", "a first row (1, 2, 3)"),
    (table(*rows(), header="a,,kind"), "file", "column 2 without a name"),
    (table(*rows(), header="a,a,kind"), "file", "column a, 2 times"),
    (table(*rows(), "7,8"), "file", "Line 8 has 2 values"),
    (table(), "file", "a header without rows"),
    (b"onlyonecolumn\n1\n2\n", "file", "one column only"),
    ("a,b,kind\n1,2,caf\u00e9\n".encode("latin-1"), "file", "no UTF-8 text"),
    (b"a,b\n\0\0\0", "file", "a file of another kind"),
    (image(4, 4), "file", "a single image"),
    (b"%PDF-1.7 something", "file", "a PDF file"),
    (b"\x80\x04\x95abc", "file", "a pickle"),
    (table(*rows(), "nan,1,x", ",2,y"), "features", "a (2 missing, the first in line 8)"),
    (table(*rows(), "inf,1,x", "2,-inf,y"), "features", "a (1 infinite"),
    (
        table(*[f"{10**15 + i},{i},{'xy'[i % 2]}" for i in range(6)]),
        "features",
        "a, huge against its differences",
    ),
    (
        table(*[f"{i + 1}e39,{i},{'xy'[i % 2]}" for i in range(6)]),
        "features",
        "beyond 3.4e38",
    ),
    (table(*[f"{i},{i},x" for i in range(6)]), "target", "one class only (x)"),
    (table(*rows(), "7,8,z"), "target", "class z with 1 sample"),
    (table(*[f"{i},{i},c{i % 5}" for i in range(20)]), "target", "5 classes"),
]


@pytest.mark.parametrize(("data", "field", "given"), TABLES, ids=[given for _, _, given in TABLES])
def test_a_table_is_refused_in_one_sentence(data, field, given):
    error = refusal(data)
    assert (error.field, error.given[: len(given)]) == (field, given) or given in error.given


CHOICES = [
    ({"features": ("a", "c")}, "features", "c"),
    ({"features": ()}, "features", "nothing"),
    (
        {"features": ("kind",), "target": "b", "task": "regression"},
        "features",
        "kind, text such as x",
    ),
    ({"target": "z"}, "target", "z"),
    ({"task": "regression"}, "target", "kind, text such as x"),
    ({"task": "guess"}, "task", "guess"),
    ({"classes": ("x", "q")}, "classes", "q"),
    ({"target": "flat", "task": "regression"}, "target", "a constant target"),
    ({"features": ("a", "flat")}, "features", "flat, constant"),
    ({"target": "b", "features": ("a",)}, "target", "b, 6 different values"),
]


@pytest.mark.parametrize(("changes", "field", "given"), CHOICES)
def test_a_choice_is_refused_by_its_name(changes, field, given):
    data = table(*[f"{row},3" for row in rows()], header="a,b,kind,flat")
    error = refusal(data, **changes)
    assert (error.field, error.given) == (field, given)


ARRAYS = [
    (arrays(x=X, y=np.array([{}] * N, object)), "file", "array y, of Python objects"),
    (arrays(x=X, y=np.zeros(N, [("a", "f4")])), "file", "array y, of type"),
    (arrays(x=X), "target", "nothing"),
    (arrays(x=X, y=Y[:-1]), "target", "nothing"),
    (
        arrays(x=np.where(X[3, 1] == X, np.nan, X), y=Y),
        "features",
        "1 values NaN or infinite, the first in sample 4",
    ),
    (arrays(x=np.c_[X, np.ones(N)], y=Y), "features", "column 4, constant"),
    (arrays(x=np.ones((N, 4, 4)), y=Y), "features", "inputs that are all equal"),
    (
        arrays(x=np.random.default_rng(0).normal(size=(N, 3, 4, 4)), y=Y)[:-5],
        "file",
        "a damaged archive",
    ),
    (arrays(x=np.random.default_rng(0).normal(size=(N, 3, 4, 5)), y=Y), "features", "x, of shape"),
    (arrays(x=X, y=np.c_[Y, Y]), "target", "y, of shape (20, 2)"),
    (arrays(**{f"a{i}": X for i in range(29)}, y=Y[:0]), "file", "array y, of shape (0,)"),
    (archive({"x.npy": b"\x93NUMPY\x01\x00nonsense"}), "file", "x.npy, damaged"),
]


@pytest.mark.parametrize(("data", "field", "given"), ARRAYS, ids=[given for _, _, given in ARRAYS])
def test_arrays_are_refused_in_one_sentence(data, field, given):
    error = refusal(data)
    assert error.field == field
    assert error.given.startswith(given)


ARCHIVES = [
    (archive({}), "file", "an empty archive"),
    (archive({"readme.txt": b"hello"}), "file", "an archive with readme.txt"),
    (
        pets(**{"pets/cat/broken.png": b"\x89PNG nothing"}),
        "file",
        "pets/cat/broken.png, which cannot be read",
    ),
    (pets(**{"pets/cat/text.txt": b"hello"}), "file", "pets/cat/text.txt"),
    (pets(**{"pets/fox/one.png": image(10, 10)}), "classes", "class fox with 1 sample"),
    (pets(**{"../../etc/cat.png": image(10, 10)}), "file", "../../etc/cat.png"),
    (pets(**{"/abs/cat.png": image(10, 10)}), "file", "/abs/cat.png"),
    (pets(**{"C:/cat/a.png": image(10, 10)}), "file", "C:/cat/a.png"),
    (pets(**{"cat\\a.png": image(10, 10)}), "file", "cat\\a.png"),
    (pets(**{"pets/cat/more.zip": pets()}), "file", "pets/cat/more.zip"),
    (pets(num=31, side=2), "file", "31 files in the archive"),
    (pets(**{"pets/cat/big.png": bytes(200_000)}), "file", "an archive of 0.19"),
    (
        archive({f"cat/{i}.png": image(4, 4, i) for i in range(4)}),
        "classes",
        "one class only (cat)",
    ),
    (with_link(), "file", "cat/link.png, a link"),
    (patched(pets(), 8, b"\x01\x00"), "file", "pets/cat/0.png, encrypted"),
    (
        archive({"cat/a.png": image(4, 4)}, zipfile.ZIP_BZIP2),
        "file",
        "cat/a.png, compressed in a rare way",
    ),
    (patched(pets(), 24, b"\x05\x00\x00\x00"), "file", "pets/cat/0.png, damaged"),
    (b"PK\x05\x06" + bytes(8) + b"\xff\xff\xff\xff" + bytes(6), "file", "a damaged archive"),
]


@pytest.mark.parametrize(
    ("data", "field", "given"), ARCHIVES, ids=[given for _, _, given in ARCHIVES]
)
def test_an_archive_is_refused_in_one_sentence(data, field, given):
    error = refusal(data)
    assert error.field == field
    assert error.given.startswith(given)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "Line 3 has 2 values; the header has 3 columns"),
        ("a,b,c\n\n1,2,3\n\n4,5,6,7\n", "Line 5 has 4 values; the header has 3 columns"),
        ('a,b\n"x\ny",1\n"z\nz"\n', "Line 4 has 1 value; the header has 2 columns"),
    ],
)
def test_bad_line_is_named_by_its_line_in_the_file(text, sentence):
    with pytest.raises(InvalidInput) as refused:
        parse_upload(text.encode())
    assert str(refused.value) == sentence


BOMB = archive({f"cat/{i}.png": bytes(4 * 2**20) for i in range(17)})
# About its size unpacked.
LYING = patched(archive({"x.npy": bytes(50_000)}), 24, (100).to_bytes(4, "little"))
LARGE = [
    (table(*[f"{i},{i * i},name{i}" for i in range(300)]), Limits(), "more than 200"),
    (LYING, SMALL, "x.npy, damaged"),
    (BOMB, Limits(max_bytes=10**6), "an archive of 68 MiB unpacked"),
    (pets(**{"pets/cat/bomb.png": image(300, 300)}), Limits(max_pixels=50_000), "300 × 300 pixels"),
    *(
        (data, replace(SMALL, max_values=100), "numbers in all inputs together")
        for data in (blobs(), flowers(), pets())
    ),
    (pets(num=13, side=10), Limits(max_all_pixels=1100), "1,200 pixels in all images together"),
]


@pytest.mark.parametrize(("data", "limits", "given"), LARGE, ids=[given for _, _, given in LARGE])
def test_what_takes_too_much_is_refused_before_unpacking(data, limits, given):
    assert given in refusal(data, limits).given


def test_images_larger_than_networks_see_need_a_side():
    limits = replace(Limits(), max_side=8)
    error = refusal(pets(), limits, side=0)
    assert (error.field, error.given) == ("side", "0, with images of 10 × 10")
    assert refusal(pets(), limits, side=9).field == "side"
    assert refusal(pets(), limits, task="regression").field == "task"
    mixed = pets(**{"pets/cat/wide.png": image(11, 10)})
    assert refusal(mixed, side=0).given == "0, with images of 2 sizes (10 × 10, 10 × 11)"


def test_a_choice_of_another_kind_of_file_is_refused_too():
    with pytest.raises(InvalidInput, match="features: nothing"):
        clean_upload(parse_upload(blobs()), Choices())
