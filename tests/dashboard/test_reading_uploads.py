"""Parsing of uploads: separate processes, limits of time and memory, a bounded cache."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from linearity_lab.components.own_data import upload_limits
from linearity_lab.jobs import uploads as reading
from linearity_lab.jobs.profile import PROFILES
from linearity_lab.jobs.uploads import ReadUploads
from ntk_core.data.uploads import BadLine, Limits, Table, clean_upload, parse_upload, suggested_choices
from ntk_core.errors import InvalidInput
from tests.data.uploads.files import arrays, blobs, flowers, pets

LIMITS = Limits()


@pytest.fixture(scope="module")
def make_uploads():
    made = []

    def make(*given, **named):
        made.append(ReadUploads(*given, **named))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def uploads(make_uploads):
    return make_uploads(10**9)


@pytest.mark.parametrize("data", [flowers(), blobs(), pets()], ids=["table", "arrays", "images"])
def test_the_process_reads_what_this_one_would_have_read(uploads, data):
    candidate = uploads.candidate(str(hash(data)), lambda: data, LIMITS)
    choices = suggested_choices(candidate)
    assert choices == suggested_choices(parse_upload(data))
    found = uploads.cleaned(str(hash(data)), lambda: data, choices, LIMITS)
    expected = clean_upload(parse_upload(data), choices)
    assert (found.x == expected.x).all()
    assert found.counts == expected.counts
    assert uploads.candidate(str(hash(data)), lambda: pytest.fail("read twice"), LIMITS) is candidate


def test_a_refusal_comes_over_as_it_is(uploads):
    with pytest.raises(InvalidInput, match=r"file: array x, of Python objects \(a pickle\)"):
        uploads.candidate("pickle", lambda: arrays(x=np.array([{}], object)), LIMITS)
    with pytest.raises(BadLine, match="Line 3 has 3 values; the header has 2 columns"):
        uploads.candidate("uneven", lambda: b"a,b\n1,2\n1,2,3\n", LIMITS)


def test_slow_file_is_abandoned_and_the_next_one_is_read(make_uploads):
    uploads = make_uploads(10**9, max_s=0.001)
    rows = flowers(num_rows=20_000)
    with pytest.raises(InvalidInput, match=r"one that can be read within 0\.001 s"):
        uploads.candidate("slow", lambda: rows, LIMITS)
    uploads._max_s = 60.0
    assert uploads.candidate("slow", lambda: rows, LIMITS).num_rows == 20_000


def test_file_over_memory_is_refused_and_the_next_one_read(make_uploads):
    uploads = make_uploads(10**9, max_bytes=2**28)
    zeros = arrays(**{f"x{index}": np.zeros((512, 2**15), np.int8) for index in range(8)})
    with pytest.raises(InvalidInput, match=r"and 0\.25 GiB of memory"):
        uploads.candidate("hungry", lambda: zeros, Limits(max_unpacked_bytes=2**29))
    assert isinstance(uploads.candidate("table", flowers, LIMITS), Table)


def sleep_on_large(data, limits):
    time.sleep(600 if len(data) > 2**20 else 0)
    return parse_upload(data, limits)


def test_small_file_does_not_wait_for_large_ones(make_uploads, monkeypatch):
    monkeypatch.setattr(reading, "parse_upload", sleep_on_large)
    uploads = make_uploads(10**9, max_s=600.0)
    large = [threading.Thread(target=_wait_for, args=(uploads, str(number)), daemon=True) for number in range(4)]
    for each in large:
        each.start()
    assert uploads.candidate("small", flowers, LIMITS).num_rows == 60
    assert all(each.is_alive() for each in large)


def _wait_for(uploads: ReadUploads, version: str) -> None:
    with pytest.raises(InvalidInput):  # when the processes end
        uploads.candidate(version, lambda: bytes(2**21), LIMITS)


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


@pytest.mark.parametrize("name", PROFILES)
def test_small_file_that_expands_is_refused_by_its_size(name, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", name)
    found = upload_limits()
    assert 4 * found.max_values <= PROFILES[name].max_upload_bytes
    rows = found.max_values // 4096 + 1
    big = arrays(x=np.zeros((rows, 4096), np.int8), y=np.arange(rows) % 2)
    assert len(big) < 2**16
    candidate = parse_upload(big, found)
    with pytest.raises(InvalidInput, match="numbers in all inputs together"):
        clean_upload(candidate, suggested_choices(candidate), found)


def test_a_server_that_has_read_a_file_ends():
    code = """
from linearity_lab.jobs.uploads import read_uploads
from ntk_core.data.uploads import Limits
read_uploads().candidate("1", lambda: b"a,b\\n1,2\\n3,4\\n", Limits())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
