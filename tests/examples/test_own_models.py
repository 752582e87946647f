"""Examples with custom models: claims, and kernels against explicit Jacobians."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_kernel_of_a_wider_equinox_model_moves_less():
    pytest.importorskip("equinox", reason="equinox is not installed")
    example = _example("own_model_equinox")
    changes = [example.main(width, num_steps=50) for width in (32, 1024)]
    assert 0 < changes[1] < 0.5 * changes[0]


@pytest.mark.slow
def test_kernel_of_a_flax_model_is_positive_semidefinite():
    pytest.importorskip("flax", reason="flax is not installed")
    example = _example("own_model_flax")
    eigenvalues = example.main(channels=8)
    assert eigenvalues.shape == (30,)
    assert eigenvalues[-1] > -1e-4 * eigenvalues[0]  # float32: 30 eigenvalues, each to about eps · the largest


@pytest.mark.slow
def test_wider_network_is_closer_to_linear_model():
    example = _example("true_and_linearized")
    (narrow, _), (wide, error) = (example.main(width, num_steps=100) for width in (30, 3000))
    assert wide < narrow / 10
    assert error < 1e-4  # a hundred float32 steps
