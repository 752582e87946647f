"""Condition numbers of kernels that are singular, or singular within rounding."""

import jax
import numpy as np
import pytest

from ntk_core.dynamics import Loss, condition_numbers, train
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

EPS = float(np.finfo(np.float32).eps)
NET = FullyConnected(width=40, depth=2, num_outputs=2, activation="tanh", use_bias=False)
TRAINING = {"loss": Loss("linear", "square"), "max_steps": 5, "num_records": 3, "linearized": False}


def distinct_rows(number=8):
    return np.random.default_rng(0).standard_normal((number, 30)).astype(np.float32)


def trained(net, x, **more):
    params = net.init(jax.random.key(0), x.shape[1:])
    y = np.random.default_rng(1).random((len(x), 2)).astype(np.float32)
    return train(net, params, x, y, **{**TRAINING, **more}).kernel


def test_condition_number_is_that_of_float64(x64):
    x = distinct_rows()
    kernel = trained(NET, x)
    exact = empirical_ntk(NET, NET.init(jax.random.key(0), x.shape[1:]), x)
    matrix = np.asarray(exact).transpose(0, 2, 1, 3).reshape(16, 16)
    assert kernel.condition[0] == pytest.approx(np.linalg.cond(matrix), rel=1e-8)
    assert not kernel.condition_is_bound.any()


def near_copies():
    x = distinct_rows()
    return np.concatenate([x, x * (1 + EPS)])


@pytest.mark.parametrize(
    ("rows", "output"),
    [
        (np.concatenate([distinct_rows(), distinct_rows()]), "linear"),
        (near_copies(), "linear"),
        (distinct_rows(), "softmax"),  # its Jacobian maps (1, 1) to 0
        (np.repeat(distinct_rows(1), 3, axis=0), "linear"),
    ],
    ids=["duplicated rows", "rows equal within rounding", "softmax", "one row three times"],
)
def test_singular_kernels_have_lower_bounds(rows, output):
    kernel = trained(NET.with_output(output), rows, loss=Loss(output, "square"))
    num_rows = 2 * len(rows)
    assert kernel.condition_is_bound.all()
    np.testing.assert_allclose(kernel.condition, 1 / (num_rows * EPS), rtol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-8, -1e-8, -1e-3])
def test_noise_of_either_sign_is_a_lower_bound(noise):
    found = condition_numbers([noise, 0.5], [1.0, 2.0], num_rows=100)
    assert found.is_lower_bound.tolist() == [True, False]
    assert found.values == pytest.approx([1 / (100 * EPS), 4.0])


def test_a_diverged_or_dead_kernel_has_no_condition_number():
    found = condition_numbers([np.nan, 0.0, -np.inf], [np.inf, 0.0, np.nan], num_rows=10)
    assert np.isnan(found.values).all()
    assert not found.is_lower_bound.any()
