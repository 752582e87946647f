"""Arbitrary bytes: a data set or one sentence, in bounded time and memory."""

from __future__ import annotations

import io
import time
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np

from linearity_lab.data.uploads import Limits, clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import archive, arrays, blobs, flowers, image, pets

NUM_UPLOADS = 150
LIMITS = Limits(max_bytes=10**6, max_unpacked_bytes=2 * 10**6, max_rows=5000, max_values=2**18)
ARCHIVES = (blobs(), pets(), arrays(x=np.eye(9), y=np.array(list("aab") * 3)))
CELLS = (
    "2",
    "-3e4",
    "",
    "NA",
    "inf",
    "1e400",
    "x",
    "1_000",
    "1,5",
    '"a;b"',
    "٣",
    "\u200b",
    "9" * 30,
)
DTYPES = ("f8", "f4", "f2", "i8", "u1", "u8", "?", "<U2", "S3", "c8", ">f8", "M8[s]", "O")
SNIPPETS = (
    *(
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PK\x06\x07",
        b"\x93NUMPY",
        b"\x89PNG",
        b"\xff\xd8\xff",
        b"BM",
    ),
    *(
        b",",
        b";",
        b"\n",
        b"\r",
        b'"',
        b"\0",
        b"nan",
        b"inf",
        b"1e999",
        b"-",
        b"NA",
        b"1_000",
        b"9" * 30,
        b"_",
    ),
    *(
        b"'descr': '|O'",
        b"(9999999999,)",
        b"../",
        b"\xff" * 4,
        b"\x00" * 8,
        "٣".encode(),
        b"\xed\xa0\x80",
    ),
)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, removed, repeated or inserted."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 8)):
        at, length = int(rng.integers(0, len(found) + 1)), int(rng.integers(1, 60))
        snippet = SNIPPETS[rng.integers(len(SNIPPETS))]
        number = int(rng.integers(0, 2**32)).to_bytes(4, "little")
        new = (
            rng.bytes(1),
            b"",
            2 * found[at : at + length],
            snippet,
            snippet + found[at : at + length],
            number,
        )
        found[at : at + length] = new[rng.integers(len(new))]
    return bytes(found)


def random_table(rng: np.random.Generator) -> bytes:
    """A table with a few strange cells."""
    rows = [line.split(",") for line in flowers(30).decode().splitlines()]
    for _ in range(rng.integers(0, 5)):
        rows[rng.integers(len(rows))][rng.integers(4)] = CELLS[rng.integers(len(CELLS))]
    delimiter = ",;\t"[rng.integers(3)]
    return "\n".join(map(delimiter.join, rows)).encode("utf-8" if rng.random() < 0.9 else "utf-16")


def random_arrays(rng: np.random.Generator) -> bytes:
    """Intact arrays of any type and shape, with values of any size."""
    n = int(rng.integers(0, 30))
    made = {}
    for name in ("x", "y", "z")[: rng.integers(1, 4)]:
        shape = (n, *(int(size) for size in rng.integers(1, 6, rng.integers(0, 4))))[
            : rng.integers(0, 5)
        ]
        values = rng.integers(0, 4, shape) * 10.0 ** rng.integers(-3, 60, shape)
        values = (
            np.where(rng.random(shape) < 0.02, np.nan, values)
            if rng.random() < 0.3
            else np.abs(values % 4)
        )
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # casts of NaN
            made[name] = np.asarray(values).astype(DTYPES[rng.integers(len(DTYPES))])
    return arrays(**made)


def upload(index: int) -> bytes:
    """A damaged or strange file of an allowed kind, or noise with its first bytes."""
    rng = np.random.default_rng(index)
    if index % 6 == 0:
        return random_arrays(rng)
    if index % 6 == 1:
        form = ("PNG", "JPEG", "BMP")[rng.integers(3)]
        return pets(6, **{f"pets/cat/7.{form.lower()}": mutated(image(9, 7, form=form), rng)})
    if index % 6 == 2:
        stream = io.BytesIO()
        np.save(stream, rng.normal(size=(9, 2)), allow_pickle=False)
        npy = stream.getvalue()
        return archive({"x.npy": mutated(npy[:128], rng) + npy[128:], "y.npy": npy})
    if index % 6 == 3:
        return mutated(ARCHIVES[rng.integers(len(ARCHIVES))], rng)
    if index % 6 == 4:
        return random_table(rng)
    noise = (b"PK\x03\x04", b"a,b\n", b"", b"\x93NUMPY")[rng.integers(4)] + rng.bytes(300)
    return mutated(flowers(30), rng) if rng.random() < 0.7 else noise


def outcome(index: int) -> str:
    """``"data"`` or the error sentence; other exceptions fail the test."""
    rng = np.random.default_rng(index)
    changes = [
        {},
        {"task": "regression"},
        {"drop_missing": True},
        {"side": int(rng.integers(-1, 70)), "gray": True},
    ]
    try:
        candidate = parse_upload(upload(index), LIMITS)
        found = clean_upload(
            candidate, replace(suggested_choices(candidate), **changes[rng.integers(4)]), LIMITS
        )
    except InvalidInput as error:
        return str(error)
    assert np.isfinite(found.x).all()
    assert len(found.x) == len(found.labels) or len(found.x) == len(found.targets)
    return "data"


def test_an_upload_is_a_data_set_or_one_sentence():
    began = time.process_time()
    found = [outcome(index) for index in range(NUM_UPLOADS)]
    assert time.process_time() - began < 0.5 * len(found)
    assert [text for text in found if "\n" in text or len(text) > 400] == []
    # All stages.
    assert {text.partition(":")[0] for text in found} >= {
        "data",
        "file",
        "features",
        "target",
    }
    assert found.count("data") > 10


def test_memory_stays_bounded_by_what_may_be_unpacked():
    # A table of 300 rows and 300 columns, and arrays with a huge declared size.
    wide = ",".join(f"c{i}" for i in range(300)) + "\n" + (",".join(["1"] * 300) + "\n") * 300
    claims = archive(
        {
            "x.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
            b"(10**9,), }"
        }
    )
    tracemalloc.start()
    for data in (wide.encode(), claims, *(upload(index) for index in range(12))):
        try:
            candidate = parse_upload(data, LIMITS)
            clean_upload(candidate, suggested_choices(candidate), LIMITS)
        except InvalidInput:
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * LIMITS.max_bytes
