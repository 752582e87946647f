"""A run's directory: atomic files, resumable, never mixed with another run."""

from __future__ import annotations

import hashlib

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.result import KernelChangePoint, KernelChangeResult, KernelChangeRun
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Provenance
from ntk_core.runs.run_directory import RunDirectory

SPEC = KernelChangeSpec(widths=(10, 20), num_seeds=1)


def point(width: int) -> KernelChangePoint:
    run = KernelChangeRun(
        output="linear",
        seed=0,
        learning_rate=0.1,
        outcome="converged",
        steps=(0, 3),
        change=(0.0, 0.5),
        loss=(1.0, 0.02),
    )
    return KernelChangePoint(width=width, num_params=7 * width, runs=(run,), runtime_s=0.1)


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path / "new" / "run")


def test_points_are_found_again_in_order(directory):
    points = directory.begin(SPEC)
    points.save("width=20", point(20))
    points.save("width=10", point(10))
    assert directory.begin(SPEC).finished() == {"width=10": point(10), "width=20": point(20)}
    assert directory.points() == (point(10), point(20))
    assert directory.result() is None


def test_a_damaged_or_half_written_point_is_left_out(directory):
    points = directory.begin(SPEC)
    points.save("width=10", point(10))
    points.save("width=20", point(20))
    found = directory.path / "points" / "width=10.json"
    found.write_bytes(found.read_bytes()[:50])
    (directory.path / "points" / "extra.json").write_bytes(b"\xff\x00")
    assert points.finished() == {"width=20": point(20)}


def test_points_of_another_spec_are_not_taken(directory):
    directory.begin(SPEC).save("width=10", point(10))
    (directory.path / "spec.json").unlink()
    assert directory.begin(KernelChangeSpec(widths=(10,))).finished() == {}


def test_a_directory_of_another_spec_is_refused(directory):
    directory.begin(SPEC)
    with pytest.raises(InvalidInput, match="earlier run of the same settings"):
        directory.begin(KernelChangeSpec(widths=(10,)))


def test_a_key_cannot_leave_the_directory(directory):
    points = directory.begin(SPEC)
    points.save("../../escape", point(10))
    assert points.finished() == {"../../escape": point(10)}
    assert not list(directory.path.parent.glob("escape*"))


def test_a_result_is_read_as_it_was_written(directory):
    provenance = Provenance(versions={}, platform="p", device="cpu", dtype="float32", started_at="2026-01-01")
    result = KernelChangeResult(
        spec=SPEC, points=(point(10),), provenance=provenance, status="cancelled", runtime_s=1.0
    )
    directory.begin(SPEC)
    directory.finish(result)
    assert directory.result() == result
    assert (directory.path / "points.csv").read_text() == result.csv()


def test_nothing_half_written_stays_behind(directory, monkeypatch):
    points = directory.begin(SPEC)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InvalidInput, match="No space left"):
        points.save("width=10", point(10))
    assert points.finished() == {}
    assert list((directory.path / "points").iterdir()) == []


def ended(directory) -> KernelChangeResult:
    points = directory.begin(SPEC)
    for width in SPEC.widths:
        points.save(f"width={width}", point(width))
    provenance = Provenance(
        started_at="2026-01-01T00:00:00+00:00", versions={}, platform="", device="", dtype="float32"
    )
    result = KernelChangeResult(
        spec=SPEC, points=directory.points(), provenance=provenance, status="completed", runtime_s=1.0
    )
    directory.finish(result)
    return result


def test_the_checksums_are_those_that_sha256sum_reads(directory):
    ended(directory)
    lines = (directory.path / "SHA256SUMS").read_text().splitlines()
    names = ["points.csv", "points/width=10.json", "points/width=20.json", "result.json", "spec.json"]
    expected = [f"{hashlib.sha256((directory.path / name).read_bytes()).hexdigest()}  {name}" for name in names]
    assert lines == expected


def test_an_edited_result_is_refused_and_an_edited_point_is_computed_again(directory):
    result = ended(directory)
    assert directory.result() == result
    found = directory.path / "points" / "width=10.json"
    found.write_text(found.read_text().replace("0.5", "0.0"))
    assert set(directory.begin(SPEC).finished()) == {"width=20"}
    path = directory.path / "result.json"
    path.write_text(path.read_text().replace("0.5", "0.1"))
    with pytest.raises(InvalidInput, match=r"result\.json is not what SHA256SUMS says"):
        directory.result()


def test_an_edited_spec_is_refused(directory):
    directory.begin(SPEC)
    path = directory.path / "spec.json"
    path.write_text(path.read_text().replace('"num_seeds":1', '"num_seeds":2'))
    with pytest.raises(InvalidInput, match=r"spec\.json is not what SHA256SUMS says"):
        directory.spec()


def test_a_directory_of_before_there_were_checksums_can_be_shown_and_is_computed_again_when_it_goes_on(directory):
    result = ended(directory)
    (directory.path / "SHA256SUMS").unlink()
    assert directory.result() == result
    assert len(directory.points()) == 2
    assert directory.begin(SPEC).finished() == {}
