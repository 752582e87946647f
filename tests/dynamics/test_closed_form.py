"""Closed form of the linear model against many small steps, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import InvalidInput, empirical_ntk, infinite_width_ntk, linearize, train
from ntk_core.dynamics import ClosedForm, kernel_matrix
from ntk_core.networks.architectures import FullyConnected

NET = FullyConnected(width=30, depth=2, num_outputs=2, activation="erf", use_bias=True)
N = 6


def problem():
    params = NET.init(jax.random.key(0), (3,))
    x = jax.random.normal(jax.random.key(1), (N + 4, 3))
    y = jax.nn.one_hot(np.arange(N) % 2, 2)
    return params, x, y


def closed_form(params, x, y):
    kernel, start = empirical_ntk(NET, params, x, x[:N]), NET.apply(params, x)
    return ClosedForm(kernel[:N], start[:N], y, kernel[N:], start[N:])


@pytest.mark.usefixtures("x64")
def test_descent_is_what_the_trained_linear_model_does():
    params, x, y = problem()
    form = closed_form(params, x, y)
    rate = 0.9 * form.stable_rate  # directions beyond ηλ/n = 1 overshoot at every step
    history = train(
        NET, params, x[:N], y, learning_rate=rate, max_steps=300, x_test=x[N:], y_test=y[:4], linear_route="weights",
        kernels=False,
    )  # fmt: skip
    train_outputs, test_outputs = form.descent(history.steps, rate)
    # 300 steps in weights of size √p sum rounding errors of 1e-16 each.
    np.testing.assert_allclose(train_outputs, history.linearized.outputs, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(test_outputs, history.linearized.test_outputs, rtol=1e-9, atol=1e-10)
    assert history.stable_rate == pytest.approx(form.stable_rate)


@pytest.mark.usefixtures("x64")
def test_flow_is_the_limit_of_many_small_steps():
    params, x, y = problem()
    form = closed_form(params, x, y)
    f_lin = linearize(NET, params)
    matrix = kernel_matrix(empirical_ntk(NET, params, x, x[:N])[:N])
    test_rows = np.asarray(empirical_ntk(NET, params, x, x[:N])[N:]).transpose(0, 2, 1, 3).reshape(-1, 2 * N)
    rate, steps = 1e-3, 2000
    time = rate * steps

    def small_steps(rate, steps):
        residual = np.asarray(f_lin(params, x[:N]) - y).reshape(-1)
        test = np.asarray(f_lin(params, x[N:])).reshape(-1)
        for _ in range(steps):
            # Heun's rule: an error of second order in the rate.
            slope = -matrix @ residual / N
            middle = residual + rate * slope / 2
            test = test - rate * test_rows @ middle / N
            residual = residual - rate * matrix @ middle / N
        return residual, test

    residual, test = small_steps(rate, steps)
    train_outputs, test_outputs = form.flow([0.0, time])
    np.testing.assert_allclose(train_outputs[1] - y, residual.reshape(N, 2), atol=1e-6)
    np.testing.assert_allclose(test_outputs[1], test.reshape(-1, 2), atol=1e-6)
    np.testing.assert_allclose(train_outputs[0], NET.apply(params, x[:N]), atol=1e-12)
    # Descent at small rates tends to the flow, with an error of first order.
    errors = [
        np.abs(form.descent([round(time / rate)], rate)[0] - train_outputs[1]).max() for rate in (1e-3, 1e-4, 1e-5)
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
    form = ClosedForm(kernel, np.array([[1.0], [3.0]]), np.zeros((2, 1)), np.array([[0.0, 1.0]]), np.array([[5.0]]))
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


@pytest.mark.parametrize(
    ("kernel", "start", "field"),
    [(np.ones((2, 3)), np.ones((2, 1)), "kernel"), (np.ones((2, 2)), np.ones((2, 1, 1)), "start"),
     (np.full((2, 2), np.nan), np.ones((2, 1)), "kernel")],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_named(kernel, start, field):
    with pytest.raises(InvalidInput) as caught:
        ClosedForm(kernel, start, np.ones((2, 1)))
    assert caught.value.field == field
    with pytest.raises(InvalidInput, match="other_kernel"):
        ClosedForm(np.ones((2, 2)), np.ones((2, 1)), np.ones((2, 1)), np.ones((3, 3)), jnp.ones((3, 1)))


def test_one_output_needs_no_second_axis():
    kernel, start, y = np.eye(3) + 0.2, np.zeros(3), np.arange(3.0)
    one, column = (ClosedForm(kernel, *each) for each in ((start, y), (start[:, None], y[:, None])))
    assert np.array_equal(one.flow([1.0])[0], column.flow([1.0])[0])
