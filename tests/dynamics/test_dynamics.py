"""Training and the linear model: identities in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import linearize
from ntk_core.dynamics import (
    Loss,
    NetworkModel,
    Optimizer,
    advance,
    eigenvalues,
    largest_eigenvalue,
    record_steps,
    start,
)
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import DenseNet, FullyConnected, merge

NETS = [
    FullyConnected(width=6, depth=2, num_outputs=2, activation="tanh", output="softmax", use_bias=False),
    DenseNet(
        width=5, depth=2, num_outputs=2, activation="erf", drop_probability=0.4, use_bias=False
    ),  # its masks are no parameters
]


def problem(net, n=7, d=3):
    params = net.init(jax.random.key(0), (d,))
    x = jax.random.normal(jax.random.key(1), (n, d))
    return params, x, jax.nn.one_hot(np.arange(n) % net.num_outputs, net.num_outputs)


def descended(net, loss, trained, fixed, x, y, *rate_until_threshold):
    model, optimizer = NetworkModel(net, loss), Optimizer()
    first = start(model, optimizer, trained, len(x))
    return advance(model, optimizer, first, fixed, x, y, *rate_until_threshold)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("net", NETS, ids=lambda net: type(net).__name__)
def test_the_linear_model_touches_the_network_at_its_origin(net):
    params, x, _ = problem(net)
    trained, fixed = net.partition(params)
    # A removed edge never moves: its weight is 0 and gets no gradient.
    edges = {
        name: {**dict.fromkeys(part, 1.0), "weight": fixed[name].get("mask", 1.0)} for name, part in trained.items()
    }
    direction = jax.tree.map(
        lambda w, edge: edge * jnp.cos(jnp.arange(w.size, dtype=w.dtype)).reshape(w.shape), trained, edges
    )
    f_lin = linearize(net, params)
    distance = jax.jit(lambda moved: jnp.abs(net.apply(moved, x) - f_lin(moved, x)).max())

    def apart(t):
        moved = merge(jax.tree.map(lambda w, v: w + t * v, trained, direction), fixed)
        return float(distance(moved))

    assert apart(0.0) < 1e-14
    # The difference is of second order: a tenth of the distance gives a hundredth.
    assert apart(1e-3) / apart(1e-4) == pytest.approx(100, rel=0.05)


@pytest.mark.usefixtures("x64")
def test_a_model_linear_in_its_weights_is_its_own_linear_model():
    net = FullyConnected(width=6, depth=1, num_outputs=2, activation="tanh", trained="last", use_bias=False)
    params, x, _ = problem(net)
    moved = {**params, "output": {"weight": 3 * params["output"]["weight"] + 1}}
    np.testing.assert_allclose(linearize(net, params)(moved, x), net.apply(moved, x), rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("output", ["softmax", "swish"])
def test_descent_equals_a_plain_loop_and_stops_at_threshold(output):
    net = FullyConnected(
        width=6,
        depth=1,
        num_outputs=2,
        activation="tanh",
        output="linear" if output == "softmax" else output,
        use_bias=False,
    )
    params, x, y = problem(net)
    loss, rate, threshold = Loss(output), 0.5, 0.2

    @jax.jit
    def value(w):
        return loss(net.pre_outputs(w, x), y)

    w, steps, slope = params, 0, jax.jit(jax.grad(value))
    while value(w) > threshold:
        w = jax.tree.map(lambda a, g: a - rate * g, w, slope(w))
        steps += 1
    trained, fixed = net.partition(jax.tree.map(jnp.copy, params))
    state = descended(net, loss, trained, fixed, x, y, rate, 10_000, threshold)
    # The loop reads a step's loss during the next step, so it may take one more.
    assert int(state.step) - steps in (0, 1)
    trained = jax.tree.map(jnp.copy, net.partition(params)[0])
    state = descended(net, loss, trained, fixed, x, y, rate, steps, 0.0)
    for found, expected in zip(jax.tree.leaves(state.trained), jax.tree.leaves(net.partition(w)[0]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_eigenvalues_are_those_of_the_whole_kernel():
    net = NETS[0]
    params, x, _ = problem(net)
    kernel = empirical_ntk(net, params, x)
    values = eigenvalues(kernel)
    assert len(values) == 14
    assert values[0] == pytest.approx(largest_eigenvalue(kernel), rel=1e-10)
    assert values.sum() == pytest.approx(float(jnp.einsum("iiaa->", kernel)))
    assert np.isnan(eigenvalues(kernel.at[0, 0, 0, 0].set(jnp.nan))).all()


@pytest.mark.parametrize(("max_steps", "num_records"), [(1, 2), (5, 200), (5000, 24)])
def test_records_grow_and_end_at_the_last_step(max_steps, num_records):
    steps = record_steps(max_steps, num_records)
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, max_steps)
    assert len(steps) <= num_records + 1
