"""Hessian norm against width: it decreases, except with nonlinear outputs and bottlenecks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import hessian_norm, shallow_hessian_blocks
from ntk_core.networks.architectures import Bottleneck, FullyConnected

WIDTHS = (64, 1024)


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
    slope = exponent(lambda m: FullyConnected(width=m, activation="tanh", use_bias=False), WIDTHS, (4,), 8)
    # Gaussian output weights add a logarithm, so that the slope is somewhat above -0.5 at these widths
    assert -0.6 <= slope <= -0.35


def test_nonlinear_output_norm_does_not_fall():
    slope = exponent(
        lambda m: FullyConnected(width=m, activation="tanh", output="swish", use_bias=False), (1024, 16384), (4,), 24
    )
    assert abs(slope) <= 0.1


@pytest.mark.slow
def test_bottleneck_norm_does_not_fall():
    settings = {
        "activation": "quadratic",
        "bottleneck_width": 1,
        "bottleneck_activation": "identity",
        "use_bias": False,
    }
    assert abs(exponent(lambda m: Bottleneck(width=m, **settings), WIDTHS, (1,), 300)) <= 0.1


def test_lecun_parameterization_multiplies_the_norm_by_the_width():
    x = jnp.ones(3)
    values = {}
    for name in ("ntk", "lecun"):
        net = FullyConnected(width=16, activation="erf", parameterization=name, trained="first", use_bias=False)
        values[name] = jnp.abs(shallow_hessian_blocks(net, net.init(jax.random.key(0), (3,)), x)).max()
    # the same draws: u = w/√m, so that every second derivative is multiplied by m
    assert float(values["lecun"]) == pytest.approx(16 * float(values["ntk"]), rel=1e-5)
