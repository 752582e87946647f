"""What is exported works without the dashboard and without a network."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import subprocess
import sys

import pytest

import ntk_core
from dashboard.components.exports import command_line, page_html, program
from dashboard.components.provenance import provenance_sentence
from dashboard.views.kernel_change import figures as figures
from ntk_core.runs import EXPERIMENTS, PRESETS, digest
from ntk_core.runs.events import Ended
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import ROOT


def test_html_page_brings_its_figures_and_needs_no_network():
    result = make_result(make_points())
    drawn = {
        "left <b>": figures.change_against_width(result.points).figure,
        "right": figures.change_against_time(result.points[0]).figure,
    }
    page = page_html("Kernel & change", drawn, [result])
    assert page.count("Plotly.newPlot(") == 2
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="', page)
    assert '"showSendToCloud": false' in page
    assert "<title>Kernel &amp; change</title>" in page
    assert "left &lt;b&gt;" in page
    assert "jax 0.10.2" in page
    assert "python -m ntk_core run liu-fig1-left" in page


def test_command_line_names_the_nearest_preset_and_only_what_differs():
    spec = PRESETS["liu-fig1-left"].spec
    assert command_line(spec) == "python -m ntk_core run liu-fig1-left --out results"
    changed = with_settings(spec, {"widths": [30, 100], "training.learning_rate": 0.5})
    command = "python -m ntk_core run liu-fig1-left --set widths=30,100 --set training.learning_rate=0.5 --out results"
    assert command_line(changed) == command
    assert command_line(PRESETS["liu-fig1-right"].spec).startswith("python -m ntk_core run liu-fig1-right --out")


def test_csv_has_one_row_a_run():
    result = make_result(make_points())
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert len(rows) == 3 * 2 * 3
    assert {row["outcome"] for row in rows} == {"converged"}


def test_provenance_tells_time_device_versions_and_identities():
    sentence = provenance_sentence(make_result(make_points()))
    for part in ("2026-01-02 03:04:05 UTC", "12 s", "on cpu, float32", "jax 0.10.2", "spec ", "data abababababab"):
        assert part in sentence


def test_the_origin_says_how_many_points_are_of_earlier_runs():
    result = make_result(make_points())
    earlier = result.provenance.model_copy(update={"started_at": "2025-01-01T00:00:00+00:00"})
    first, *rest = result.points
    resumed = result.model_copy(update={"points": (first.model_copy(update={"provenance": earlier}), *rest)})
    assert "earlier runs" not in provenance_sentence(result)
    assert provenance_sentence(resumed).endswith(" · 1 of 3 points taken over from earlier runs")


SMALL: dict[str, dict] = {
    "kernel_change": {"widths": (2, 3)},
    "hessian": {"widths": (8,)},
    "lazy": {"widths": (8,), "scales": (1.0, 2.0)},
    "depth_width": {"widths": (8,), "depths": (1,)},
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_program_computes_this_spec_and_no_other(experiment, monkeypatch):
    """The text as it is, but for the computation itself, of which the first event is real."""
    preset = next(preset for preset in PRESETS.values() if preset.spec.experiment == experiment)
    spec = with_settings(preset.spec, {"seed": 7, **SMALL.get(experiment, {})})
    run, computed = ntk_core.run, []

    def begin(asked):
        computed.append(asked)
        yield next(run(asked))
        yield Ended(status="completed", result=make_result(make_points((30,))))

    monkeypatch.setattr(ntk_core, "run", begin)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program('What "is" it?', spec), "program", "exec"), {})
    assert [digest(each) for each in computed] == [digest(spec)]
    assert said.getvalue().startswith("estimated")
    assert "width,num_params,output,seed" in said.getvalue()


def test_program_runs_by_itself():
    spec = with_settings(
        PRESETS["liu-fig1-left"].spec,
        {"widths": [2], "num_seeds": 1, "outputs": ["linear"], "training.max_steps": 3, "dataset.num_samples": 6},
    )
    done = subprocess.run(
        [sys.executable, "-c", program("Small", spec)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "point_finished width=2" in done.stdout
    header, *rows = done.stdout[done.stdout.index("ended") :].strip().splitlines()[1:]
    assert "sup_kernel_change" in header
    assert len(rows) == 1


def test_html_page_of_two_runs_says_where_both_come_from():
    results = [make_result(make_points((30,))), make_result(make_points((30, 100)))]
    page = page_html("Both", {}, results)
    assert page.count("Computed 2026-01-02") == 2
    assert page.count("<details>") == 2
