"""Files are read by a process of its own, within time and memory, and what was read is kept once, within bounds."""

from __future__ import annotations

import base64
import io
import json
import pickle
import threading
import time

import numpy as np
import pytest

from linearity_lab.jobs import uploads as reading
from linearity_lab.jobs.profile import PROFILES
from linearity_lab.jobs.uploads import ANSWER, Reader, ReadUploads
from ntk_core.data.uploads import Limits, Table, clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import arrays, blobs, flowers, pets

LIMITS = Limits()


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.mark.parametrize("data", [flowers(), blobs(), pets()], ids=["table", "arrays", "images"])
def test_the_process_reads_what_this_one_would_have_read(reader, data):
    uploads = ReadUploads(10**9, reader, reader)
    candidate = uploads.candidate("v", lambda: data, LIMITS)
    choices = suggested_choices(candidate)
    assert choices == suggested_choices(parse_upload(data))
    found, expected = uploads.cleaned("v", lambda: data, choices, LIMITS), clean_upload(parse_upload(data), choices)
    assert (found.x == expected.x).all()
    assert found.counts == expected.counts
    assert uploads.candidate("v", lambda: pytest.fail("read twice"), LIMITS) is candidate


def test_a_refusal_comes_over_as_it_is(reader):
    with pytest.raises(InvalidInput, match=r"file: array x, of Python objects \(a pickle\)"):
        reader.ask(parse_upload, arrays(x=np.array([{}], object)), LIMITS)


def test_slow_file_is_abandoned_and_the_next_one_is_read():
    slow = Reader(max_s=0.001)
    with pytest.raises(InvalidInput, match=r"one that can be read within 0\.001 s"):
        slow.ask(parse_upload, flowers(), LIMITS)
    slow._max_s = 60.0
    found, num_bytes = slow.ask(parse_upload, flowers(), LIMITS)
    assert isinstance(found, Table)
    assert (found.num_rows, num_bytes > 1000) == (60, True)


def test_file_over_memory_is_refused_and_the_next_one_read():
    small = Reader(max_bytes=2**28)
    zeros = arrays(**{f"x{index}": np.zeros((512, 2**15), np.int8) for index in range(16)})
    generous = Limits(max_unpacked_bytes=2**29)
    with pytest.raises(InvalidInput, match=r"and 0\.25 GiB of memory"):
        small.ask(parse_upload, zeros, generous)
    assert isinstance(small.ask(parse_upload, flowers(), LIMITS)[0], Table)


TABLE = ANSWER.dump_json(parse_upload(flowers()))


def _arrays(npy: bytes) -> bytes:
    return json.dumps({"arrays": {"x": base64.b64encode(npy).decode()}}).encode()


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _huge_array() -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (2**60,)})
    return stream.getvalue()


class Sending(Reader):
    """Takes the first argument for the answer of a process."""

    def _answer(self, read, arguments):
        return arguments[0]


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"\0" * 3,
        TABLE[:-1],
        pickle.dumps(MemoryError()) * 20,
        json.dumps({"kind": "Popen", "fields": {}}).encode(),
        json.dumps({"field": "file", "given": [], "allowed": "", "is_bad_line": False}).encode(),
        b"[" * 10**5,
        _arrays(b""),
        _arrays(_huge_array()),
        _arrays(pickle.dumps([1])),
        _arrays(_npy(np.array([{}], object))),
        _arrays(arrays(x=np.ones(3))),
    ],
    ids=[
        *("nothing", "zeros", "cut", "a pickle", "another class", "another type", "a deep list", "no array"),
        *("a huge array", "a pickle for an array", "objects", "an archive for an array"),
    ],
)
def test_what_is_no_answer_is_refused(written):
    assert Sending().ask(parse_upload, TABLE)[0].num_rows == 60
    assert list(Sending().ask(parse_upload, _arrays(_npy(np.ones(3))))[0].arrays) == ["x"]
    with pytest.raises(InvalidInput, match="file: this file cannot be used"):
        Sending().ask(parse_upload, written)


def send_what_is_no_answer(out, max_bytes, read, arguments):
    out.send_bytes(b"x" * arguments[0])


@pytest.mark.parametrize("num_bytes", [9, 2**20], ids=["no answer", "a long one"])
def test_process_with_a_false_reply_is_refused(reader, monkeypatch, num_bytes):
    monkeypatch.setattr(reading, "answer", send_what_is_no_answer)
    monkeypatch.setattr(reading, "MAX_ANSWER_BYTES", 2**10)
    with pytest.raises(InvalidInput, match="file: this file cannot be used"):
        reader.ask(parse_upload, num_bytes)
    monkeypatch.undo()
    assert reader.ask(parse_upload, flowers(), LIMITS)[0].num_rows == 60


def test_names_of_arrays_are_no_instructions(reader):
    """An npz file may name its arrays as the answers name their parts."""
    named = arrays(bytes=np.ones(3), array=np.zeros(3), kind=np.arange(3), fields=np.arange(3), error=np.arange(3))
    assert set(reader.ask(parse_upload, named, LIMITS)[0].arrays) == {"bytes", "array", "kind", "fields", "error"}


def test_small_file_does_not_wait_for_large_ones():
    class Stuck(Reader):
        def _answer(self, read, arguments):
            assert released.wait(60)
            return b""

    released, small = threading.Event(), Reader()
    uploads = ReadUploads(10**9, small, Stuck())
    large = bytes(2**20 + 1)
    waiting = [threading.Thread(target=_refused, args=(uploads, str(n), large)) for n in range(8)]
    for each in waiting:
        each.start()
    assert uploads.candidate("small", flowers, LIMITS).num_rows == 60
    assert all(each.is_alive() for each in waiting)
    released.set()
    for each in waiting:
        each.join(10)


def _refused(uploads: ReadUploads, version: str, data: bytes) -> None:
    with pytest.raises(InvalidInput):
        uploads.candidate(version, lambda: data, LIMITS)


def test_equal_files_are_read_once_and_cached_by_last_use():
    class Counting(Reader):
        def ask(self, read, *arguments, size=0):
            asked.append(arguments[0])
            return tables[arguments[0]], 40

    asked: list[bytes] = []
    tables = {name: parse_upload(flowers()) for name in (b"a", b"b", b"c")}
    uploads = ReadUploads(100, Counting(), Counting())
    for version in "ababcab":
        assert uploads.candidate(version, version.encode, LIMITS) is tables[version.encode()]
    assert asked == [b"a", b"b", b"c", b"a", b"b"]


def test_many_ask_at_once_and_each_gets_its_own_answer(reader):
    found: dict[int, int] = {}

    def ask(rows: int) -> None:
        found[rows] = reader.ask(parse_upload, flowers(num_rows=rows), LIMITS)[0].num_rows

    threads = [threading.Thread(target=ask, args=(rows,)) for rows in range(10, 18)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {rows: rows for rows in range(10, 18)}
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
def test_small_file_that_expands_is_refused_by_its_size(limits, monkeypatch):
    from linearity_lab.components.own_data import upload_limits

    monkeypatch.setenv("LINEARITY_LAB_PROFILE", limits.name)
    found = upload_limits()
    assert 4 * found.max_values <= limits.max_upload_bytes
    big = arrays(
        x=np.zeros((found.max_values // 4096 + 1, 4096), np.int8), y=np.arange(found.max_values // 4096 + 1) % 2
    )
    assert len(big) < 2**16
    candidate = parse_upload(big, found)
    with pytest.raises(InvalidInput, match="numbers in all inputs together"):
        clean_upload(candidate, suggested_choices(candidate), found)


def test_the_smallest_waiting_file_is_read_next():
    class Listing(Reader):
        def _answer(self, read, arguments):
            assert released.wait(60)
            order.append(arguments[0])
            return TABLE

    released, order = threading.Event(), list[int]()
    reader, sizes = Listing(), [9_000, 8_000_000, 20, 300]
    waiting = [
        threading.Thread(target=reader.ask, args=(parse_upload, size), kwargs={"size": size}) for size in (0, *sizes)
    ]
    waiting[0].start()
    while not reader._is_reading:
        time.sleep(0.001)
    for each in waiting[1:]:
        each.start()
    while len(reader._waiting) < len(sizes):
        time.sleep(0.001)
    released.set()
    for each in waiting:
        each.join(10)
    assert order == [0, *sorted(sizes)]
