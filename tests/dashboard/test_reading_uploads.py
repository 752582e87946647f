"""Files are read by a process of its own, within time and memory, and what was read is kept once, within bounds."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import numpy as np
import pytest

from linearity_lab.jobs import wire
from linearity_lab.jobs._process import Context
from linearity_lab.jobs.profile import PROFILES
from linearity_lab.jobs.uploads import Reader, ReadUploads
from ntk_core.data.uploads import Limits, clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import arrays, blobs, flowers, pets

LIMITS = Limits()


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


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
        reader.ask("parse", arrays(x=np.array([{}], object)), LIMITS)


def test_slow_file_is_abandoned_and_the_next_one_is_read():
    slow = Reader(max_s=0.001)  # less than a process takes to start
    with pytest.raises(InvalidInput, match=r"one that can be read within 0\.001 s"):
        slow.ask("parse", flowers(), LIMITS)
    slow._max_s = 60.0
    found, num_bytes = slow.ask("parse", flowers(), LIMITS)
    assert (found.num_rows, num_bytes > 1000) == (60, True)
    slow.close()


def test_file_over_memory_is_refused_and_the_next_one_read():
    small = Reader(max_bytes=2**28)
    zeros = arrays(**{f"x{index}": np.zeros((512, 2**15), np.int8) for index in range(16)})
    generous = Limits(max_unpacked_bytes=2**29)
    with pytest.raises(InvalidInput, match=r"and 0\.25 GiB of memory"):
        small.ask("parse", zeros, generous)
    assert small.ask("parse", flowers(), LIMITS)[0].num_rows == 60
    small.close()


def _framed(*parts: bytes) -> bytes:
    """As ``multiprocessing`` writes messages."""
    return b"".join(struct.pack("!i", len(part)) + part for part in parts)


def _huge_array() -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (2**60,)})
    return stream.getvalue()


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"\0" * 3,
        struct.pack("!iQ", -1, 2**62) + b"much",
        pickle.dumps(MemoryError()) * 20,
        _framed(b"0", b'{"kind": "Popen", "fields": {}}'),
        _framed(b"0", b'{"error": "SystemExit", "arguments": []}'),
        _framed(b"0", b'{"array": 3}'),
        _framed(b"0", b"[" * 10**5),
        _framed(b"-1"),
        _framed(b"2", b'{"bytes": 0}', bytes(9)) + struct.pack("!iQ", -1, wire.MAX_BYTES - 9),
        _framed(b"9999999", b'{"array": 0}'),
        _framed(b"1", b'{"array": 0}', _huge_array()),
        _framed(b"1", b'{"array": 0}', pickle.dumps([1])),
    ],
    ids=[
        *("nothing", "half a length", "a huge length", "a pickle", "another class", "another error", "no such array"),
        *("a deep list", "a negative count", "too much together", "too many", "a huge array", "a pickle for an array"),
    ],
)
def test_what_is_no_answer_is_refused(written):
    context = Context()
    ours, theirs = context.Pipe()
    writer = threading.Thread(target=_write_all, args=(theirs, written))  # a pipe holds less than the longest of them
    writer.start()
    with pytest.raises((EOFError, OSError, ValueError)):
        wire.received(ours)
    ours.close()
    writer.join()


def _write_all(pipe: Connection, written: bytes) -> None:
    with pipe, contextlib.suppress(OSError):
        while written:
            written = written[os.write(pipe.fileno(), written) :]


def test_a_reader_with_false_replies_is_replaced():
    reader, context = Reader(), Context()
    reader._pipe, theirs = context.Pipe()
    reader._process = context.Process(target=time.sleep, args=(60,), daemon=True)
    reader._process.start()
    theirs.send_bytes(b"no number")
    with pytest.raises(InvalidInput, match="file: this file cannot be used"):
        reader.ask("parse", flowers(), LIMITS)
    assert reader._process is None
    assert reader.ask("parse", flowers(), LIMITS)[0].num_rows == 60
    reader.close()


def test_names_of_arrays_are_no_instructions(reader):
    """An npz file may name its arrays as the answers name their parts."""
    named = arrays(bytes=np.ones(3), array=np.zeros(3), kind=np.arange(3), fields=np.arange(3), error=np.arange(3))
    assert set(reader.ask("parse", named, LIMITS)[0].arrays) == {"bytes", "array", "kind", "fields", "error"}


def test_small_file_does_not_wait_for_large_ones():
    class Stuck(Reader):
        def _answer(self, question):
            assert released.wait(60)
            return MemoryError(), 0

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
    small.close()


def _refused(uploads: ReadUploads, version: str, data: bytes) -> None:
    with pytest.raises(InvalidInput):
        uploads.candidate(version, lambda: data, LIMITS)


def test_equal_files_are_read_once_and_cached_by_last_use():
    class Counting(Reader):
        def _answer(self, question):
            asked.append(question[1])
            return question[1], 40

    asked: list[bytes] = []
    uploads = ReadUploads(100, Counting(), Counting())
    for version in "ababcab":
        assert uploads.candidate(version, version.encode, LIMITS) == version.encode()
    assert asked == [b"a", b"b", b"c", b"a", b"b"]


def test_many_ask_at_once_and_each_gets_its_own_answer(reader):
    found: dict[int, int] = {}

    def ask(rows: int) -> None:
        found[rows] = reader.ask("parse", flowers(num_rows=rows), LIMITS)[0].num_rows

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
        def _answer(self, question):
            assert released.wait(60)
            order.append(question[1])
            return question[1], 0

    released, order = threading.Event(), list[int]()
    reader, sizes = Listing(), [9_000, 8_000_000, 20, 300]
    waiting = [threading.Thread(target=reader.ask, args=("parse", size), kwargs={"size": size}) for size in (0, *sizes)]
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
