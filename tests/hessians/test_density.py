"""Spectral density against the exact moments of the full Hessian."""

import jax
import numpy as np
import pytest

from ntk_core.hessians import hessian_density
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import drawn, full_hessian

NET = FullyConnected(width=10, num_outputs=2, activation="tanh", use_bias=True)


@pytest.fixture(name="at")
def _at(x64):
    return drawn(NET)


@pytest.fixture(name="sampled")
def _sampled(at):
    return hessian_density(NET, *at, num_probes=200, num_steps=6, key=jax.random.key(3))


def test_moments_equal_the_full_hessian_within_errors(at, sampled):
    full, _ = full_hessian(NET, *at)
    assert sampled.num_parameters == len(full)
    eigenvalues = np.linalg.eigvalsh(full)
    for order in (1, 2, 3, 4):
        mean, error = sampled.moment(order)
        # the other p - dimension eigenvalues are exactly zero, and 4 standard errors at 200 fixed probes
        assert abs(mean - np.sum(eigenvalues**order) / sampled.dimension) < 4 * error
        assert error > 0


def test_density_integrates_to_one_and_widens_with_its_bandwidth(sampled):
    grid = np.linspace(-5, 5, 4001)
    narrow, wide = sampled.density(grid, 0.02), sampled.density(grid, 0.2)
    assert np.trapezoid(narrow, grid) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(wide, grid) == pytest.approx(1, abs=1e-6)
    assert narrow.max() > wide.max()
