"""Parsing of uploads in processes with limits of time and memory,
and memory returned by the server.
"""

import gc
import io
import platform
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest
from streamlit import config

from linearity_lab.dashboard.jobs import uploads as reading
from linearity_lab.dashboard.jobs.profile import PROFILES
from linearity_lab.dashboard.jobs.uploads import ReadUploads
from linearity_lab.dashboard.own_data import upload_limits
from linearity_lab.dashboard.server import garbage
from linearity_lab.data.uploads import (
    BadLine,
    Limits,
    Table,
    clean_upload,
    parse_upload,
    suggested_choices,
)
from linearity_lab.data.uploads._tables import MAX_CELLS
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import arrays, blobs, flowers, pets, sleep_on_large

LIMITS = Limits()


@pytest.fixture(scope="module")
def uploads():
    made = ReadUploads(10**9, max_s=600.0, max_bytes=2**28)
    yield made
    made.close()


@pytest.mark.parametrize("data", [flowers(), blobs(), pets()], ids=["table", "arrays", "images"])
def test_the_process_reads_what_this_one_would_have_read(uploads, data):
    candidate = uploads.candidate(str(hash(data)), lambda: data, LIMITS)
    choices = suggested_choices(candidate)
    assert choices == suggested_choices(parse_upload(data))
    found = uploads.cleaned(str(hash(data)), lambda: data, choices, LIMITS)
    expected = clean_upload(parse_upload(data), choices)
    assert (found.x == expected.x).all()
    assert found.counts == expected.counts
    assert (
        uploads.candidate(str(hash(data)), lambda: pytest.fail("read twice"), LIMITS) is candidate
    )


def test_a_refusal_comes_over_as_it_is(uploads):
    with pytest.raises(InvalidInput, match=r"file: array x, of Python objects \(a pickle\)"):
        uploads.candidate("pickle", lambda: arrays(x=np.array([{}], object)), LIMITS)
    with pytest.raises(BadLine, match="Line 3 has 3 values; the header has 2 columns"):
        uploads.candidate("uneven", lambda: b"a,b\n1,2\n1,2,3\n", LIMITS)


@pytest.mark.slow
def test_slow_file_is_abandoned_and_the_next_one_is_read(uploads, monkeypatch):
    header = b",".join(b"x%d" % index for index in range(30))
    # A second; a process over time ends after 0.1 s.
    rows = b"\n".join([header, *[b",".join([b"1.5"] * 30)] * 50_000])
    with monkeypatch.context() as patch:
        patch.setattr(uploads, "_max_s", 0.001)
        with pytest.raises(InvalidInput, match=r"one that can be read within 0\.001 s"):
            uploads.candidate("slow", lambda: rows, LIMITS)
    assert uploads.candidate("slow", lambda: rows, LIMITS).num_rows == 50_000


@pytest.mark.slow
def test_file_over_memory_is_refused_and_the_next_one_read(uploads):
    zeros = arrays(**{f"x{index}": np.zeros((512, 2**15), np.int8) for index in range(8)})
    with pytest.raises(InvalidInput, match=r"and 0\.25 GiB of memory"):
        uploads.candidate("hungry", lambda: zeros, Limits(max_unpacked_bytes=2**29))
    assert isinstance(uploads.candidate("next", flowers, LIMITS), Table)


def test_small_file_does_not_wait_for_large_ones(monkeypatch):
    def wait(version: str) -> None:
        with pytest.raises(InvalidInput):  # when the processes end
            reader.candidate(version, lambda: bytes(2**21), LIMITS)

    monkeypatch.setattr(reading, "parse_upload", sleep_on_large)
    with closing(ReadUploads(10**9, max_s=600.0)) as reader:
        large = [
            threading.Thread(target=wait, args=(str(number),), daemon=True) for number in range(4)
        ]
        for each in large:
            each.start()
        assert reader.candidate("small", flowers, LIMITS).num_rows == 60
        assert all(each.is_alive() for each in large)


def test_equal_files_are_read_once_and_cached_by_last_use():
    class Counting:
        def schedule(self, work, arguments, timeout_s):
            found: Future = Future()
            asked.append(arguments[1][0])
            found.set_result((tables[asked[-1]], 40))
            return found

    asked: list[bytes] = []
    tables = {name: parse_upload(flowers()) for name in (b"a", b"b", b"c")}
    uploads: Any = ReadUploads(100)
    uploads._small = Counting()
    for version in "ababcab":
        assert uploads.candidate(version, version.encode, LIMITS) is tables[version.encode()]
    assert asked == [b"a", b"b", b"c", b"a", b"b"]


def test_small_file_that_expands_is_refused_by_its_size(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    found = upload_limits()
    assert 4 * found.max_values <= PROFILES["hosted"].max_upload_bytes
    rows = found.max_values // 4096 + 1
    big = arrays(x=np.zeros((rows, 4096), np.int8), y=np.arange(rows) % 2)
    assert len(big) < 2**16
    candidate = parse_upload(big, found)
    with pytest.raises(InvalidInput, match="numbers in all inputs together"):
        clean_upload(candidate, suggested_choices(candidate), found)


@pytest.mark.slow
def test_a_server_that_has_read_a_file_ends():
    code = """
from linearity_lab.dashboard.jobs.uploads import read_uploads
from linearity_lab.data.uploads import Limits
read_uploads().candidate("1", lambda: b"a,b\\n1,2\\n3,4\\n", Limits())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_server_freezes_loaded_objects_before_any_page(monkeypatch):
    monkeypatch.setattr(garbage, "_SETTLED", set())
    gc.unfreeze()
    try:
        garbage.collect_garbage("a page")
        assert gc.get_freeze_count() == 0
        garbage.settle()
        first = gc.get_freeze_count()
        assert first > 0
        garbage.collect_garbage("another page")
        assert gc.get_freeze_count() <= first
    finally:
        gc.unfreeze()


def test_old_garbage_waits_a_minute_young_garbage_does_not(monkeypatch):
    # Streamlit's collection after every run.
    assert config.get_option("runner.postScriptGC") is False
    counted: list[tuple[float, int]] = []
    now = 0.0
    monkeypatch.setattr(gc, "collect", lambda generation=2: counted.append((now, generation)))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(garbage, "_SETTLED", {"hessian"})
    monkeypatch.setattr(garbage, "_collected_at", 0.0)
    monkeypatch.setattr(garbage.time, "monotonic", lambda: now)
    for second in range(100, 191, 10):
        now = float(second)
        garbage.collect_garbage("hessian")
    assert [at for at, generation in counted if generation == 2] == pytest.approx([100, 160])
    assert len(counted) == 10
    garbage.collect_garbage("dag")  # the first drawing of a page collects what it loaded
    assert counted[10:] == [(190, 2)]


def test_what_uploads_took_goes_back_to_the_system():
    program = """
import psutil, sys
from linearity_lab.memory import keep_memory_returnable, return_freed_memory
def mib(): return psutil.Process().memory_info().rss / 2**20
if sys.argv[1] == "kept":
    keep_memory_returnable()
bytearray(24 * 2**20)  # glibc: from now on blocks of this size come from the heap
rest, held, stays = mib(), [], []
for _ in range(32):
    held.append(b"x" * 2**21)
    stays.append(b"x" * 4000)
held.clear()
if sys.argv[1] == "returned":
    return_freed_memory()
print(mib() - rest)
"""
    grown = {}
    for way in ("kept", "returned", "neither"):
        run = subprocess.run(
            [sys.executable, "-c", program, way], capture_output=True, text=True, check=True
        )
        grown[way] = float(run.stdout)
    assert max(grown["kept"], grown["returned"]) < 4
    assert grown["neither"] > 10 or platform.libc_ver()[0] != "glibc"


@pytest.mark.long
@pytest.mark.parametrize("gap", ["0.5", "NA"])
def test_largest_table_is_read_within_the_limits_of_a_parser(gap):
    """Four million different decimals, with the memory and processor time of a parser."""
    numbers = np.random.default_rng(0).normal(size=(MAX_CELLS // 100, 100))
    lines = [",".join(f"c{column}" for column in range(100))]
    for row in numbers[1:].tolist():
        lines.append(",".join(f"{value:.9f}" for value in row))
    lines.append(",".join([gap] * 100))
    data = "\n".join(lines).encode()
    limits = Limits(max_bytes=2**26)
    # Other work on the machine may slow the process, so that its time is measured here.
    with closing(ReadUploads(10**9, max_s=600)) as uploads:
        found = uploads.candidate("largest", lambda: data, limits)
    started = time.process_time()
    parse_upload(data, limits)
    assert time.process_time() - started < reading.MAX_READING_S
    assert isinstance(found, Table)
    assert found.num_rows == len(numbers)
    assert all(column.kind == "number" for column in found.columns)
    assert found.columns[0].num_missing == (gap == "NA")


def test_refusals_hold_no_bytes_of_their_files(uploads):
    refused = []
    with _counted_bytes(2**20 + 1) as count:
        for number in range(3):
            data = bytes(2**20) + bytes([number])
            with pytest.raises(InvalidInput) as error:
                uploads.candidate(f"zeros {number}", lambda data=data: data, LIMITS)
            refused.append(error.value.with_traceback(None))
        assert count() >= 1  # `data`
        del data, error
        gc.collect()
        assert len(refused) == 3
        assert count() <= 1  # the pool keeps its last task


def test_dropped_file_of_a_session_is_freed_and_named():
    file = io.BytesIO(bytes(2**20))
    read = reading.show_file("a file", file, 2**20)
    assert read() is read()  # no copies
    reading.drop_file("a file")
    assert file.getvalue() == b""
    with pytest.raises(InvalidInput, match=r"this busy server has dropped .* a new upload"):
        read()


@pytest.mark.slow
def test_waiting_files_hold_no_bytes():
    class OneAtATime:
        def schedule(self, work, arguments, timeout_s):
            all_wait.wait(60)
            most.append(count())
            found: Future = Future()
            found.set_result((parse_upload(flowers()), 40))
            return found

    def read():
        reads.append(1)
        if len(reads) == 5:  # the lengths of all four, and the bytes of the first
            all_wait.set()
        return bytes(2**21)

    reads: list[int] = []
    all_wait = threading.Event()
    most: list[int] = []
    uploads: Any = ReadUploads(10**9)
    uploads._large = OneAtATime()
    with _counted_bytes(2**21) as count, ThreadPoolExecutor(4) as threads:
        for number in range(4):
            threads.submit(uploads.candidate, str(number), read, LIMITS)
    assert len(most) == 4
    assert max(most) <= 2  # the file itself, and one whose length a thread is asking


@contextmanager
def _counted_bytes(length: int) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the kept bytes objects of this length made since then.

    Allocations are traced, since a walk over all objects of the process meets tuples that
    other threads are building, which CPython then refuses to finish (SystemError).
    """
    size = sys.getsizeof(bytes(length))

    def count() -> int:
        snapshot = tracemalloc.take_snapshot()
        return sum(trace.size == size for trace in snapshot.traces)

    tracemalloc.start()
    try:
        yield count
    finally:
        tracemalloc.stop()
