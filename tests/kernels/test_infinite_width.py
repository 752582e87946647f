"""Kernels of infinitely wide networks: closed forms, quadrature, and the limit of empirical kernels."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import _infinite_width as limits
from ntk_core.kernels import empirical_ntk, infinite_width_ntk
from ntk_core.networks.architectures import Attention, ConvNet, FullyConnected, Mirrored, MixedNet, ResNet
from tests.cases import FAST_COMPILE

X = np.random.default_rng(0).standard_normal((3, 5))
IMAGES = np.random.default_rng(0).standard_normal((2, 4, 4, 2))


def test_relu_network_has_the_arc_cosine_kernel(x64):
    """One hidden layer, first layer and output: Θ = Σ κ₀ + κ₁ (Cho & Saul 2009), by angles in NumPy."""
    norms = np.linalg.norm(X, axis=1)
    angle = np.arccos(np.clip(X @ X.T / np.outer(norms, norms), -1, 1))
    kappa0 = (np.pi - angle) / (2 * np.pi)
    kappa1 = np.outer(norms, norms) / 5 * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    expected = X @ X.T / 5 * kappa0 + kappa1
    # arccos loses half of the digits at x = x', where its argument rounds to 1: sqrt(eps) = 1.5e-8.
    np.testing.assert_allclose(infinite_width_ntk(FullyConnected(use_bias=False), X), expected, rtol=1e-7)


def test_deep_linear_kernel_is_a_multiple_of_inner_products(x64):
    net = FullyConnected(depth=3, activation="identity", use_bias=False)  # four layers, each with part x·x'/d
    np.testing.assert_allclose(infinite_width_ntk(net, X), 4 * X @ X.T / 5, rtol=1e-13)


LIMITS: list[Any] = [
    (FullyConnected(depth=2, activation="relu", use_bias=(True, False)), X),
    (ConvNet(depth=2, activation="erf", use_bias=True), IMAGES),
    (ResNet(depth=3, activation="relu", skip_every=2, use_bias=True), X),
    (MixedNet(depth=2, activation="relu", pool_size=2, padding="zero", use_bias=False), IMAGES),
    (Mirrored(FullyConnected(depth=2, activation="erf", use_bias=False)), X),
]
IN_TIERS = [pytest.param(*each, marks=[] if k < 2 else pytest.mark.slow) for k, each in enumerate(LIMITS)]
WIDTHS, NUM_SEEDS = (32, 512), 24


def _with_width(net, width):
    return Mirrored(replace(net.net, width=width)) if isinstance(net, Mirrored) else replace(net, width=width)


@pytest.mark.parametrize(("net", "x"), IN_TIERS, ids=lambda value: getattr(value, "activation", ""))
def test_empirical_kernels_converge_as_inverse_root_of_width(net, x, x64):
    limit = np.asarray(infinite_width_ntk(net, x))
    logs, errors = [], []
    for width in WIDTHS if not isinstance(net, ConvNet | MixedNet) else (12, 128):
        wide = _with_width(net, width)
        kernel = jax.jit(
            lambda key, wide=wide: empirical_ntk(wide, wide.init(key, x.shape[1:]), x)[..., 0, 0],
            compiler_options=FAST_COMPILE,
        )
        keys = jax.random.split(jax.random.key(width), NUM_SEEDS)
        kernels = np.stack([kernel(key) for key in keys])
        squares = ((kernels - limit) ** 2).sum(axis=(1, 2)) / (limit**2).sum()
        logs.append((math.log(width), 0.5 * math.log(squares.mean())))
        errors.append(0.5 * squares.std(ddof=1) / squares.mean() / math.sqrt(NUM_SEEDS))
    # The mean over seeds equals the limit; the bias of order 1/m is below the standard error.
    along = (kernels * limit).sum(axis=(1, 2)) / (limit**2).sum()
    assert abs(along.mean() - 1) < 3 * along.std(ddof=1) / math.sqrt(NUM_SEEDS)
    (m1, low), (m2, high) = logs
    slope, error = (high - low) / (m2 - m1), math.hypot(*errors) / (m2 - m1)
    assert abs(slope + 0.5) < 3 * error
    assert error < 0.1


def test_kernels_of_trained_subsets_add_up(x64):
    net = FullyConnected(depth=3, activation="tanh", use_bias=True)
    whole, hidden, last = (infinite_width_ntk(replace(net, trained=part), X) for part in ("all", "hidden", "last"))
    np.testing.assert_allclose(hidden + last, whole, rtol=1e-13)
    first = infinite_width_ntk(replace(net, trained="first"), X)
    assert np.all(np.diag(first) < np.diag(hidden))
    assert infinite_width_ntk(Attention(trained="last"), np.ones((2, 3, 2))).shape == (2, 2)


def test_kernel_between_two_batches_is_a_block_of_the_whole(x64):
    for net, x in (LIMITS[0], LIMITS[-2]):
        whole = infinite_width_ntk(net, x)
        np.testing.assert_allclose(infinite_width_ntk(net, x[:1], x[1:]), whole[:1, 1:], rtol=1e-12)


def test_kernel_in_blocks_is_the_whole_kernel(x64, monkeypatch):
    net = ConvNet(depth=1, activation="erf", readout="global-average", use_bias=False)
    whole = infinite_width_ntk(net, IMAGES)
    monkeypatch.setattr(limits, "BLOCK_ENTRIES", 1)
    np.testing.assert_allclose(infinite_width_ntk(net, IMAGES), whole, rtol=1e-13)


def test_kernel_uses_float64_and_returns_the_default_precision(x64):
    net = FullyConnected(depth=4, activation="tanh", use_bias=False)
    exact = np.asarray(infinite_width_ntk(net, X))
    jax.config.update("jax_enable_x64", False)
    kernel = infinite_width_ntk(net, X)
    assert kernel.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(kernel), exact.astype(np.float32))


def test_inputs_of_zero_are_no_trouble(x64):
    for activation in ("relu", "tanh"):
        assert np.all(
            np.isfinite(infinite_width_ntk(FullyConnected(activation=activation, use_bias=False), np.zeros((2, 3))))
        )
