"""Closed forms against Lanczos and automatic differentiation; norms against the width."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import (
    bottleneck_block_norm,
    bottleneck_zero_step,
    hessian_norm,
    nonlinear_output_hessian,
    shallow_hessian_blocks,
)
from ntk_core.networks.architectures import Bottleneck, FullyConnected
from tests.plain_derivatives import by_size, drawn, full_hessian, largest


def test_shallow_blocks_give_the_spectrum_with_biases(x64):
    net = FullyConnected(
        width=12, num_outputs=2, activation="tanh", trained="first", use_bias=True, gain=1.5
    )
    params, x = drawn(net, (2, 2))
    full, _ = full_hessian(net, params, x, 1)
    expected = by_size(np.linalg.eigvalsh(full))[:12]
    np.testing.assert_allclose(
        by_size(np.asarray(shallow_hessian_blocks(net, params, x, 1))), expected, rtol=1e-8
    )


@pytest.mark.slow  # compiles blocks of several networks
def test_bottleneck_block_is_that_of_the_theorem(x64):
    net = Bottleneck(
        width=7,
        activation="quadratic",
        bottleneck_width=1,
        bottleneck_activation="identity",
        use_bias=False,
    )
    params, x = net.init(jax.random.key(0), (1,)), jnp.array([1.2])

    def output(w2):
        return net.apply({**params, "hidden2": {"weight": w2}}, x[None])[0, 0]

    block = jax.hessian(output)(params["hidden2"]["weight"]).reshape(7, 7)
    stated = bottleneck_block_norm(
        params["hidden1"]["weight"][0],
        params["hidden3"]["weight"][0],
        params["output"]["weight"][:, 0],
        x[0],
    )
    assert float(stated) == pytest.approx(np.linalg.norm(block, 2), rel=1e-10)
    assert hessian_norm(net, params, x).value >= float(stated) * (1 - 1e-8)


LIMIT = 0.876  # median of |N(0, 3)| · ¾
# Standard error of a median of n values, 1 / (2 · density at the median · √n): 6.7 % of it at
# n = 300.
DENSITY = 2 / (0.75 * (6 * np.pi) ** 0.5) * np.exp(-((LIMIT / 0.75) ** 2) / 6)


@pytest.mark.parametrize(("width", "median"), [(100, 0.841), (1000, 0.835)])
def test_bottleneck_block_does_not_vanish_with_the_width(width, median):
    draws = (
        np.random.default_rng(seed).standard_normal((3, 300, width), np.float32)
        for seed in range(8)
    )
    batches = [
        np.asarray(bottleneck_block_norm(*jnp.asarray(draw), jnp.asarray(1.0))) for draw in draws
    ]
    medians = [float(np.median(batch)) for batch in batches]
    standard_error = 1 / (2 * DENSITY * 300**0.5)
    # the stated medians also come from 300 seeds; eight successive batches vary around them
    # accordingly
    assert np.median(np.concatenate(batches)) == pytest.approx(median, rel=0.1)
    assert all(abs(each - median) < 3.5 * 2**0.5 * standard_error for each in medians)


@pytest.mark.slow  # draws many networks
def test_nonlinear_output_norm_is_between_its_bounds(x64):
    net = FullyConnected(
        width=20, num_outputs=3, activation="erf", output="softmax", use_bias=False
    )
    params, x = drawn(net, (3,), 2)
    found = nonlinear_output_hessian(net, params, x, 1)
    exact = largest(full_hessian(net, params, x, 1)[0])
    assert found.measured.value == pytest.approx(exact, rel=1e-8)
    assert found.lower <= found.measured.value <= found.upper
    assert found.lower == pytest.approx(found.gradient_part - found.linear_part)


@pytest.mark.slow  # compiles each part
def test_parts_of_a_pointwise_output_are_the_stated_products(x64):
    net = FullyConnected(width=10, activation="erf", output="tanh", use_bias=True)
    params, x = drawn(net, (3,))
    linear = FullyConnected(width=10, activation="erf", use_bias=True)
    f = linear.apply(params, x[None])[0, 0]
    gradient = jax.grad(lambda p: linear.apply(p, x[None])[0, 0])(params)
    square = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(gradient))
    found = nonlinear_output_hessian(net, params, x)
    first, second = jax.grad(jnp.tanh)(f), jax.grad(jax.grad(jnp.tanh))(f)
    assert found.gradient_part == pytest.approx(abs(float(second)) * square, rel=1e-10)
    expected = abs(float(first)) * largest(full_hessian(linear, params, x)[0])
    assert found.linear_part == pytest.approx(expected, rel=1e-8)


def exponent(network, widths, input_shape, num_seeds):
    """Slope of the mean log norm against the log of the width."""
    x = jax.random.normal(jax.random.key(9), (1, *input_shape))
    means = []
    for width in widths:
        net = network(width)
        draw = jax.jit(net.init, static_argnums=1)
        seeds = [draw(jax.random.key(seed), input_shape) for seed in range(num_seeds)]
        estimate = hessian_norm(net, seeds, x, tolerance=1e-2, max_matvecs=64)
        assert np.all(estimate.converged)
        means.append(np.mean(np.log(estimate.value)))
    return np.polyfit(np.log(widths), means, 1)[0]


def test_linear_output_norm_scales_as_inverse_root_of_width():
    slope = exponent(
        lambda m: FullyConnected(width=m, activation="tanh", use_bias=False), (64, 1024), (4,), 8
    )
    # Gaussian output weights add a logarithm, so that the slope is somewhat above -0.5 at these
    # widths
    assert -0.6 <= slope <= -0.35


@pytest.mark.slow  # draws wide networks
def test_nonlinear_output_norm_does_not_fall():
    slope = exponent(
        lambda m: FullyConnected(width=m, activation="tanh", output="swish", use_bias=False),
        (1024, 16384),
        (4,),
        24,
    )
    assert abs(slope) <= 0.1


def test_lecun_parameterization_multiplies_the_norm_by_the_width():
    x = jnp.ones(3)
    values = {}
    for name in ("ntk", "lecun"):
        net = FullyConnected(
            width=16, activation="erf", parameterization=name, trained="first", use_bias=False
        )
        values[name] = jnp.abs(
            shallow_hessian_blocks(net, net.init(jax.random.key(0), (3,)), x)
        ).max()
    # the same draws: u = w/√m, so that every second derivative is multiplied by m
    assert float(values["lecun"]) == pytest.approx(16 * float(values["ntk"]), rel=1e-5)


def quadratic_bottleneck(width):
    return Bottleneck(
        width=width,
        activation="quadratic",
        bottleneck_width=1,
        bottleneck_activation="identity",
        use_bias=False,
    )


def four_weights(params):
    hidden = params["hidden1"]["weight"][0], params["hidden2"]["weight"][:, 0]
    return *hidden, params["hidden3"]["weight"][0], params["output"]["weight"][:, 0]


def test_step_of_the_bottleneck_reaches_a_zero_hessian(x64):
    net = quadratic_bottleneck(6)
    params, x = net.init(jax.random.key(3), (1,)), jnp.array([1.3])
    step_w2, step_v = bottleneck_zero_step(*four_weights(params), 1.3)
    w2, v = params["hidden2"]["weight"], params["output"]["weight"]
    moved = {
        **params,
        "hidden2": {"weight": w2 + step_w2[:, None]},
        "output": {"weight": v + step_v[:, None]},
    }
    before, _ = full_hessian(net, params, x)
    after, _ = full_hessian(net, moved, x)
    assert largest(after) < 1e-12 * largest(before)


def test_distance_of_the_zero_is_chi_squared_at_every_width():
    for width in (5, 400):
        draws = jax.random.normal(jax.random.key(width), (4, 4000, width))
        step_w2, step_v = bottleneck_zero_step(*draws, 1.0)
        squared = jnp.sum(step_w2**2, -1) + jnp.sum(step_v**2, -1)
        for radius in (0.5, 1.0, 2.0):
            share = float(jnp.mean(squared <= radius**2))
            # Four standard errors of a share of 4,000 draws.
            assert share == pytest.approx(1 - np.exp(-(radius**2) / 2), abs=0.032)
