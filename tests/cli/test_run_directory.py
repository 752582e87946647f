"""A run's directory: complete files, resumable, refused for another run."""

import pytest

from ntk_core.cli.run_directory import RunDirectory
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, result, spec


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path / "new" / "run")


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_result_is_read_as_written(directory, status):
    assert directory.begin(SPEC) is None
    directory.write(result(status))
    assert directory.result() == directory.begin(SPEC) == result(status)
    assert (directory.path / "points.csv").read_text() == result(status).csv()


def test_run_of_other_settings_is_refused(directory):
    directory.begin(SPEC)
    directory.write(result())
    with pytest.raises(InvalidInput, match="earlier run of the same settings"):
        directory.begin(spec(7))


def test_changed_result_is_refused(directory):
    directory.begin(SPEC)
    directory.write(result())
    path = directory.path / "run.jsonl"
    path.write_text(path.read_text().replace("0.5", "0.1"))
    with pytest.raises(InvalidInput, match="SHA-256 does not match"):
        directory.result()


def test_empty_directory_has_no_run(directory):
    directory.begin(SPEC)
    with pytest.raises(InvalidInput, match="No such file"):
        directory.result()


def test_full_disk_leaves_nothing_half_written(directory, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    directory.begin(SPEC)
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InvalidInput, match="No space left"):
        directory.write(result())
    assert list(directory.path.iterdir()) == []
