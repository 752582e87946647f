"""Files are read by a process of its own, within time and memory, and what was read is kept once, within bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from linearity_lab.jobs import wire
from linearity_lab.jobs.profile import PROFILES
from linearity_lab.jobs.uploads import BoundedCache, Reader, ReadUploads, SmallestFirst
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
    uploads = ReadUploads(reader, 10**9)
    candidate = uploads.candidate("v", lambda: data, LIMITS, "")
    choices = suggested_choices(candidate)
    assert choices == suggested_choices(parse_upload(data))
    found, expected = uploads.cleaned("v", lambda: data, choices, LIMITS, ""), clean_upload(parse_upload(data), choices)
    assert (found.x == expected.x).all()
    assert found.counts == expected.counts
    assert uploads.candidate("v", lambda: pytest.fail("read twice"), LIMITS, "") is candidate


def test_a_refusal_comes_over_as_it_is(reader):
    with pytest.raises(InvalidInput, match=r"file: array x, of Python objects \(a pickle\)"):
        reader.ask("parse", arrays(x=np.array([{}], object)), LIMITS)


def test_a_file_that_takes_too_long_is_given_up_and_the_next_one_is_read():
    slow = Reader(max_reading_s=0.001)  # less than a process takes to start
    with pytest.raises(InvalidInput, match="one that can be read within"):
        slow.ask("parse", flowers(), LIMITS)
    slow._max_reading_s = 60.0
    found, num_bytes = slow.ask("parse", flowers(), LIMITS)
    assert (found.num_rows, num_bytes > 1000) == (60, True)
    slow.close()


def test_a_file_whose_reading_ends_the_process_is_given_up_in_a_sentence():
    failing = _failing()
    with pytest.raises(InvalidInput, match="2 GiB of memory"):
        failing.ask("parse", b"")
    failing.close()


def _failing() -> Reader:
    class Failing(Reader):
        def _started(self):
            process = super()._started()
            wire.send(process.stdin, ("clean", None, None, None, None, None))  # ends the process: no such call
            return process

    return Failing()


def test_equal_files_of_two_people_are_kept_once_and_the_heaviest_owner_makes_room():
    cache = BoundedCache(100)
    cache.put("anna", "a", 30, "10.0.0.1")
    for index in range(20):
        cache.put(("ben", index), "b", 20, "10.0.0.2")
        assert cache.num_bytes <= 100
    assert cache.get("anna") == "a"
    assert [cache.get(("ben", index)) for index in (0, 19)] == [None, "b"]
    cache.put("huge", "c", 101, "10.0.0.3")
    assert cache.get("huge") is None
    assert cache.get("anna") == "a"


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
def test_a_small_file_that_becomes_much_is_refused_by_what_it_becomes(limits, monkeypatch):
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
    lock, order = SmallestFirst(), []
    sizes = [9_000, 8_000_000, 20, 300]

    def read(size: int) -> None:
        with lock.held(size):
            order.append(size)

    with lock.held(0):
        waiting = [threading.Thread(target=read, args=(size,)) for size in sizes]
        for each in waiting:
            each.start()
        while len(lock._waiting) < len(sizes):
            time.sleep(0.001)
    for each in waiting:
        each.join(10)
    assert order == sorted(sizes)
