"""Exported files work without the dashboard and without a network."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from typing import Any

import pytest
from packaging.requirements import Requirement

import ntk_core
from linearity_lab.charts.chart import Chart
from linearity_lab.components.explain import provenance_sentence
from linearity_lab.components.export import MAX_TITLE, short_title
from linearity_lab.components.exports import notebook, page_html, program
from linearity_lab.views.kernel_change import figures as figures
from ntk_core.runs import EXPERIMENTS, PRESETS
from ntk_core.runs.events import Ended
from ntk_core.settings.grammar import with_settings
from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import ROOT
from tests.smallest import smallest
from tests.test_project import imported_modules, tree

SMALL = with_settings(
    PRESETS["liu-fig1-left"].spec,
    {"widths": [2], "num_seeds": 1, "outputs": ["linear"], "training.max_steps": 3, "dataset.num_samples": 6},
)


def test_html_page_brings_its_figures_and_needs_no_network():
    results = [make_result(make_points()), make_result(make_points((30,)))]
    left = replace(figures.change_against_width(results[0].points), takeaway="left <b>")
    page = page_html("Kernel & change", [left, figures.change_against_time(results[0].points[0])], results)
    assert page.count("Plotly.newPlot(") == 2
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', page)
    assert '"showSendToCloud": false' in page
    assert "<title>Kernel &amp; change</title>" in page
    assert "left &lt;b&gt;" in page
    assert "linearity-lab run liu-fig1-left" in page
    assert page.count("Computed 2026-01-02") == page.count("<details>") == len(results), "all origins"


def test_provenance_has_time_device_versions_identities():
    result = make_result(make_points())
    sentence = provenance_sentence(result)
    for part in ("2026-01-02 03:04:05 UTC", "12 s", "on cpu, float32", "jax 0.10.2", "spec ", "data abababababab"):
        assert part in sentence
    earlier = result.provenance.model_copy(update={"started_at": "2025-01-01T00:00:00+00:00"})
    first, *rest = result.points
    resumed = result.model_copy(update={"points": (first.model_copy(update={"provenance": earlier}), *rest)})
    assert "earlier runs" not in sentence
    assert provenance_sentence(resumed).endswith(" · 1 of 3 points taken over from earlier runs")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_program_computes_this_spec_and_no_other(experiment, monkeypatch, capsys):
    """The exported program unchanged, with a computation that ends after its first event."""
    preset = EXPERIMENTS[experiment].presets[0]
    spec = with_settings(preset.spec, {**smallest(preset.spec), "seed": 7})
    run, computed = ntk_core.run, []

    def begin(asked):
        computed.append(asked)
        yield next(run(asked))
        yield Ended(status="completed", result=make_result(make_points((30,))))

    monkeypatch.setattr(ntk_core, "run", begin)
    exec(compile(program('What "is" it?', spec), "program", "exec"), {})
    assert computed == [spec]
    shown = capsys.readouterr().out
    assert shown.startswith("estimated")
    assert "width,num_params,output,seed" in shown


def test_program_runs_in_an_empty_folder(tmp_path):
    installed, empty = tmp_path / "site", tmp_path / "empty"
    installed.mkdir()
    empty.mkdir()
    (installed / "ntk_core").symlink_to(ROOT / "ntk_core")
    (empty / "kernel.py").write_text(program("Small", SMALL), encoding="utf-8")
    environment = {**os.environ, **QUICK_ENVIRONMENT, "PYTHONPATH": str(installed)}
    command = [sys.executable, "kernel.py"]
    done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "point_finished width=2" in done.stdout
    header, _ = done.stdout[done.stdout.index("ended") :].strip().splitlines()[1:]
    assert "sup_kernel_change" in header
    assert [path.name for path in empty.iterdir()] == ["kernel.py"]


def test_program_states_what_it_needs():
    """Requirements in PEP 723 form: the package's imports, with the project's bounds."""
    (block,) = re.findall(r"(?m)^# /// script$\n((?:^#(?: .*)?$\n)+?)^# ///$", program("Small", SMALL))
    stated = tomllib.loads("".join(line[2:] or "\n" for line in block.splitlines(keepends=True)))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert stated["requires-python"] == project["requires-python"]
    lines = (ROOT / "requirements-core.txt").read_text(encoding="utf-8").splitlines()
    assert set(stated["dependencies"]) <= set(lines)
    names = {Requirement(each).name.replace("-", "_") for each in stated["dependencies"]}
    modules = {name for path in (ROOT / "ntk_core").rglob("*.py") for name in imported_modules(tree(path))}
    foreign = {name.partition(".")[0] for name in modules} - {"ntk_core"} - sys.stdlib_module_names
    extras = "cyclopts distributed filelock pandas PIL psutil safetensors sqlalchemy torch torchax"  # on demand
    assert foreign - set(extras.split()) == names


@pytest.mark.slow
def test_notebook_computes_its_run():
    """Valid nbformat 4.5; the last expression of each cell is displayed as in Jupyter."""
    read = json.loads(notebook("Small", SMALL))
    assert set(read) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (read["nbformat"], read["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in read["cells"]}) == len(read["cells"])
    assert [cell["cell_type"] for cell in read["cells"]] == ["markdown"] + ["code"] * 3
    names: dict[str, Any] = {}
    for cell in read["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        code = {"outputs", "execution_count"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        if code:
            exec(compile(cell["source"], "cell", "exec"), names)
    assert names["ended"].result.spec == SMALL
    assert "Completed: 1 of 1 width" in names["ended"].result._repr_html_()


def test_figure_is_named_by_heading_or_takeaway():
    chart = figures.change_against_width(make_points())
    assert short_title(replace(chart, heading="Over m<sub>b</sub>")) == "Over mb"
    assert chart.takeaway.startswith(short_title(replace(chart, heading="")))
    long = short_title(Chart(chart.figure, "word " * 40, ()))
    assert (long[-6:], len(long) <= MAX_TITLE + 2) == ("word …", True)
