"""Stored runs by the command line: list, show, resume, export, import, delete.

Directories of runs.
"""

import csv
import io
import json
import sys
from collections import Counter

import pytest

from linearity_lab.citation import cite_run
from linearity_lab.cli import main
from linearity_lab.cli.run_directory import RunDirectory
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.runs import spec_digest
from linearity_lab.runs.events import parse_event
from linearity_lab.runs.store import Mark, Store, UnfinishedJob
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import SPEC, point, result, rewrite_settings, spec


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "lab.sqlite"))
    store = Store()
    store.save_result(result())
    store.save_result(result("cancelled", spec=spec(7)))
    yield store
    store.close()


def refused(capsys, *arguments: str) -> str:
    """The single-sentence error of a command that must end with exit code 2."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    return line


def test_runs_are_listed_with_differing_settings(store, capsys):
    assert main(["list"]) == 0
    first, second, total = capsys.readouterr().out.splitlines()
    assert first.split()[:3] == [spec_digest(spec(7))[:12], "cancelled", "1/2"]
    assert second.split()[:3] == [spec_digest(SPEC)[:12], "completed", "2/2"]
    assert second.endswith("kernel_change: 2 widths, 10 to 20")
    assert total.startswith("2 runs, 0.0 of 2,000 MB")
    assert main(["list", "--status", "completed", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["digest"] == spec_digest(SPEC)
    assert json.loads(line)["spec"] == SPEC.model_dump(mode="json")
    assert main(["list", "--search", '"seed":7', "--limit", "1"]) == 0
    assert spec_digest(spec(7))[:12] in capsys.readouterr().out


def test_run_is_shown_and_cited_by_digest_prefix(store, capsys):
    assert main(["show", spec_digest(SPEC)[:8]]) == 0
    assert "completed, 2 of 2 points" in capsys.readouterr().out
    assert main(["show", spec_digest(SPEC).upper(), "--cite"]) == 0
    assert capsys.readouterr().out == cite_run(result()) + "\n"
    assert main(["show", spec_digest(SPEC)[:8], "--bibtex"]) == 0
    assert "@software{" in capsys.readouterr().out


@pytest.mark.slow  # trains; resuming is also tested without the command line
def test_a_stopped_run_is_resumed_from_its_points(store, capsys):
    assert main(["resume", spec_digest(spec(7))[:8], "--no-json"]) == 0
    printed = capsys.readouterr()
    assert "width=10 resumed" in printed.err
    assert "width=20 finished" in printed.err
    found = store.result(spec_digest(spec(7)))
    assert found.status == "completed"
    assert found.points[0] == point(10)
    assert [keys for _, keys in found.origins] == [("width=10",), ("width=20",)]


def test_runs_are_exported_and_imported_as_one_file(store, capsys, tmp_path, monkeypatch):
    file = tmp_path / "runs.jsonl"
    assert main(["export", "--all", "--out", str(file)]) == 0
    assert capsys.readouterr().err == f"2 of 2 runs written to {file}.\n"
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "other.sqlite"))
    with file.open("ab") as out:
        out.write(b"{}\n")
    assert main(["import", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == "2 runs imported, 1 skipped.\n"
    assert printed.err.startswith("line 3: ")
    assert main(["show", spec_digest(SPEC)[:8]]) == 0
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_one_run_is_exported_in_every_format(store, tmp_path):
    for kind in ("json", "csv", "py", "ipynb", "html"):
        assert main(["export", spec_digest(SPEC)[:8], "--out", str(tmp_path / f"one.{kind}")]) == 0
    assert KernelChangeResult.model_validate_json((tmp_path / "one.json").read_bytes()) == result()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "one.csv").read_text())))
    assert [row["width"] for row in rows] == ["10", "20"]
    assert (
        f'linearity_lab.experiments.spec_digest(spec) == "{spec_digest(SPEC)}"'
        in (tmp_path / "one.py").read_text()
    )
    assert (
        spec_digest(SPEC) in json.loads((tmp_path / "one.ipynb").read_text())["cells"][1]["source"]
    )
    page = (tmp_path / "one.html").read_text()
    assert "Plotly.newPlot" in page
    assert spec_digest(SPEC)[:12] in page


def test_deleted_runs_are_gone_and_an_unknown_one_deletes_none(store, capsys):
    assert "0000" in refused(capsys, "delete", spec_digest(SPEC)[:8], "0000")
    assert store.runs().total == 2
    assert main(["delete", spec_digest(SPEC)[:8], spec_digest(spec(7))]) == 0
    assert store.runs().total == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["show", "abcdef0123"], "as `list` shows it"),
        (["resume", "abcdef0123"], "as `list` shows it"),
        (["resume", "/nowhere/at/all"], "DIR_OR_DIGEST: "),
        (["resume", "a\0b"], "DIR_OR_DIGEST: "),
        (["list", "--limit", "0"], "from 1 to 100,000"),
        (["list", "--status", "won"], "one of completed"),
        (["export", "--out", "x.jsonl"], "or --all"),
        (["import", "/nowhere"], "No such file"),
        (["import", "/dev/zero"], "ordinary file"),
        (["gallery", "nothing"], "one of explore, liu-fig1-left"),
    ],
)
def test_whatever_is_wrong_is_one_sentence(store, capsys, arguments, part):
    assert part in refused(capsys, *arguments)


def test_unfinished_runs_are_shown_and_bad_exports_refused(store, capsys, tmp_path):
    known, two = spec_digest(SPEC)[:8], (spec_digest(SPEC)[:8], spec_digest(spec(7))[:8])
    assert ".jsonl" in refused(capsys, "export", known, "--out", "x.zip")
    for kind in ("csv", "py"):
        assert ".jsonl" in refused(capsys, "export", *two, "--out", f"x.{kind}")
    for kind in ("csv", "jsonl"):
        assert "written" in refused(capsys, "export", known, "--out", f"/proc/x.{kind}")
    (tmp_path / "x.jsonl").write_bytes(b"PK\x03\x04")
    assert refused(capsys, "import", str(tmp_path / "x.jsonl")).startswith("FILE: ")
    store.points(spec(9)).save("width=10", point(10))
    assert "has ended" in refused(
        capsys, "export", spec_digest(spec(9))[:8], "--out", str(tmp_path / "x.csv")
    )
    assert "has ended" in refused(capsys, "show", spec_digest(spec(9))[:8], "--cite")
    assert main(["show", spec_digest(spec(9))[:8]]) == 0
    assert "Not finished: 1 of 2 points." in capsys.readouterr().out


def test_stdout_decides_between_text_and_json(store, capsys, monkeypatch):
    assert main(["resume", spec_digest(SPEC)[:8]]) == 0
    events = [parse_event(line) for line in capsys.readouterr().out.splitlines()]
    assert [event.resumed for event in events if event.kind == "point_finished"] == [True, True]
    assert store.result(spec_digest(SPEC)).provenance == result().provenance
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["resume", spec_digest(SPEC)[:8]]) == 0
    printed = capsys.readouterr()
    assert printed.out.split()[:2] == ["width", "m"]
    assert "████████████████████████ 100%" in printed.err


def test_digits_that_begin_several_runs_are_not_enough(store, capsys):
    digests = {seed: spec_digest(spec(seed)) for seed in range(100, 900)}
    ((begin, count),) = Counter(digest[:4] for digest in digests.values()).most_common(1)
    assert count > 1
    for seed in [seed for seed, digest in digests.items() if digest.startswith(begin)]:
        store.save_spec(spec(seed))
    assert "more digits; it begins " in refused(capsys, "show", begin)


def test_the_command_line_lists_and_ends_jobs(store, capsys):
    store.write_jobs(
        [UnfinishedJob(SPEC, "client", 1.0, running=True, spent_s=12.0, allowed_s=60.0)]
    )
    assert main(["jobs"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == [spec_digest(SPEC)[:16], "running"]
    assert "12 s of 60 s" in line
    assert "--end" in refused(capsys, "jobs", "--end", "0" * 8)
    assert not store.unfinished_jobs()[0].ending
    assert main(["jobs", "--end", spec_digest(SPEC)[:8]]) == 0
    assert main(["jobs", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["ending"], reported["experiment"]) == (True, "kernel_change")


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path / "new" / "run")


def test_directory_keeps_one_run_intact(directory):
    assert directory.begin(SPEC) is None
    with pytest.raises(InvalidInput, match="No such file"):
        directory.result()
    for status in ("cancelled", "completed"):
        directory.write(result(status))
        assert directory.result() == directory.begin(SPEC) == result(status)
        assert (directory.path / "points.csv").read_text() == result(status).csv()
    with pytest.raises(InvalidInput, match="earlier run of the same settings"):
        directory.begin(spec(7))
    path = directory.path / "run.jsonl"
    path.write_text(path.read_text().replace("0.5", "0.1"))
    with pytest.raises(InvalidInput, match="SHA-256 does not match"):
        directory.result()


def test_full_disk_leaves_nothing_half_written(directory, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    directory.begin(SPEC)
    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InvalidInput, match="No space left"):
        directory.write(result())
    assert list(directory.path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('"schema_version":3', '"schema_version":99', "of a newer version"),
        ('"schema_version":3', '"schema_version":1', "of an older version"),
        ('"kernel_change"', '"kernel_gone"', "of another version"),
        ('"num_seeds"', '"num_gone"', "of another version"),
    ],
)
def test_run_of_another_version_keeps_its_numbers(store, tmp_path, capsys, old, new, word):
    run = spec_digest(SPEC)
    store.write_mark(run, Mark("thesis"))
    rewrite_settings(store, run, old, new)
    assert main(["list"]) == 0
    assert word in capsys.readouterr().out
    assert main(["show", run[:8]]) == 0
    shown = capsys.readouterr().out
    assert "thesis" in shown
    assert word in shown
    assert "damaged" not in shown
    assert "width=10,runs.0.change.1,0.5" in shown
    for suffix in ("csv", "json", "jsonl"):
        assert main(["export", run[:8], "--out", str(tmp_path / f"one.{suffix}")]) == 0
    assert "width=20,runs.0.change.1,0.5" in (tmp_path / "one.csv").read_text()
    assert len(json.loads((tmp_path / "one.json").read_text())["points"]) == 2
    assert main(["import", str(tmp_path / "one.jsonl")]) == 1
    assert "line 1: " in capsys.readouterr().err
    assert word in refused(capsys, "resume", run[:8])
