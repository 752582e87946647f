"""Results print in a few lines: numbers that a reader asks for, no arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.dynamics._history import Path, TrainingHistory
from ntk_core.hessians import SpectralEstimate
from ntk_core.hessians._density import SpectralDensity
from ntk_core.hessians._norm import LeadingEigenpairs

NET = ntk_core.FullyConnected(width=4, depth=1, num_outputs=2, activation="tanh", use_bias=False)
X = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))


def test_reprs_name_numbers_without_arrays():
    pairs = LeadingEigenpairs(np.array([-2.0, 1.0]), np.array([1e-6, 2e-6]), True, 8, {}, [])
    assert repr(pairs) == (
        "LeadingEigenpairs(-2, 1; residuals up to 2.0e-06; converged in 8 products)"
    )
    density = SpectralDensity(np.array([[-1.0, 2.0]]), np.array([[0.5, 0.5]]), 10, 1_200)
    assert repr(density) == (
        "SpectralDensity(nodes from -1 to 2; 1 probes of 2 steps; 10 of 1,200 dimensions)"
    )
    params = NET.init(jax.random.key(0), 2)
    assert repr(ntk_core.KernelOperator(NET, params, X)) == (
        "KernelOperator(FullyConnected, 3 inputs, 2 outputs)"
    )
    assert repr(ntk_core.freeze(NET.apply)) == "Frozen(apply, traced for 0 shapes)"


@pytest.mark.parametrize("rate", [None, 2.0])
def test_histories_print_in_one_line(rate):
    path = Path.__new__(Path)
    none = np.array([], int)
    history = TrainingHistory(
        np.array([0, 5]), 0.1, rate, path, None, None, None, None, None, none, none
    )
    stable = "; stable below 2" if rate else ""
    assert repr(history) == f"TrainingHistory(5 steps, 2 records; learning rate 0.1{stable})"


@pytest.mark.slow  # norms of two outputs, alone and together
def test_norms_of_all_outputs_are_those_of_each(x64):
    params = [NET.init(jax.random.key(seed), 2) for seed in (0, 1)]
    together = ntk_core.hessian_norm(NET, params, X, None, batched=True, tolerance=1e-9)
    assert isinstance(together, SpectralEstimate)
    assert together.value.shape == together.converged.shape == (2, 3, 2)
    last = ntk_core.hessian_norm(NET, params, X, -1, batched=True, tolerance=1e-9)
    np.testing.assert_allclose(together.value[..., -1], last.value, rtol=1e-8)
    first = ntk_core.hessian_norm(NET, params[0], X[0], 0, tolerance=1e-9)
    np.testing.assert_allclose(together.value[0, 0, 0], first.value, rtol=1e-8)
