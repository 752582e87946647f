"""Leave-one-out changes against regression that solves again without each point, in float64."""

import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import JITTER, leave_one_out


def kernels(n, others, num_outputs, seed=0):
    """K(X, X) and K(x, X) with independent features for every row (i, a)."""
    rng = np.random.default_rng(seed)
    size = num_outputs or 1
    features = rng.normal(size=((n + others) * size, 3 * n * size + 5))
    whole = features @ features.T / features.shape[1]
    kernel, cross = whole[: n * size, : n * size], whole[n * size :, : n * size]
    if num_outputs is None:
        return kernel, cross
    fold = (size, n, size)
    return (
        kernel.reshape(n, *fold).transpose(0, 2, 1, 3),
        cross.reshape(others, *fold).transpose(0, 2, 1, 3),
    )


def flat(kernel):
    if kernel.ndim == 2:
        return kernel
    rows, n, size, _ = kernel.shape
    return kernel.transpose(0, 2, 1, 3).reshape(rows * size, n * size)


@pytest.mark.parametrize("num_outputs", [None, 1, 3])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_changes_are_those_of_solving_again(num_outputs, ridge):
    n, others = 6, 4
    kernel, cross = kernels(n, others, num_outputs)
    y = np.random.default_rng(1).normal(size=(n, num_outputs or 2))
    found = leave_one_out(kernel, y, cross, ridge)
    matrix, across, size = flat(kernel), flat(cross), num_outputs or 1
    columns = y.reshape(n * size, -1)
    added = (ridge + JITTER) * np.trace(matrix) / len(matrix)
    solved = np.linalg.solve(matrix + added * np.eye(len(matrix)), columns)
    for point in range(n):
        kept = np.delete(np.arange(n * size), np.arange(size) + point * size)
        within = matrix[np.ix_(kept, kept)] + added * np.eye(len(kept))
        again = np.linalg.solve(within, columns[kept])
        change = (across[:, kept] @ again - across @ solved).reshape(found.changes[point].shape)
        np.testing.assert_allclose(found.changes[point], change, rtol=1e-8, atol=1e-10)
        own = matrix[point * size : (point + 1) * size][:, kept]
        residual = columns[point * size : (point + 1) * size] - own @ again
        np.testing.assert_allclose(found.residuals[point], residual.ravel(), rtol=1e-8, atol=1e-10)


def test_without_its_only_point_regression_predicts_zero():
    found = leave_one_out(np.full((1, 1), 2.0), np.array([3.0]), np.full((2, 1), 1.0))
    np.testing.assert_allclose(found.changes, np.full((1, 2, 1), -1.5), rtol=1e-5)
    np.testing.assert_allclose(found.residuals, [[3.0]], rtol=1e-12)


def test_kernels_of_zero_and_not_finite_ones():
    zero = leave_one_out(np.zeros((2, 2)), np.ones(2), np.zeros((1, 2)))
    assert not zero.changes.any()
    assert (zero.residuals == 1).all()
    lost = leave_one_out(np.full((2, 2), np.nan), np.ones(2), np.zeros((1, 2)))
    assert np.isnan(lost.changes).all()
    assert lost.changes.shape == (2, 1, 1)


@pytest.mark.parametrize(
    ("kernel", "targets", "cross", "ridge", "field"),
    [
        (np.ones((2, 3)), np.ones(2), np.ones((1, 2)), 0.0, "kernel"),
        (np.ones((0, 0)), np.ones(0), np.ones((1, 0)), 0.0, "kernel"),
        (np.eye(2), np.ones(2), np.ones((1, 3)), 0.0, "cross"),
        (np.eye(2), np.ones(3), np.ones((1, 2)), 0.0, "targets"),
        (np.eye(2), np.ones(2), np.ones((1, 2)), -1.0, "ridge"),
    ],
)
def test_wrong_shapes_are_refused_by_name(kernel, targets, cross, ridge, field):
    with pytest.raises(InvalidInput, match=field):
        leave_one_out(kernel, targets, cross, ridge)
