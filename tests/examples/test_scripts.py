"""Scripts of examples/ in small sizes: figures of papers, and custom models."""

from __future__ import annotations

import pytest

from tests.running import EXAMPLES, example

pytestmark = pytest.mark.usefixtures("quick_compilation")


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
    assert eigenvalues[-1] > -1e-4 * eigenvalues[0]  # float32: 30 eigenvalues, each to about eps · the largest


@pytest.mark.slow
def test_wider_network_is_closer_to_linear_model():
    script = example("true_and_linearized")
    (narrow, _), (wide, error) = (script.main(width, num_steps=100) for width in (30, 3000))
    assert wide < narrow / 10
    assert error < 1e-4  # a hundred float32 steps
