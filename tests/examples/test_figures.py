"""Examples that draw a paper's figure, in small sizes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.usefixtures("quick_compilation")


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_linear_output_kernel_moves_less_in_wider_networks():
    script = example("liu_figure_1")
    small = {"outputs": ["linear"], "num_seeds": 1, "dataset.num_samples": 12}
    changes = script.main({"widths": [30, 1000], **small})
    assert changes["linear"][1000] < 0.3 * changes["linear"][30]
    names = [trace.name for trace in script.figure(changes).data]
    assert names == ["linear output", "m<sup>−1/2</sup>"]


@pytest.mark.slow
def test_kernel_change_is_drawn_against_the_in_degree():
    script = example("zhu_figure_2")
    small = {"num_seeds": 1, "outputs": ["linear"], "dataset.name": "gaussian-mixture", "dataset.num_samples": 8}
    measured = script.main({"widths": [16, 128], "training.max_steps": 200, "num_hessians": 0, **small})
    (narrow, wide) = measured
    assert narrow[0] < 16  # edges were removed
    assert wide[1] < narrow[1]
    assert [list(trace.x) for trace in script.figure(measured).data] == [[narrow[0], wide[0]]] * 3


def test_network_and_linear_model_begin_together():
    script = example("hu_figure_1")
    points = script.main({"values": [25], "num_seeds": 1, "dataset.num_samples": 200, "training.max_steps": 20})
    run = points[25].runs[0]
    assert run.discrepancy < 0.1
    network, linear = script.figure(points).data
    assert list(network.x) == list(linear.x) == list(run.steps)


def test_every_example_is_in_the_table_and_short():
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"[{path.name}]({path.name})" in table
        assert len(path.read_text(encoding="utf-8").splitlines()) < 100
