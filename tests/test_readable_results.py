"""Results print in a few lines: numbers that a reader asks for, no arrays."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.dynamics._history import Path, TrainingHistory
from ntk_core.hessians import SpectralEstimate
from ntk_core.hessians._ball import BallSup
from ntk_core.hessians._ball_eigenvalue import BallEigenvalue
from ntk_core.hessians._blocks import BlockNorms
from ntk_core.hessians._density import SpectralDensity
from ntk_core.hessians._norm import LeadingEigenpairs
from ntk_core.hessians._path import PathSup
from ntk_core.hessians._quantities import LayerQuantities
from ntk_core.hessians._vector_output import VectorHessianNorm
from ntk_core.kernels._leave_one_out import LeaveOneOut
from ntk_core.kernels._regression import KernelRegression

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


def scaled(factor, params, x):
    return factor * jnp.tanh(x["a"] @ params)


PARTIAL = functools.partial(scaled, 2.0)
OWN = {"partial": PARTIAL, "frozen": ntk_core.freeze(PARTIAL)}


@pytest.mark.parametrize("trainable", [None, "params"])
@pytest.mark.parametrize("function", OWN.values(), ids=OWN)
def test_operators_name_the_function_of_the_user(function, trainable):
    """Not the wrapper that holds it: of trees, of chosen parameters, of one trace."""
    params = jnp.ones((2, 1))
    x = {"a": X}
    kernel = ntk_core.KernelOperator(function, params, x, trainable=trainable)
    assert repr(kernel) == "KernelOperator(scaled, 3 inputs, 1 outputs)"
    curvature = ntk_core.loss_hessian(function, params, x, np.ones((3, 1)), trainable=trainable)
    assert repr(curvature) == "CurvatureOperator(hessian of scaled, 2 parameters)"


MANY = np.linspace(0.0, 2.0, 40)
ALL = np.ones(40, bool)
SHOWN = [
    (
        SpectralEstimate(np.float64(2), np.float64(-2), np.float64(1e-6), np.True_, 8, 1e-4),
        "SpectralEstimate(2; residual 1.0e-06; converged in 8 products)",
    ),
    (
        SpectralEstimate(MANY, MANY, MANY, ALL, ALL, 1e-4),
        "SpectralEstimate(40 norms from 0 to 2; 40 of 40 converged)",
    ),
    (
        LayerQuantities(("hidden1",), *[MANY] * 7, 1.0, 2.0, 3.0, MANY, 0.5),
        "LayerQuantities(1 hidden layers; Q_inf 1, Q_L 2, Q_221 3; bound 0.5)",
    ),
    (
        BlockNorms(("a", "b.w"), np.array([[0, 1.5], [1.5, 0]]), np.zeros((2, 2)), ALL[:2], 30),
        "BlockNorms(2 layers; largest 1.5 at (a, b.w); converged in 30 products)",
    ),
    (
        BallSup(0.25, 0.125, MANY, MANY, 1.0, "hessian", 3, False, MANY, 0.0),
        "BallSup(hessian up to 0.25 within 1, 0.125 at the center; 3 ascents; norms not converged)",
    ),
    (
        PathSup(0.5, MANY, MANY, "kernel", True),
        "PathSup(kernel up to 0.5; 40 points, distances up to 2)",
    ),
    (
        BallEigenvalue(0.5, 1.0, MANY, MANY, 2.0, 3),
        "BallEigenvalue(down to 0.5 within 2, 1 at the center; 3 directions)",
    ),
    (
        VectorHessianNorm(0.5, 1.0, MANY, MANY, True),
        "VectorHessianNorm(from 0.5 to 1; 40 outputs; converged)",
    ),
    (
        KernelRegression(MANY.reshape(20, 2), 1e-6, 1234.0, MANY[:20]),
        "KernelRegression(20×2 predictions, with variances; condition 1.2e+03, jitter 1e-06)",
    ),
    (
        LeaveOneOut(np.zeros((4, 3, 2)), np.full((4, 2), 0.5), 1e-6),
        "LeaveOneOut(4 points, 3 predictions, 2 outputs; root mean square of residuals 0.5)",
    ),
]


@pytest.mark.parametrize(("result", "shown"), SHOWN, ids=lambda each: type(each).__name__)
def test_results_print_in_one_line(result, shown):
    assert repr(result) == shown


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
