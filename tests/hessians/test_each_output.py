"""``output_index=None``: results of every output, against dense Hessians and single outputs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import (
    InvalidInput,
    ball_sup,
    hessian_density,
    hessian_eigenpairs,
    hessian_norm,
    layer_quantities,
    sweep_widths,
)
from ntk_core.hessians import (
    hessian_block_norms,
    nonlinear_output_hessian,
    path_sup,
    shallow_hessian_blocks,
)
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import by_size, largest, normal, plain_hessian

pytestmark = pytest.mark.usefixtures("x64")
NUM_OUTPUTS = 2


def two_layers(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["a"]) @ params["b"] ** 2


PARAMS = normal(a=(3, 4), b=(4, NUM_OUTPUTS))
MOVED = jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS)
X = np.array([0.4, -1.1, 0.7])
SHALLOW = FullyConnected(
    width=5, depth=1, num_outputs=3, activation="tanh", use_bias=True, trained="first"
)
SOFTMAX = FullyConnected(
    width=5, depth=1, num_outputs=3, activation="tanh", output="softmax", use_bias=True
)


def dense(params: Any, x: Any) -> list[np.ndarray]:
    """Hessians of all outputs."""
    return [plain_hessian(two_layers, params, x, index) for index in range(NUM_OUTPUTS)]


def test_eigenpairs_of_each_output():
    found = hessian_eigenpairs(two_layers, PARAMS, X, None, num_wanted=3, tolerance=1e-9)
    assert len(found) == NUM_OUTPUTS
    for pairs, exact in zip(found, dense(PARAMS, X), strict=True):
        expected = by_size(np.linalg.eigvalsh(exact))[:3]
        np.testing.assert_allclose(pairs.eigenvalues, expected, rtol=1e-9)


@pytest.mark.slow  # compiles quadratures and blocks
def test_densities_and_blocks_of_each_output():
    densities = hessian_density(two_layers, PARAMS, X, None, num_probes=1, num_steps=20)
    blocks = hessian_block_norms(two_layers, PARAMS, X, None, trainable="a", max_matvecs=256)
    for density, block, exact in zip(densities, blocks, dense(PARAMS, X), strict=True):
        eigenvalues = np.linalg.eigvalsh(exact)
        # As many steps as parameters find every eigenvalue.
        np.testing.assert_allclose(density.nodes.max(), eigenvalues.max(), rtol=1e-8)
        np.testing.assert_allclose(density.nodes.min(), eigenvalues.min(), rtol=1e-8)
        of_first_layer = exact[:12, :12]
        np.testing.assert_allclose(block.values, [[largest(of_first_layer)]], rtol=1e-7)


@pytest.mark.slow  # compiles ascents
def test_balls_and_paths_take_the_largest_output():
    largest_norm = max(map(largest, dense(PARAMS, X)))
    ball = ball_sup(
        two_layers,
        PARAMS,
        X,
        0.2,
        output_index=None,
        tolerance=1e-9,
        num_starts=1,
        num_steps=2,
        max_further_steps=0,
    )
    assert ball.at_center == pytest.approx(largest_norm, rel=1e-8)
    assert ball.value >= max(ball.at_center, *ball.random)
    path = path_sup(two_layers, [PARAMS, MOVED], X, output_index=None, tolerance=1e-9)
    moved = max(map(largest, dense(MOVED, X)))
    np.testing.assert_allclose(path.values, [largest_norm, moved], rtol=1e-8)


def test_shallow_blocks_of_each_output():
    params = SHALLOW.init(jax.random.key(0), X.shape)
    x = jnp.asarray(X)
    found = shallow_hessian_blocks(SHALLOW, params, x, None)
    assert found.shape == (5, 3)
    for index in range(3):
        alone = shallow_hessian_blocks(SHALLOW, params, x, index)
        np.testing.assert_array_equal(found[:, index], alone)
    norms = hessian_norm(SHALLOW, params, X, None, tolerance=1e-9).value
    np.testing.assert_allclose(np.abs(found).max(axis=0), norms, rtol=1e-8)


@pytest.mark.slow  # compiles parts and bounds
def test_bounds_and_parts_of_each_output():
    params = SHALLOW.init(jax.random.key(0), X.shape)
    bounds = layer_quantities(SHALLOW, params, X, None)
    assert [each.bound for each in bounds] == [
        layer_quantities(SHALLOW, params, X, index).bound for index in range(3)
    ]
    params = SOFTMAX.init(jax.random.key(0), X.shape)
    parts = nonlinear_output_hessian(SOFTMAX, params, jnp.asarray(X), None)
    norms = hessian_norm(SOFTMAX, params, X, None).value
    np.testing.assert_allclose([each.measured.value for each in parts], norms, rtol=1e-6)


@pytest.mark.slow  # trains
def test_sweep_takes_the_largest_output():
    def model(width: int, key: jax.Array) -> Any:
        first, last = jax.random.split(key)
        weights = {
            "a": jax.random.normal(first, (3, width)),
            "b": jax.random.normal(last, (width, NUM_OUTPUTS)) / width**0.5,
        }
        return two_layers, weights

    drawn: list[Any] = []

    def remembered(width: int, key: jax.Array) -> Any:
        drawn.append(model(width, key))
        return drawn[-1]

    x = np.stack([X, -2 * X])
    y = np.zeros((2, NUM_OUTPUTS))
    found = sweep_widths(
        remembered, [4], x, y, num_seeds=1, max_steps=2, num_inputs=2, output_index=None
    )
    _, params = drawn[-1]
    expected = []
    for row in x:
        expected.append(max(map(largest, dense(params, row))))
    (run,) = found.runs
    assert run.hessian_norm == pytest.approx(np.mean(expected), rel=1e-3)


def test_wrong_inputs_are_refused_for_all_outputs():
    with pytest.raises(InvalidInput, match="one input"):
        hessian_eigenpairs(two_layers, PARAMS, X[:2], None)
    with pytest.raises(InvalidInput, match="trainable"):
        hessian_density(two_layers, PARAMS, X, None, trainable="c")
