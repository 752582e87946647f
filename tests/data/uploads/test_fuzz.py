"""Arbitrary bytes: a data set or one sentence, in bounded time and memory."""

from __future__ import annotations

import io
import time
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np

from ntk_core.data.uploads import Choices, Cleaned, Limits, clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import archive, arrays, blobs, flowers, image, pets

NUM_UPLOADS = 200
LIMITS = Limits(max_bytes=10**6, max_unpacked_bytes=2 * 10**6, max_rows=5000, max_values=2**18)
SEEDS = (flowers(), flowers(delimiter=";"), blobs(), pets(), arrays(x=np.eye(9), y=np.array(list("aab") * 3)))
SNIPPETS = (
    *(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x07", b"\x93NUMPY", b"\x89PNG", b"\xff\xd8\xff", b"BM"),
    *(b",", b";", b"\n", b"\r", b'"', b"\0", b"nan", b"inf", b"1e999", b"-", b"\xef\xbb\xbf", b"\xff\xfe", b"_"),
    *(b"'descr': '|O'", b"(9999999999,)", b"../", b"\xff" * 4, b"\x00" * 8, "٣".encode(), b"\xed\xa0\x80"),
)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, removed, repeated or inserted."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 8)):
        at, length = int(rng.integers(0, len(found) + 1)), int(rng.integers(1, 60))
        match rng.integers(0, 6):
            case 0:
                found[at : at + 1] = rng.bytes(1)
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length]
            case 3:
                found[at:at] = SNIPPETS[rng.integers(len(SNIPPETS))]
            case 4:
                found[at : at + length] = SNIPPETS[rng.integers(len(SNIPPETS))]
            case _:
                found[at : at + 4] = int(rng.integers(0, 2**32)).to_bytes(4, "little")
    return bytes(found)


TOKENS = (
    "1",
    "2.5",
    "-3e4",
    "",
    "NA",
    "inf",
    "1e400",
    "x",
    "yes",
    "no",
    "1_000",
    "1,5",
    '"a;b"',
    "٣",
    "\u200b",
    "9" * 30,
)
DTYPES = ("f8", "f4", "f2", "i8", "u1", "u8", "?", "<U2", "S3", "c8", ">f8", "M8[s]", "O")


def random_table(rng: np.random.Generator) -> bytes:
    """A table of numbers with some other cells."""
    rows, columns, strange = int(rng.integers(0, 40)), int(rng.integers(1, 6)), rng.random() ** 3
    delimiter = ",;\t"[rng.integers(3)]
    lines = [delimiter.join(rng.choice(["a", "b", "c", "", "1"]) + str(i) for i in range(columns))]
    for _ in range(rows):
        cells = [TOKENS[rng.integers(len(TOKENS))] if rng.random() < strange else f"{rng.normal():.3f}" for _ in lines]
        cells = cells[:1] * (columns - 1) + ["uvw"[rng.integers(3)]] + ["?"] * int(rng.random() < 0.01)
        lines.append(delimiter.join(cells if rng.random() < 0.5 else [*map(str, rng.normal(size=columns - 1)), "u"]))
    return "\n".join(lines).encode("utf-8" if rng.random() < 0.9 else "utf-16")


def random_arrays(rng: np.random.Generator) -> bytes:
    """Intact arrays of any type and shape, with values of any size."""
    n = int(rng.integers(0, 30))
    made = {}
    for name in ("x", "y", "z")[: rng.integers(1, 4)]:
        shape = (n, *(int(size) for size in rng.integers(1, 6, rng.integers(0, 4))))[: rng.integers(0, 5)]
        values = rng.integers(0, 4, shape) * 10.0 ** rng.integers(-3, 60, shape)
        values = np.where(rng.random(shape) < 0.02, np.nan, values) if rng.random() < 0.3 else np.abs(values % 4)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # casts of NaN
            made[name] = np.asarray(values).astype(DTYPES[rng.integers(len(DTYPES))])
    return arrays(**made)


def damaged_entries(rng: np.random.Generator) -> bytes:
    """An intact archive of an image or an array with damaged bytes."""
    if rng.random() < 0.5:
        stream = io.BytesIO()
        np.save(stream, rng.normal(size=(9, 2)), allow_pickle=False)
        npy = stream.getvalue()
        return archive({"x.npy": mutated(npy[:128], rng) + npy[128:], "y.npy": npy})
    found = {f"{'cd'[i % 2]}/{i}.png": image(int(rng.integers(1, 9)), int(rng.integers(1, 9)), i) for i in range(6)}
    form = ("PNG", "JPEG", "BMP")[rng.integers(3)]
    return archive({**found, f"c/7.{form.lower()}": mutated(image(9, 7, form=form), rng)})


def upload(index: int) -> bytes:
    """A damaged or strange file of an allowed kind, or noise with its first bytes."""
    rng = np.random.default_rng(index)
    made = (random_table, random_arrays, damaged_entries, random_table, random_arrays, damaged_entries)
    if index % 8 < len(made):
        return made[index % 8](rng)
    if index % 8 == 6:
        return mutated(SEEDS[index // 8 % len(SEEDS)], rng)
    return (b"PK\x03\x04", b"a,b\n", b"", b"\x93NUMPY")[rng.integers(4)] + rng.bytes(300)


def choices_of(candidate, rng: np.random.Generator) -> Choices:
    changes = [{}, {"task": "regression"}, {"drop_missing": True}, {"side": int(rng.integers(-1, 70)), "gray": True}]
    return replace(suggested_choices(candidate), **changes[rng.integers(len(changes))])


def outcome(index: int) -> str:
    """``"data"`` or the error sentence; other exceptions fail the test."""
    data = upload(index)
    try:
        candidate = parse_upload(data, LIMITS)
        found = clean_upload(candidate, choices_of(candidate, np.random.default_rng(index)), LIMITS)
    except InvalidInput as error:
        return str(error)
    assert isinstance(found, Cleaned)
    assert np.isfinite(found.x).all()
    assert len(found.x) == len(found.labels) or len(found.x) == len(found.targets)
    return "data"


def test_an_upload_is_a_data_set_or_one_sentence():
    began = time.process_time()
    found = [outcome(index) for index in range(NUM_UPLOADS)]
    assert time.process_time() - began < 0.5 * len(found)
    assert [text for text in found if "\n" in text or len(text) > 400] == []
    assert {text.partition(":")[0] for text in found} >= {"data", "file", "features", "target"}  # all stages
    assert found.count("data") > 10


def test_memory_stays_bounded_by_what_may_be_unpacked():
    # A table of 50 rows and 2,000 columns, arrays with a huge declared size, and noise after the first bytes of a kind.
    wide = ",".join(f"c{i}" for i in range(2000)) + "\n" + (",".join(["1"] * 2000) + "\n") * 50
    claims = archive({"x.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,), }"})
    tracemalloc.start()
    for data in (wide.encode(), claims, *(upload(index) for index in range(60))):
        try:
            candidate = parse_upload(data, LIMITS)
            clean_upload(candidate, suggested_choices(candidate), LIMITS)
        except InvalidInput:
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * LIMITS.max_bytes
