"""Kernels of infinite width or with infinitely many heads.

Closed forms, quadrature, limits of empirical kernels.
"""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import _limit_kernels as limits
from ntk_core.kernels import (
    empirical_ntk,
    infinite_heads_ntk,
    infinite_width_nngp,
    infinite_width_ntk,
)
from ntk_core.networks.architectures import (
    Attention,
    ConvNet,
    FullyConnected,
    Mirrored,
    MixedNet,
    ResNet,
)
from tests.cases import FAST_COMPILE

X = np.random.default_rng(0).standard_normal((3, 5))
IMAGES = np.random.default_rng(0).standard_normal((2, 4, 4, 2))


def arc_cosine(cov):
    """E[σ(u) σ(v)] and E[σ'(u) σ'(v)] of a ReLU for centered Gaussians (Cho &
    Saul 2009), in NumPy.
    """
    scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    angle = np.arccos(np.clip(cov / scale, -1, 1))
    values = scale * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    return values, (np.pi - angle) / (2 * np.pi)


def test_relu_network_has_the_arc_cosine_kernel(x64):
    """One hidden layer, first layer and output."""
    values, slopes = arc_cosine(X @ X.T / 5)
    expected = X @ X.T / 5 * slopes + values
    # arccos loses half of the digits at x = x', where its argument rounds to 1: sqrt(eps) = 1.5e-8.
    np.testing.assert_allclose(
        infinite_width_ntk(FullyConnected(use_bias=False), X), expected, rtol=1e-7
    )


LIMITS: list[Any] = [
    (FullyConnected(depth=2, activation="relu", use_bias=(True, False)), X),
    (ConvNet(depth=2, activation="erf", use_bias=True), IMAGES),
    (ResNet(depth=3, activation="relu", skip_every=2, use_bias=True), X),
    (MixedNet(depth=2, activation="relu", pool_size=2, padding="zero", use_bias=False), IMAGES),
    (Mirrored(FullyConnected(depth=2, activation="erf", use_bias=False)), X),
]
IN_TIERS = [
    pytest.param(*each, marks=[] if k < 2 else pytest.mark.slow) for k, each in enumerate(LIMITS)
]
WIDTHS, NUM_SEEDS = (32, 512), 24


def _with_width(net, width):
    return (
        Mirrored(replace(net.net, width=width))
        if isinstance(net, Mirrored)
        else replace(net, width=width)
    )


@pytest.mark.slow
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
    net = FullyConnected(depth=3, activation="relu", use_bias=True)
    whole, hidden, last = (
        infinite_width_ntk(replace(net, trained=part), X) for part in ("all", "hidden", "last")
    )
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


@pytest.mark.parametrize("scale", [1e25, 1e-25])
def test_kernel_beyond_the_range_of_floats_is_refused(scale, x64):
    net = FullyConnected(depth=1, activation="relu", use_bias=False)
    params = net.init(jax.random.key(0), X.shape[1:])
    wide = infinite_width_ntk(net, scale * X)
    np.testing.assert_allclose(wide / scale**2, infinite_width_ntk(net, X), rtol=1e-12)
    jax.config.update("jax_enable_x64", False)
    for kernel in (infinite_width_ntk, infinite_width_nngp):
        with pytest.raises(InvalidInput, match="x1: inputs with kernel entries up to"):
            kernel(net, scale * X)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    with pytest.raises(InvalidInput, match="x1: inputs with kernel entries up to"):
        infinite_width_ntk(net.apply, single, scale * X, weight_std={"*": 1.0})
    lost = np.where(np.arange(5) == 1, np.nan, X).astype(np.float32)
    for given, field in (((lost, X), "x1"), ((X, lost), "x2")):
        with pytest.raises(InvalidInput, match=f"{field}: inputs that are not finite"):
            infinite_width_ntk(net.apply, single, *given, weight_std={"*": 1.0})
    zeros = infinite_width_ntk(net, np.zeros((2, 5)))
    np.testing.assert_array_equal(zeros, np.zeros((2, 2)))


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("use_bias", [False, True])
def test_nngp_is_the_recursion_of_covariances(depth, use_bias, x64):
    cov = X @ X.T / X.shape[1] + use_bias
    for layer in range(depth):
        cov = arc_cosine(cov)[0] + (use_bias if layer < depth - 1 else 0)
    net = FullyConnected(depth=depth, activation="relu", use_bias=use_bias)
    np.testing.assert_allclose(infinite_width_nngp(net, X), cov, rtol=1e-7)


def test_nngp_is_the_mean_over_wide_random_networks(x64):
    """Within five standard errors of 400 draws of four independent outputs."""
    wide, x = (
        ConvNet(width=32, depth=1, num_outputs=4, activation="erf", readout="global-average"),
        IMAGES[:, :3, :3],
    )
    outputs = jax.jit(
        jax.vmap(lambda key: wide.apply(wide.init(key, x.shape[1:]), jnp.asarray(x)))
    )(jax.random.split(jax.random.key(0), 400))
    products = (
        np.einsum("sia,sja->sija", outputs, outputs)
        .transpose(0, 3, 1, 2)
        .reshape(-1, len(x), len(x))
    )
    error = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - infinite_width_nngp(wide, x)) < 5 * error + 0.01)


def test_nngp_is_the_tangent_kernel_of_the_last_layer(x64):
    net = FullyConnected(depth=2, activation="erf", use_bias=True)
    last = FullyConnected(depth=2, activation="erf", use_bias=True, trained="last")
    np.testing.assert_allclose(infinite_width_nngp(net, X), infinite_width_ntk(last, X), rtol=1e-9)


@pytest.mark.slow
def test_kernels_of_many_heads_converge(x64):
    net = Attention(num_heads=1, head_dim=3, causal=True)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((5, 4, 3)))
    limit = infinite_heads_ntk(net, x, num_batches=32)
    scale = np.linalg.norm(limit.value)
    error = np.linalg.norm(limit.standard_error) / scale
    assert error < 0.03
    distances = []
    for num_heads in (16, 256, 4096):
        wide = Attention(num_heads=num_heads, head_dim=3, causal=True)
        drawn = [
            empirical_ntk(wide, wide.init(jax.random.key(s), (4, 3)), x)[..., 0, 0]
            for s in range(4)
        ]
        distances.append(
            np.mean([np.linalg.norm(kernel - limit.value) for kernel in drawn]) / scale
        )
    # Means over independent heads: 16 times as many are 4 times as close, up to the
    # error of the limit.
    assert distances[1] == pytest.approx(distances[0] / 4, rel=0.5)
    assert distances[2] < distances[1] / 4 + 3 * error
