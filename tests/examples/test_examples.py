"""Outputs of the notebooks of examples/, which ``make wheel`` runs, and scripts in small sizes."""

from __future__ import annotations

import runpy

import nbformat
import pytest

import linearity_lab
from tests.examples.notebooks import FIGURE, NOTEBOOKS, ROOT, WITH_TORCH, shown_in
from tests.running import example

pytestmark = pytest.mark.usefixtures("quick_compilation")

PROMISED = {
    "first_figure": ("KernelChangeSpec", "widths in", "of memory for the largest"),
    "compare_with_the_paper": ("HessianSpec", "points in"),
    "own_model": ("Residual", "∝ m^(", "FullyConnected", "parameters"),
}


def test_their_outputs_are_there_small_and_without_errors():
    assert [path.stem for path in NOTEBOOKS] == sorted(PROMISED)
    for path in [*NOTEBOOKS, *WITH_TORCH]:
        assert path.stat().st_size <= 200_000
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        outputs = [output for cell in code for output in cell.outputs]
        assert [
            each for each in outputs if each.output_type == "error" or each.get("name") == "stderr"
        ] == []
        shown = "\n".join(shown_in(book, "text/html"))
        assert [
            words
            for words in PROMISED.get(path.stem, ("Linear:", "Not linear:"))
            if words not in shown
        ] == []
        assert len(shown_in(book, FIGURE)) == (path not in WITH_TORCH and path.stem != "own_model")
        assert "<script" not in shown
        assert str(ROOT) not in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_marimo_notebook_runs_as_a_program():
    """With a smaller spec than that of its widgets, which is checked, too."""
    app = runpy.run_path(str(ROOT / "examples" / "marimo_width.py"))["app"]
    small = {
        "widths": [4],
        "num_seeds": 1,
        "outputs": ["linear"],
        "dataset.num_samples": 6,
        "training.max_steps": 3,
    }
    spec = linearity_lab.experiments.with_settings(linearity_lab.presets()["liu-fig1-left"], small)
    outputs, names = app.run(defs={"spec": spec})
    assert names["ended"].status == "completed"
    assert any("Completed: 1 of 1 width" in getattr(each, "_repr_html_", str)() for each in outputs)
    assert names["widest"].value == 100


@pytest.mark.slow  # trains wide networks
def test_linear_output_kernel_moves_less_in_wider_networks():
    script = example("liu_figure_1")
    small = {"outputs": ["linear"], "num_seeds": 1, "dataset.num_samples": 12}
    changes = script.main({"widths": [30, 1000], **small})
    assert changes["linear"][1000] < 0.3 * changes["linear"][30]
    names = [trace.name for trace in script.figure(changes).data]
    assert names == ["linear output", "m<sup>−1/2</sup>"]


@pytest.mark.long
def test_kernel_change_is_drawn_against_the_in_degree():
    script = example("zhu_figure_2")
    small = {
        "num_seeds": 1,
        "outputs": ["linear"],
        "dataset.name": "gaussian-mixture",
        "dataset.num_samples": 8,
    }
    measured = script.main(
        {"widths": [16, 128], "training.max_steps": 100, "num_hessians": 0, **small}
    )
    (narrow, wide) = measured
    assert narrow[0] < 16  # edges were removed
    assert wide[1] < narrow[1]
    assert [list(trace.x) for trace in script.figure(measured).data] == [[narrow[0], wide[0]]] * 3


def test_network_and_linear_model_begin_together():
    script = example("hu_figure_1")
    points = script.main(
        {"values": [25], "num_seeds": 1, "dataset.num_samples": 200, "training.max_steps": 20}
    )
    run = points[25].runs[0]
    assert run.discrepancy < 0.1
    network, linear = script.figure(points).data
    assert list(network.x) == list(linear.x) == list(run.steps)


@pytest.mark.slow
def test_the_kernel_of_a_wider_equinox_model_moves_less():
    pytest.importorskip("equinox", reason="equinox is not installed")
    script = example("own_model_equinox")
    changes = [script.main(width, num_steps=50) for width in (32, 1024)]
    assert 0 < changes[1] < 0.5 * changes[0]


@pytest.mark.slow
def test_kernel_of_a_flax_model_is_positive_semidefinite():
    pytest.importorskip("flax", reason="flax is not installed")
    script = example("own_model_flax")
    eigenvalues = script.main(channels=8)
    assert eigenvalues.shape == (30,)
    # float32: 30 eigenvalues, each to about eps · the largest.
    assert eigenvalues[-1] > -1e-4 * eigenvalues[0]


@pytest.mark.long
def test_wider_network_is_closer_to_linear_model():
    script = example("true_and_linearized")
    (narrow, _), (wide, error) = (script.main(width, num_steps=100) for width in (30, 3000))
    assert wide < narrow / 10
    assert error < 1e-4  # a hundred float32 steps
