"""Kernel regression, alignment, distance and eigenspaces against explicit formulas in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from ntk_core.errors import InvalidInput
from ntk_core.kernels import (
    JITTER,
    alignment,
    kernel_distance,
    kernel_regression,
    leading_eigenvectors,
    principal_angles,
    target_share,
)

RANDOM = np.random.default_rng(0)
N, OTHERS, COLUMNS = 12, 5, 2
FACTOR = RANDOM.standard_normal((N, 30))
KERNEL = FACTOR @ FACTOR.T
CROSS = RANDOM.standard_normal((OTHERS, 30)) @ FACTOR.T
Y = RANDOM.standard_normal((N, COLUMNS))
ROUNDING = 1e-10  # condition numbers here are below 1e3


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_regression_solves_its_equations_like_scikit_learn(ridge):
    """The minimum of Σ ‖Kc − y‖² + α cᵀKc has (K + α)c = y."""
    found = kernel_regression(KERNEL, Y, CROSS, ridge)
    alpha = (ridge + JITTER) * np.trace(KERNEL) / N
    matrix = KERNEL + alpha * np.eye(N)
    assert found.outputs == pytest.approx(CROSS @ np.linalg.inv(matrix) @ Y, rel=ROUNDING)
    reference = KernelRidge(alpha=alpha, kernel="precomputed").fit(KERNEL, Y)
    assert found.outputs == pytest.approx(reference.predict(CROSS), rel=ROUNDING)
    assert found.jitter == JITTER
    # LAPACK estimates the 1-norm of an inverse from below, exactly here.
    assert found.condition == pytest.approx(np.linalg.cond(matrix, 1), rel=0.2)
    assert found.condition <= np.linalg.cond(matrix, 1) * (1 + ROUNDING)


def test_jitter_grows_until_cholesky_succeeds():
    wanting = np.diag([1.0, 1.0, -1e-4])  # like a kernel of three equal inputs after rounding
    found = kernel_regression(wanting, np.ones((3, 1)), wanting)
    assert found.jitter == pytest.approx(1e-3)
    broken = kernel_regression(np.full((2, 2), np.nan), np.ones((2, 1)), np.ones((1, 2)))
    assert np.isnan(broken.outputs).all()
    assert math.isnan(broken.condition)
    dead = kernel_regression(np.zeros((2, 2)), np.ones((2, 1)), np.zeros((1, 2)))
    assert (dead.outputs == 0).all()
    assert math.isinf(dead.condition)
    with pytest.raises(InvalidInput, match="ridge"):
        kernel_regression(KERNEL, Y, CROSS, -0.1)


def test_alignment_and_distance_are_cosines_of_matrices():
    y, other = Y[:, 0], FACTOR[:, :4] @ FACTOR[:, :4].T

    def cosine(a, b):
        return sum(a[i, j] * b[i, j] for i in range(N) for j in range(N)) / math.sqrt(
            (a**2).sum() * (b**2).sum()
        )

    assert alignment(KERNEL, y) == pytest.approx(cosine(KERNEL, np.outer(y, y)), rel=ROUNDING)
    assert kernel_distance(KERNEL, other) == pytest.approx(1 - cosine(KERNEL, other), rel=ROUNDING)
    assert kernel_distance(KERNEL, 3 * KERNEL) < 1e-30
    assert math.isnan(alignment(0 * KERNEL, y))
    assert math.isnan(kernel_distance(0 * KERNEL, KERNEL))


def test_alignment_and_distance_accept_both_kernel_shapes():
    features = np.random.default_rng(4).standard_normal((N, 2, 9))
    kernel, y = (
        np.einsum("iap,jbp->ijab", features, features),
        np.random.default_rng(5).standard_normal((N, 2)),
    )
    rows = kernel.transpose(0, 2, 1, 3).reshape(2 * N, 2 * N)
    assert alignment(kernel, y) == pytest.approx(alignment(rows, y.ravel()), rel=ROUNDING)
    same = np.einsum("ij,ab->ijab", KERNEL, np.eye(2))  # equal for each output, 0 between them
    assert alignment(KERNEL, y) == pytest.approx(alignment(same, y), rel=ROUNDING)
    other = kernel + same
    assert kernel_distance(kernel, other) == pytest.approx(
        kernel_distance(rows, other.transpose(0, 2, 1, 3).reshape(2 * N, 2 * N)), rel=ROUNDING
    )
    with pytest.raises(InvalidInput, match="y"):
        alignment(kernel, y[:, :1])
    with pytest.raises(InvalidInput, match="other"):
        kernel_distance(kernel, KERNEL)


@pytest.mark.parametrize("size", [N, 1600])
def test_eigenvectors_have_target_shares_and_principal_angles(size):
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((size, 6)))[0]
    values = np.array([9.0, 7.0, 5.0, 3.0, 2.0, 1.0])
    kernel = rotation * values @ rotation.T
    found = leading_eigenvectors(kernel, 3)
    assert np.abs(np.einsum("ij,ij->j", found, rotation[:, :3])) == pytest.approx(1, abs=1e-7)
    y = rotation @ np.array([1.0, 2.0, 0.0, 2.0, 0.0, 0.0])
    assert target_share(found, y) == pytest.approx([1 / 9, 5 / 9, 5 / 9], abs=1e-7)
    turned = np.stack(
        [found[:, 0], math.cos(0.3) * found[:, 1] + math.sin(0.3) * rotation[:, 3]], axis=1
    )
    assert principal_angles(found[:, :2], turned) == pytest.approx([0, math.degrees(0.3)], abs=1e-5)
    singular = np.linalg.svd(found[:, :2].T @ turned)[1]
    assert principal_angles(found[:, :2], turned)[-1] == pytest.approx(
        math.degrees(math.acos(singular[-1])), abs=1e-5
    )


def test_variance_is_that_of_the_gaussian_process():
    train, test, ridge = slice(0, 8), slice(8, N), 0.1
    found = kernel_regression(
        KERNEL[train, train], Y[train], KERNEL[test, train], ridge, np.diag(KERNEL)[test]
    )
    noisy = KERNEL[train, train] + (ridge + found.jitter) * np.trace(
        KERNEL[train, train]
    ) / 8 * np.eye(8)
    one, column = (kernel_regression(KERNEL, y, CROSS).outputs for y in (Y[:, 0], Y[:, :1]))
    np.testing.assert_array_equal(one, column)
    posterior = (
        KERNEL[test, test] - KERNEL[test, train] @ np.linalg.inv(noisy) @ KERNEL[train, test]
    )
    np.testing.assert_allclose(found.variance, np.diag(posterior), rtol=1e-8)
    assert kernel_regression(KERNEL[train, train], Y[train], KERNEL[test, train]).variance is None


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
