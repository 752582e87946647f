"""Runs as one file: whole ones come back as they were, anything else is named and left aside."""

from __future__ import annotations

import io
import json

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.runs import digest
from ntk_core.runs.store import Store, _run_file, read_runs, write_runs
from ntk_core.runs.store._entries import sha
from tests.runs.store.made_runs import SPEC, point, result, spec


@pytest.fixture
def other(tmp_path):
    store = Store(tmp_path / "other.sqlite")
    yield store
    store.close()


@pytest.fixture
def lines(tmp_path) -> list[bytes]:
    """A header and a completed run."""
    store, file = Store(tmp_path / "lines.sqlite"), io.BytesIO()
    store.save_result(result())
    assert write_runs(store, [digest(SPEC)], file) == 1
    store.close()
    return file.getvalue().splitlines(keepends=True)


def signed(line: bytes, **changes: object) -> bytes:
    """The line with these changes and a SHA-256 that matches them."""
    data = {**json.loads(line), **changes}
    del data["sha256"]
    return _run_file._canonical({**data, "sha256": sha(_run_file._canonical(data))}).encode() + b"\n"


def test_exported_runs_come_back_as_they_were(store, other):
    store.save_result(result())
    store.save_result(result("cancelled", spec=spec(1)))
    store.points(spec(2)).save("width=20", point(20))
    file = io.BytesIO()
    assert write_runs(store, [digest(spec(number)) for number in (0, 1, 2, 3)], file) == 3
    file.seek(0)
    back = read_runs(other, file)
    assert (back.digests, back.num_left_aside) == (tuple(digest(spec(number)) for number in (0, 1, 2)), 0)
    assert other.result(digest(SPEC)) == result()
    assert other.result(digest(spec(1))) == result("cancelled", spec=spec(1))
    assert other.points_of(digest(spec(2))) == {"width=20": point(20)}
    assert {run.imported for run in other.runs().runs} == {True}
    assert {run.imported for run in store.runs().runs} == {False}


def test_what_is_here_already_stays(other, lines):
    other.points(SPEC).save("width=10", point(10, change=0.125))
    read_runs(other, io.BytesIO(b"".join(lines)))
    assert other.points_of(digest(SPEC)) == {"width=10": point(10, change=0.125), "width=20": point(20)}
    assert [(run.status, run.imported) for run in other.runs().runs] == [("completed", True)]
    read_runs(other, io.BytesIO(b"".join(lines)))
    assert other.runs().total == 1


def test_a_damaged_line_costs_no_other_run(other, store, lines):
    store.save_result(result(spec=spec(9)))
    file = io.BytesIO()
    write_runs(store, [digest(spec(9))], file)
    whole = file.getvalue().splitlines(keepends=True)[1]
    damaged = lines[1].replace(b"0.5", b"0.6", 1)
    back = read_runs(other, io.BytesIO(lines[0] + damaged + b"\n" + whole + lines[1][:200]))
    assert back.digests == (digest(spec(9)),)
    assert back.num_left_aside == 2
    assert back.left_aside[0] == "line 2: damaged; its SHA-256 does not match"
    assert back.left_aside[1] == "line 5: damaged; it is no JSON"


def without_points(data: dict) -> dict:
    return {"points": {}}


FORGERIES = {
    "another digest": lambda data: {"digest": "0" * 64},
    "a path for a digest": lambda data: {"digest": "../../etc/passwd"},
    "other settings": lambda data: {"spec": {**data["spec"], "seed": 5}},
    "impossible settings": lambda data: {"spec": {**data["spec"], "num_seeds": -5}},
    "settings of nothing": lambda data: {"spec": None},
    "an older version": lambda data: {"schema_version": 0},
    "a version that is none": lambda data: {"schema_version": ["x"] * 99},
    "a result without its points": without_points,
    "points that are none": lambda data: {"points": [1, 2]},
    "a point under another key": lambda data: {"points": {"width=10": data["points"]["width=20"]}, "ending": None},
    "a point of no setting": lambda data: {"points": {"width=99": data["points"]["width=20"]}, "ending": None},
    "a point that is a path": lambda data: {"points": {"../../x": data["points"]["width=20"]}, "ending": None},
    "an ending that is none": lambda data: {"ending": {"status": "won"}},
    "half a result called completed": lambda data: {"ending": {**data["ending"], "keys": ["width=10"]}},
    "numbers that are texts": lambda data: {"points": {"width=10": {**data["points"]["width=10"], "width": "x"}}},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=list(FORGERIES))
def test_a_forged_run_is_named_and_left_aside_even_with_a_matching_checksum(other, lines, forgery):
    forged = signed(lines[1], **forgery(json.loads(lines[1])))
    back = read_runs(other, io.BytesIO(lines[0] + forged))
    assert (back.digests, back.num_left_aside) == ((), 1)
    (sentence,) = back.left_aside
    assert sentence.startswith("line 2: ")
    assert len(sentence) < 120
    assert other.runs().total == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"{",
        b"[]",
        b"PK\x03\x04" + b"\0" * 400,
        b"\xff\xfe" * 99,
        b'{"format": "linearity-lab-runs", "version": 99}\n',
        b'{"format": "other"}\n',
        b"[" * 100_000,
    ],
)
def test_a_file_that_is_no_file_of_runs_is_refused_in_one_sentence(other, content):
    with pytest.raises(InvalidInput) as caught:
        read_runs(other, io.BytesIO(content))
    assert caught.value.field == "file"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"[]", b"3", b"NaN", b"9" * 5000, b"null", b"\xff", b'{"a": NaN}'])
def test_lines_that_are_no_runs_are_named(other, lines, line):
    back = read_runs(other, io.BytesIO(lines[0] + line + b"\n" + lines[1]))
    assert back.digests == (digest(SPEC),)
    assert back.left_aside[0].startswith("line 2: ")


def test_a_line_that_is_too_long_is_skipped_without_reading_it_whole(other, lines, monkeypatch):
    monkeypatch.setattr(_run_file, "MAX_LINE_BYTES", len(lines[1]))
    back = read_runs(other, io.BytesIO(lines[0] + b"x" * 300_000 + b"\n" + lines[1]))
    assert back.digests == (digest(SPEC),)
    assert "longer than" in back.left_aside[0]


def test_a_file_that_is_too_large_is_refused(other, lines):
    with pytest.raises(InvalidInput, match="at most 1,000 bytes"):
        read_runs(other, io.BytesIO(b"".join(lines)), max_bytes=1000)


def test_only_the_first_twenty_damaged_lines_are_named(other, lines):
    back = read_runs(other, io.BytesIO(lines[0] + b"x\n" * 500))
    assert (len(back.left_aside), back.num_left_aside) == (20, 500)
