"""Stores, exports and directories that released versions wrote.

Listed, shown, compared, exported and resumed.

``tests/runs/stores/VERSION`` holds the files of each released version.
"""

import json
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from linearity_lab.charts.chart import comparison_of
from linearity_lab.cli import main
from linearity_lab.dashboard.pages.results.compared_runs import measures_of, overlay
from linearity_lab.runs import EXPERIMENTS, run, run_summary
from linearity_lab.runs.events import PointFinished
from linearity_lab.runs.store import Mark, Reading, Store, read_line
from linearity_lab.runs.store._database import APPLICATION_ID, LAYOUT

RELEASED = sorted(
    path for path in (Path(__file__).parents[1] / "stores").iterdir() if path.is_dir()
)
# Versions whose file has another layout, in bytes 60 to 64.
EARLIER_LAYOUTS = [
    path for path in RELEASED if int.from_bytes((path / "runs.sqlite").read_bytes()[60:64]) < LAYOUT
]
# Runs of the user's own models are resumed by the command that computed them.
OWN = ("own_model", "linearity_report")
# How many experiments a released version had; all of them have runs in its store.
NUM_EXPERIMENTS = {"0.2.0": 14, "0.3.0": 17}


@dataclass(frozen=True)
class Written:
    """A run as the released version listed it."""

    digest: str
    experiment: str
    status: str
    keys: tuple[str, ...]
    num_points: int
    private: bool

    def __str__(self) -> str:
        return f"{self.experiment}-{self.status}{'-private' * self.private}"


def written_runs(folder: Path) -> list[Written]:
    found = []
    for facts in json.loads((folder / "runs.json").read_text()):
        found.append(Written(**{**facts, "keys": tuple(facts["keys"])}))
    return found


CASES = [
    pytest.param(folder, each, id=f"{folder.name}-{each}")
    for folder in RELEASED
    for each in written_runs(folder)
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Stores of all released versions, each opened once by this version."""
    stores = {}
    for folder in RELEASED:
        file = tmp_path_factory.mktemp(folder.name) / "runs.sqlite"
        shutil.copy(folder / "runs.sqlite", file)
        stores[folder] = Store(file)
    yield stores
    for store in stores.values():
        store.close()


@pytest.mark.parametrize("folder", RELEASED, ids=lambda folder: folder.name)
def test_every_run_is_listed(opened, folder):
    expected = written_runs(folder)
    stored = {each.experiment for each in expected}
    assert stored <= {*EXPERIMENTS, *OWN}
    assert len(stored) == NUM_EXPERIMENTS[folder.name]
    listed = opened[folder].runs(limit=1000).runs
    assert all(entry.reading is Reading.READABLE for entry in listed)
    found = sorted((entry.experiment, entry.status, entry.num_points) for entry in listed)
    assert found == sorted((each.experiment, each.status, each.num_points) for each in expected)
    assert sum(entry.private for entry in listed) == sum(each.private for each in expected)


@pytest.mark.parametrize(("folder", "written"), CASES)
def test_run_is_found_by_its_earlier_digest(opened, folder, written):
    store = opened[folder]
    assert len(store.find(written.digest[:12])) == 1
    spec = store.spec(written.digest)
    assert spec is not None
    assert (spec.experiment, spec.point_keys()) == (written.experiment, written.keys)
    points = store.points_of(written.digest)
    assert len(points) == written.num_points
    assert set(points) <= set(written.keys)
    result = store.result(written.digest)
    if written.status == "started":
        assert result is None
    else:
        assert result is not None
        assert result.status == written.status
        assert run_summary(spec, result.points)
        assert comparison_of(spec).measures


@pytest.mark.parametrize(("folder", "written"), CASES)
def test_stored_numbers_are_drawn_in_comparisons(opened, folder, written):
    """Two copies of a run share one figure by each measure of its experiment,
    and both are in it.
    """
    result = opened[folder].result(written.digest)
    if result is None or not result.points:
        return
    runs = [("A", result), ("B", result)]
    how = comparison_of(result.spec)
    measures = measures_of(runs, how)
    assert measures
    for measure in measures:
        chart = overlay(runs, how.axes[0], measure, None)
        names = {trace.legendgroup or trace.name for trace in chart.figure.data}
        assert any(name.startswith("A") for name in names if name), measure
        assert any(name.startswith("B") for name in names if name), measure


@pytest.mark.parametrize(("folder", "written"), CASES)
def test_numbers_are_those_of_the_export(opened, folder, written):
    if written.status == "started":
        return
    result = opened[folder].result(written.digest)
    for line in (folder / "runs.jsonl").read_text().splitlines():
        exported = read_line(line)
        if exported.spec == result.spec:
            # By their JSON: NaN, which a bound may be, differs from itself.
            stored = [point.model_dump_json() for point in result.points]
            assert [point.model_dump_json() for point in exported.points] == stored
            return
    raise AssertionError("the export lacks the run")


@pytest.mark.parametrize(("folder", "written"), CASES)
def test_stored_points_are_resumed(opened, folder, written):
    if written.experiment in OWN or written.private:
        return  # computed from files of the user
    store = opened[folder]
    spec = store.spec(written.digest)
    resumed = []
    for event in run(spec, points=store.points(spec), should_stop=lambda: True):
        if isinstance(event, PointFinished):
            assert event.resumed
            resumed.append(event.key)
    assert len(resumed) == written.num_points


@pytest.mark.long  # trains; the store itself is read by the tests beside it
@pytest.mark.parametrize("folder", RELEASED, ids=lambda folder: folder.name)
def test_command_line_shows_exports_and_resumes(folder, tmp_path, monkeypatch, capsys):
    file = tmp_path / "runs.sqlite"
    shutil.copy(folder / "runs.sqlite", file)
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(file))
    written = written_runs(folder)
    assert main(["list", "--limit", "100"]) == 0
    assert f"{len(written)} runs" in capsys.readouterr().out
    for each in written:
        assert main(["show", each.digest[:12]]) == 0
        printed = capsys.readouterr().out
        assert "as stored" not in printed
        if each.status == "completed":
            assert main(["export", each.digest[:12], "--out", str(tmp_path / "one.csv")]) == 0
            assert (tmp_path / "one.csv").read_text().count("\n") > 1
    assert main(["export", "--all", "--out", str(tmp_path / "all.jsonl")]) == 0
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert len(lines) == sum(each.num_points > 0 for each in written)
    half = next(
        each for each in written if each.experiment == "kernel_change" and len(each.keys) > 1
    )
    assert main(["resume", half.digest[:12], "--no-json"]) == 0
    assert f"{half.keys[0]} resumed" in capsys.readouterr().err


@pytest.mark.parametrize("folder", RELEASED, ids=lambda folder: folder.name)
def test_exports_and_directories_are_read(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "new.sqlite"))
    assert main(["import", str(folder / "runs.jsonl")]) == 0
    count = len((folder / "runs.jsonl").read_text().splitlines())
    assert f"{count} runs imported, 0 skipped." in capsys.readouterr().out
    directories = sorted((folder / "out").iterdir())
    assert directories
    for directory in directories:
        result = read_line((directory / "run.jsonl").read_text())
        assert main(["show", str(directory)]) == 0
        assert result.status in capsys.readouterr().out


@pytest.mark.parametrize("folder", RELEASED, ids=lambda folder: folder.name)
def test_marks_and_jobs_are_kept(opened, folder):
    store = opened[folder]
    (digest,) = store.find(written_runs(folder)[0].digest)
    assert store.marks() == {digest: Mark("first run", "a note\nof two lines", True)}
    (job,) = store.unfinished_jobs()
    assert (job.owner, job.spent_s, job.allowed_s) == ("owner", 2.0, 60.0)


@pytest.mark.parametrize("folder", EARLIER_LAYOUTS, ids=lambda folder: folder.name)
def test_migration_keeps_a_copy_of_the_earlier_file(folder, tmp_path):
    file = tmp_path / "runs.sqlite"
    shutil.copy(folder / "runs.sqlite", file)
    Store(file).close()
    Store(file).close()
    (copy,) = tmp_path.glob("runs.sqlite.layout-*")
    earlier = sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)
    original = sqlite3.connect(f"{(folder / 'runs.sqlite').as_uri()}?mode=ro&immutable=1", uri=True)
    for table in ("lab_results", "lab_points", "lab_jobs"):
        query = f"SELECT * FROM {table} ORDER BY digest"
        assert earlier.execute(query).fetchall() == original.execute(query).fetchall()
    earlier.close()
    original.close()
    header = file.read_bytes()[:100]
    assert int.from_bytes(header[60:64]) == LAYOUT
    assert int.from_bytes(header[68:72]) == APPLICATION_ID
