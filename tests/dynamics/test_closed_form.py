"""Closed form of the linear model against many small steps, in float64."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from ntk_core import empirical_ntk, infinite_width_ntk, train
from ntk_core.dynamics import ClosedForm
from ntk_core.networks.architectures import FullyConnected
from tests.dynamics.problems import problem

NET = FullyConnected(width=30, depth=2, num_outputs=2, activation="erf", use_bias=True)
N = 6


def closed_form(params, x, y):
    kernel, start = empirical_ntk(NET, params, x, x[:N]), NET.apply(params, x)
    return ClosedForm(kernel[:N], start[:N], y, kernel[N:], start[N:])


@pytest.mark.slow  # trains in weights and by the kernel
@pytest.mark.usefixtures("x64")
def test_descent_is_what_the_trained_linear_model_does():
    params, train_x, y, test_x, y_test = problem(NET, N, 4)
    x = np.concatenate([train_x, test_x])
    form = closed_form(params, x, y)
    rate = 0.9 * form.stable_rate  # directions beyond ηλ/n = 1 overshoot at every step
    history = train(
        NET,
        params,
        x[:N],
        y,
        learning_rate=rate,
        max_steps=300,
        x_test=x[N:],
        y_test=y_test,
        linear_route="weights",
        kernels=False,
    )
    train_outputs, test_outputs = form.descent(history.steps, rate)
    # 300 steps in weights of size √p sum rounding errors of 1e-16 each.
    np.testing.assert_allclose(train_outputs, history.linearized.outputs, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(test_outputs, history.linearized.test_outputs, rtol=1e-9, atol=1e-10)
    assert history.stable_rate == pytest.approx(form.stable_rate)


@pytest.mark.usefixtures("x64")
def test_flow_is_an_exponential_and_the_limit_of_small_steps():
    params, train_x, y, test_x, _ = problem(NET, N, 4)
    x = np.concatenate([train_x, test_x])
    form, time = closed_form(params, x, y), 2.0
    rows = np.asarray(empirical_ntk(NET, params, x, x[:N])).transpose(0, 2, 1, 3).reshape(-1, 2 * N)
    start, matrix = np.asarray(NET.apply(params, x)).ravel(), rows[: 2 * N]
    residual = start[: 2 * N] - np.ravel(y)
    lost = residual - expm(-time * matrix / N) @ residual
    expected = (start - rows @ np.linalg.solve(matrix, lost)).reshape(-1, 2)
    found = form.flow([0.0, time])
    np.testing.assert_allclose(np.concatenate([each[1] for each in found]), expected, atol=1e-8)
    np.testing.assert_allclose(found[0][0], NET.apply(params, x[:N]), atol=1e-12)
    # Descent at small rates tends to the flow, with an error of first order.
    errors = [
        np.abs(form.descent([round(time / rate)], rate)[0] - found[0][1]).max()
        for rate in (1e-3, 1e-4, 1e-5)
    ]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.02)


@pytest.mark.usefixtures("x64")
def test_a_kernel_of_one_output_serves_all_outputs():
    x = jax.random.normal(jax.random.key(1), (N + 4, 3))
    limit = infinite_width_ntk(NET, x, x[:N])
    start, y = np.sin(np.arange(2.0 * (N + 4))).reshape(-1, 2), np.eye(2)[np.arange(N) % 2]
    whole = np.asarray(limit)[:, :, None, None] * np.eye(2)
    shared = ClosedForm(limit[:N], start[:N], y, limit[N:], start[N:])
    full = ClosedForm(whole[:N], start[:N], y, whole[N:], start[N:])
    for a, b in zip(shared.flow([0, 1, 50]), full.flow([0, 1, 50]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_directions_without_a_kernel_do_not_move():
    kernel = np.array([[2.0, 0.0], [0.0, 0.0]])
    form = ClosedForm(
        kernel,
        np.array([[1.0], [3.0]]),
        np.zeros((2, 1)),
        np.array([[0.0, 1.0]]),
        np.array([[5.0]]),
    )
    at_train, at_test = form.flow([4.0])
    assert at_test is not None
    np.testing.assert_allclose(at_train[0], [[np.exp(-4.0)], [3.0]])
    # A test point that couples only to eigenvalue zero changes linearly in time, by K r₀ τ / n.
    np.testing.assert_allclose(at_test[0], [[5.0 - 3.0 * 4.0 / 2]])


def test_descent_above_the_stable_rate_alternates_and_grows():
    form = ClosedForm(np.array([[1.0]]), np.array([[1.0]]), np.zeros((1, 1)))
    outputs, _ = form.descent([0, 1, 2, 3, 10_000], 3.0)
    np.testing.assert_allclose(outputs[:4, 0, 0], [1, -2, 4, -8])
    assert np.isinf(outputs[4]).all()
    assert form.stable_rate == 2.0
