"""Exports without the dashboard, the static site, and embedded figures."""

import html
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from packaging.requirements import Requirement
from streamlit.testing.v1 import AppTest

import linearity_lab
from linearity_lab.citation import provenance_sentence
from linearity_lab.cli import main
from linearity_lab.dashboard.export_formats import notebook, page_html, program
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.pages.lecture.steps import STEPS
from linearity_lab.experiments.kernel_change import figures as figures
from linearity_lab.runs import EXPERIMENTS, PRESETS
from linearity_lab.runs.events import Ended
from linearity_lab.settings.grammar import with_settings
from linearity_lab.site import DOCUMENTATION, MENU, _page, gallery_figures
from linearity_lab.site._figures import lecture_figure
from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import ROOT, checked, form_sentences, open_page
from tests.smallest import smallest
from tests.test_project import LIBRARY, imported_modules, python_files, tree

SMALL = with_settings(
    PRESETS["liu-fig1-left"].spec,
    {
        "widths": [2],
        "num_seeds": 1,
        "outputs": ["linear"],
        "training.max_steps": 3,
        "dataset.num_samples": 6,
    },
)


def test_html_page_brings_its_figures_and_needs_no_network():
    results = [make_result(make_points()), make_result(make_points((30,)))]
    left = replace(figures.change_against_width(results[0].points), takeaway="left <b>")
    page = page_html(
        "Kernel & change", [left, figures.change_against_time(results[0].points[0])], results
    )
    assert page.count("Plotly.newPlot(") == 2
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', page)
    assert '"showSendToCloud": false' in page
    assert "<title>Kernel &amp; change</title>" in page
    assert "left &lt;b&gt;" in page
    assert html.escape(left.caption[0]) in page, "the caption, also in print"
    assert "linearity-lab run liu-fig1-left" in page
    assert page.count("Computed 2026-01-02") == page.count("<details>") == len(results), (
        "all origins"
    )


def test_provenance_has_time_device_versions_identities():
    result = make_result(make_points())
    sentence = provenance_sentence(result)
    for part in (
        "2026-01-02 03:04:05 UTC",
        "12 s",
        "on cpu, float32",
        "jax 0.10.2",
        "spec ",
        "data abababababab",
    ):
        assert part in sentence


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_program_computes_this_spec_and_no_other(experiment, monkeypatch, capsys, tmp_path):
    """The exported program unchanged, with a computation that ends after its first event."""
    preset = EXPERIMENTS[experiment].presets[0]
    spec = with_settings(preset.spec, {**smallest(preset.spec), "seed": 7})
    run, computed = linearity_lab.run, []

    def begin(asked):
        computed.append(asked)
        yield next(run(asked))
        yield Ended(status="completed", result=make_result(make_points((30,))))

    monkeypatch.setattr(linearity_lab, "run", begin)
    monkeypatch.chdir(tmp_path)
    exec(compile(program('What "is" it?', spec), "program", "exec"), {})
    assert computed == [spec]
    assert "Plotly.newPlot(" in (tmp_path / "figure.html").read_text(encoding="utf-8")
    shown = capsys.readouterr().out
    assert shown.startswith("estimated")
    assert "width,num_params,output,seed" in shown


@pytest.mark.long
def test_program_runs_in_an_empty_folder(tmp_path):
    installed, empty = tmp_path / "site", tmp_path / "empty"
    installed.mkdir()
    empty.mkdir()
    for package in ("ntk_core", "linearity_lab"):
        (installed / package).symlink_to(ROOT / package)
    (empty / "kernel.py").write_text(program("Small", SMALL), encoding="utf-8")
    environment = {**os.environ, **QUICK_ENVIRONMENT, "PYTHONPATH": str(installed)}
    command = [sys.executable, "kernel.py"]
    done = subprocess.run(
        command, cwd=empty, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "point_finished width=2" in done.stdout
    header, *_ = done.stdout[done.stdout.index("ended") :].strip().splitlines()[1:]
    assert "sup_kernel_change" in header
    assert sorted(path.name for path in empty.iterdir()) == ["figure.html", "kernel.py"]
    assert "Plotly.newPlot(" in (empty / "figure.html").read_text(encoding="utf-8")


def test_program_states_what_it_needs():
    """Requirements in PEP 723 form: the package's imports, with the project's bounds."""
    (block,) = re.findall(
        r"(?m)^# /// script$\n((?:^#(?: .*)?$\n)+?)^# ///$", program("Small", SMALL)
    )
    stated = tomllib.loads("".join(line[2:] or "\n" for line in block.splitlines(keepends=True)))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert stated["requires-python"] == project["requires-python"]
    lines = [
        line
        for name in ("requirements-core.txt", "requirements.txt")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    ]
    assert set(stated["dependencies"]) <= set(lines)
    names = {Requirement(each).name.replace("-", "_") for each in stated["dependencies"]}
    modules = {
        name
        for path in python_files("ntk_core", *(f"linearity_lab/{part}" for part in LIBRARY))
        for name in imported_modules(tree(path))
    }
    tops = {name.partition(".")[0] for name in modules}
    foreign = tops - {"ntk_core", "linearity_lab"} - sys.stdlib_module_names
    # Imported on demand.
    extras = "cyclopts distributed filelock pandas PIL psutil safetensors sqlalchemy torch torchax"
    assert (foreign - set(extras.split())) | {"plotly"} == names


@pytest.mark.slow
def test_notebook_computes_its_run():
    """Valid nbformat 4.5; the last expression of each cell is displayed as in Jupyter."""
    read = json.loads(notebook("Small", SMALL))
    assert set(read) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (read["nbformat"], read["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in read["cells"]}) == len(read["cells"])
    assert [cell["cell_type"] for cell in read["cells"]] == ["markdown"] + ["code"] * 4
    names: dict[str, Any] = {}
    for cell in read["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        code = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        if code:
            exec(compile(cell["source"], "cell", "exec"), names)
    assert names["ended"].result.spec == SMALL
    assert "Completed: 1 of 1 width" in names["ended"].result._repr_html_()


WITH_SLIDER = {"hessian": "liu-ball", "lazy": "richness-dial"}  # above their figures


def read(script: str, name: str) -> dict:
    """Data of a figure in the script of its page."""
    found = re.fullmatch(r"lab\.take\((\".*?\"), (.*)\);\n", script, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == name
    return json.loads(found[2])


def bare(figure: dict) -> dict:
    """Traces and layout of a figure, without Plotly's template."""
    layout = {name: value for name, value in figure["layout"].items() if name != "template"}
    return {"data": figure["data"], "layout": layout, "frames": figure.get("frames", [])}


def written(figure) -> list[dict]:
    data = read(figure.script(), figure.name)
    return [bare(chart["figure"]) for chart in data["options"][data["start"]]["charts"]]


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("page", EXPERIMENTS)
def test_site_figures_equal_those_of_the_app(page):
    preset = WITH_SLIDER.get(page, EXPERIMENTS[page].presets[0].name)
    of_site = [drawn for figure in gallery_figures([preset]) for drawn in written(figure)]
    charts = open_page(page, opened=False, preset=preset).get("plotly_chart")
    in_app = [bare(json.loads(each.proto.spec)) for each in charts]
    assert [each for each in of_site if each not in in_app] == []
    assert len(in_app) - len(of_site) in (0, 1, 2), "networks are drawn, too"


def test_site_step_hides_its_answer_and_then_equals_the_app():
    step = STEPS[1]
    results = {name: gallery_result(name) for name in step.gallery}
    data = read(lecture_figure(step).script(), f"lecture.{step.name}")
    drawn = [step.draw(results, option, True) for option in step.control.options]
    options = [bare(each["charts"][0]["figure"]) for each in data["options"]]
    assert options == [bare(json.loads(each.figure.to_json())) for each in drawn]
    whole, veiled = (
        sum(len(trace.get("y") or ()) for trace in traces)
        for traces in (options[data["start"]]["data"], data["veiled"]["figure"]["data"])
    )
    assert veiled < whole


def test_formulas_and_tables_become_html():
    output = _page.html_of("At $m\\ge 10$ it **falls** like $$m^{-1/2}$$.")
    assert output.startswith("<p>At <math")
    assert output.count("<math") == 2
    assert "$" not in output
    table = _page.html_of(
        "| Claim | Found |\n| --- | --- |\n| [one](../a.md) | <b> |", link=lambda _: None
    )
    assert '<td data-label="Claim">one</td><td data-label="Found">&lt;b&gt;</td>' in table.replace(
        "\n", ""
    )


def test_all_pages_share_one_menu():
    """Including the template for pages of the documentation; the menu marks the open page."""
    framed = _page.page(
        "frame.html", MENU | DOCUMENTATION, title="Title", here="live.html", up="../"
    )
    assert re.findall(r'<a href="\.\./([^"]+\.html)"[^>]*>\w', framed) == [*MENU, *DOCUMENTATION]
    assert "docs/" not in _page.page("frame.html", MENU, title="Title")
    template = (ROOT / "docs/_templates/page.html").read_text(encoding="utf-8")
    assert set(re.findall(r'"(docs/[^"]+)"', template)) == set(DOCUMENTATION)
    assert "site_menu.items()" in template


def test_a_folder_of_something_else_is_refused_in_one_sentence(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["site", "--out", str(tmp_path)]) == 2
    assert "a new or empty folder" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def embedded(**query: str) -> AppTest:
    app = AppTest.from_string(
        "from linearity_lab.dashboard.pages.embed.page import show\nshow()", default_timeout=30
    )
    app.query_params.update(query)
    return checked(app.run())


def test_embedded_figure_keeps_its_own_choices():
    first = embedded(figure="liu-fig1-left")
    assert len(first.get("plotly_chart")) == 1
    assert not [*first.title, *first.button, *first.selectbox]
    along = embedded(figure="liu-fig1-left.along-training")
    (before,) = along.get("plotly_chart")
    along.selectbox(key="kernel_change.shown_width").select(30)
    (after,) = checked(along.run()).get("plotly_chart")
    assert after.proto.spec != before.proto.spec
    assert not [*along.button, *along.get("download_button")]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"figure": "liu-fig1-lefft"}, "such as liu-fig1-left"),
        ({}, "the name of a figure, such as"),
        ({"figure": "<script>" * 500}, "the name of a figure, such as"),
        ({"figure": "liu-fig2", "theme": "dark"}, "only figure"),
    ],
)
def test_unknown_name_suggests_the_nearest(query, shown):
    app = embedded(**query)
    (sentence,) = form_sentences(app)
    assert shown in sentence
    assert len(sentence) < 400
    assert len(app.get("plotly_chart")) == ("theme" in query)


def test_embedded_page_shows_its_figure_alone(monkeypatch):
    monkeypatch.setattr(type(st.context), "is_embedded", property(lambda _: True))
    app = open_page("kernel_change", opened=False, preset="liu-fig1-left", tab="Along training")
    assert len(app.get("plotly_chart")) == 1
    assert [each.key for each in app.selectbox] == [
        "kernel_change.shown_width",
        "kernel_change.one_seed",
    ]
    assert not [*app.title, *app.button, *app.get("download_button"), *app.get("popover")]
