"""Imported numbers are marked wherever the store, the command line and exports show them."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import sqlite3

import pytest

from linearity_lab.citation import bibtex, cite_run
from linearity_lab.cli import main
from linearity_lab.cli.run_directory import RunDirectory
from linearity_lab.runs import spec_digest
from linearity_lab.runs.display import result_parts
from linearity_lab.runs.store import Store, read_line, read_runs, run_line
from tests.runs.store.made_runs import (
    ROOT,
    SPEC,
    point,
    result,
    rewrite_settings,
    spec,
)

RUN = spec_digest(SPEC)
WORDS = "2 of 2 points imported from a file, not computed here"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with one imported run of two points, which is that of the command line."""
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "lab.sqlite"))
    store = Store()
    assert read_runs(store, io.BytesIO(run_line(result()).encode())).left_aside == ()
    yield store
    store.close()


def test_list_marks_the_run(store, capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("10 to 20 imported")
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["imported"] is True


def test_show_states_the_number_of_points(store, capsys):
    assert main(["show", RUN]) == 0
    assert WORDS in capsys.readouterr().out


def test_show_states_it_for_an_unfinished_run(store, capsys):
    cancelled = spec_digest(spec(5))
    store.save_result(result("cancelled", spec=spec(5)), imported=True)
    store.points(spec(6)).save("width=10", result().as_imported().points[0])
    for run, words in ((cancelled, "1 of 1 points"), (spec_digest(spec(6)), "Not finished")):
        assert main(["show", run]) == 0
        printed = capsys.readouterr().out
        assert words in printed
        assert "1 of 1 points imported from a file" in printed


def test_resume_states_it(store, capsys):
    assert main(["resume", RUN, "--no-json"]) == 0
    assert f"{WORDS}.\n" in capsys.readouterr().err
    assert store.result(RUN).num_imported == 2
    assert [run.imported for run in store.runs().runs] == [True]


def test_events_in_json_contain_it(store, capsys):
    assert main(["resume", RUN, "--json"]) == 0
    finished = []
    for line in capsys.readouterr().out.splitlines():
        event = json.loads(line)
        if event["kind"] == "point_finished":
            finished.append(event["point"]["provenance"]["imported"])
    assert finished == [True, True]


def test_citation_and_bibtex_state_it(store):
    found = store.result(RUN)
    assert "imported from a file" in cite_run(found)
    assert "imported from a file" in bibtex(found)
    assert "imported" not in cite_run(result())


def test_notebook_display_states_it(store):
    assert f"{WORDS}." in "".join(result_parts(store.result(RUN), with_figure=False))
    assert "imported" not in "".join(result_parts(result(), with_figure=False))


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv", "html"])
def test_exports_state_it(store, tmp_path, kind):
    file = tmp_path / f"one.{kind}"
    assert main(["export", RUN, "--out", str(file)]) == 0
    text = file.read_text()
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["imported"] for row in rows] == ["True", "True"]
    elif kind == "html":
        assert WORDS in text
    else:
        points = json.loads(text)["points"]
        assert [each["provenance"]["imported"] for each in points] == [True, True]


@pytest.mark.parametrize("kind", ["py", "ipynb"])
def test_exported_programs_contain_no_numbers(store, tmp_path, kind):
    """They compute again, so no number in them can be imported."""
    file = tmp_path / f"one.{kind}"
    assert main(["export", RUN, "--out", str(file)]) == 0
    text = file.read_text()
    assert "linearity_lab.run(spec)" in text
    for run in result().points[0].runs:
        assert str(run.sup_change) not in text


def test_directory_of_another_store_is_marked(tmp_path, monkeypatch, capsys):
    """``run --out`` resumes the points in its directory."""
    folder = RunDirectory(tmp_path / "out")
    folder.begin(SPEC)
    folder.write(result())
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "lab.sqlite"))
    assert main(["resume", str(folder.path), "--no-json"]) == 0
    assert f"{WORDS}.\n" in capsys.readouterr().err
    assert folder.result().num_imported == 2
    assert (folder.path / "points.csv").read_text().splitlines()[0].endswith(",imported")


def test_own_points_stay_unmarked(tmp_path):
    """A directory written by this store adds nothing to it."""
    store = Store(tmp_path / "lab.sqlite")
    store.save_result(result())
    store.save_result(result(), imported=True)
    assert store.result(RUN) == result()
    assert [run.imported for run in store.runs().runs] == [False]
    store.close()


def test_mark_goes_with_the_last_imported_point(store):
    computed = result()
    for key, each in (("width=10", point(10)), ("width=20", point(20))):
        store.points(SPEC).save(key, each)
    store.save_result(computed)
    assert store.result(RUN).num_imported == 0
    assert [run.imported for run in store.runs().runs] == [False]


@pytest.mark.parametrize("version", ["schema_version", "experiment"])
def test_run_of_another_version_keeps_the_mark(store, capsys, version):
    change = {
        "schema_version": ('"schema_version":', '"schema_version":9'),
        "experiment": ('"experiment":"kernel_change"', '"experiment":"kernel_charge"'),
    }[version]
    rewrite_settings(store, RUN, *change)
    assert main(["show", RUN]) == 0
    printed = capsys.readouterr().out
    assert "It was imported from a file, not computed here." in printed
    assert "width=10,provenance.imported,True" in printed


def test_import_into_a_released_store_is_marked_on_opening(tmp_path):
    """Layout 3 marks an imported run, but not its points."""
    file = tmp_path / "runs.sqlite"
    shutil.copy(ROOT / "tests/runs/stores/0.2.0/runs.sqlite", file)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        chosen = "experiment = 'kernel_change' AND status = 'completed'"
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%imported%'"
        ).fetchone()
        connection.execute(f"UPDATE {table} SET imported = 1 WHERE {chosen}")
        connection.commit()
    store = Store(file)
    found = store.runs(experiment="kernel_change", status="completed").runs
    imported = [store.result(run.digest) for run in found]
    assert len(imported) >= 1
    for each in imported:
        assert each.num_imported == len(each.points)
        assert read_line(run_line(each)) == each
    others = store.runs(experiment="lazy", status="completed").runs
    assert [store.result(run.digest).num_imported for run in others] == [0]
    store.close()
