"""NNGP kernels, traced and diagonal kernels, and variances of kernel regression against naive float64 oracles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import (
    diagonal_ntk,
    empirical_ntk,
    infinite_width_nngp,
    infinite_width_ntk,
    kernel_regression,
    trace_outputs,
)
from ntk_core.networks.architectures import ConvNet, FullyConnected

X = np.random.default_rng(0).standard_normal((5, 3))
IMAGES = np.random.default_rng(3).standard_normal((2, 3, 3, 1))


def arc_cosine(cov: np.ndarray) -> np.ndarray:
    """E[σ(u) σ(v)] for a ReLU and centered Gaussians of these covariances (Cho & Saul 2009), in NumPy."""
    scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    angle = np.arccos(np.clip(cov / scale, -1, 1))
    return scale * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("use_bias", [False, True])
def test_nngp_is_the_recursion_of_covariances(depth, use_bias, x64):
    cov = X @ X.T / X.shape[1] + use_bias
    for layer in range(depth):
        cov = arc_cosine(cov) + (use_bias if layer < depth - 1 else 0)
    net = FullyConnected(depth=depth, activation="relu", use_bias=use_bias)
    np.testing.assert_allclose(infinite_width_nngp(net, X), cov, rtol=1e-7)


def test_nngp_is_the_mean_over_wide_random_networks(x64):
    """Within five standard errors of 400 draws of four independent outputs."""
    wide, x = ConvNet(width=256, depth=1, num_outputs=4, activation="erf", readout="global-average"), IMAGES
    outputs = jax.jit(jax.vmap(lambda key: wide.apply(wide.init(key, x.shape[1:]), jnp.asarray(x))))(
        jax.random.split(jax.random.key(0), 400)
    )
    products = np.einsum("sia,sja->sija", outputs, outputs).transpose(0, 3, 1, 2).reshape(-1, len(x), len(x))
    error = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - infinite_width_nngp(wide, x)) < 5 * error + 0.01)


def test_nngp_is_the_tangent_kernel_of_the_last_layer(x64):
    net = FullyConnected(depth=2, activation="erf", use_bias=True)
    last = FullyConnected(depth=2, activation="erf", use_bias=True, trained="last")
    np.testing.assert_allclose(infinite_width_nngp(net, X), infinite_width_ntk(last, X), rtol=1e-9)


@pytest.mark.parametrize("as_function", [False, True])
def test_diagonal_and_trace_are_parts_of_the_kernel(as_function, x64):
    net = FullyConnected(width=7, depth=2, num_outputs=3, activation="tanh")
    params, x = net.init(jax.random.key(0), 3), jnp.asarray(np.tile(X, (5, 1)) * np.linspace(0.1, 2, 25)[:, None])
    model = (lambda w, x: net.apply(w, x)) if as_function else net
    jacobian = jax.jit(jax.jacobian(lambda w: net.apply(w, x)))(params)
    flat = jnp.concatenate([leaf.reshape(25, 3, -1) for leaf in jax.tree.leaves(jacobian)], axis=2)
    np.testing.assert_allclose(diagonal_ntk(model, params, x), jnp.einsum("iap,ibp->iab", flat, flat), rtol=1e-10)
    traced = trace_outputs(empirical_ntk(model, params, x))
    np.testing.assert_allclose(traced, jnp.einsum("iap,jap->ij", flat, flat) / 3, rtol=1e-10)
    np.testing.assert_allclose(empirical_ntk(model, params, x, trace_outputs=True), traced, rtol=1e-12)


def test_variance_is_that_of_the_gaussian_process():
    random = np.random.default_rng(1)
    features = random.standard_normal((9, 20))
    kernel = features @ features.T
    train, test = slice(0, 6), slice(6, 9)
    y, ridge = random.standard_normal((6, 1)), 0.1
    found = kernel_regression(kernel[train, train], y, kernel[test, train], ridge, np.diag(kernel)[test])
    noisy = kernel[train, train] + (ridge + found.jitter) * np.trace(kernel[train, train]) / 6 * np.eye(6)
    posterior = kernel[test, test] - kernel[test, train] @ np.linalg.inv(noisy) @ kernel[train, test]
    np.testing.assert_allclose(found.variance, np.diag(posterior), rtol=1e-8)
    np.testing.assert_allclose(found.outputs, kernel[test, train] @ np.linalg.inv(noisy) @ y, rtol=1e-8)
    assert kernel_regression(kernel[train, train], y, kernel[test, train]).variance is None


def test_regression_takes_kernels_with_outputs():
    random = np.random.default_rng(2)
    features = random.standard_normal((7, 2, 30))
    kernel = np.einsum("iap,jbp->ijab", features, features)
    y = random.standard_normal((5, 2))
    prior = np.einsum("iiab->iab", kernel)[5:]
    found = kernel_regression(kernel[:5, :5], y, kernel[5:, :5], 0.2, prior)
    rows = np.einsum("iap,jbp->iajb", features, features).reshape(14, 14)
    flat = kernel_regression(rows[:10, :10], y.reshape(-1), rows[10:, :10], 0.2, np.diag(rows)[10:])
    np.testing.assert_allclose(found.outputs, flat.outputs.reshape(2, 2), rtol=1e-12)
    np.testing.assert_allclose(found.variance, flat.variance.reshape(2, 2), rtol=1e-12)
    with pytest.raises(InvalidInput, match="prior"):
        kernel_regression(kernel[:5, :5], y, kernel[5:, :5], 0.2, np.ones(3))
    with pytest.raises(InvalidInput, match="cross"):
        kernel_regression(kernel[:5, :5], y, rows[10:, :10])
