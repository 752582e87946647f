"""Hessian norms, eigenpairs and spectral densities against the full dense Hessian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.hessians import _operator as operator_module
from ntk_core.hessians import (
    hessian_block_norms,
    hessian_density,
    hessian_eigenpairs,
    hessian_norm,
    hessian_norms_by_output,
)
from ntk_core.hessians._compiled import _compiled
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import by_size, drawn, full_hessian, largest

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

NET = FullyConnected(width=9, num_outputs=3, activation="tanh", output="softmax", use_bias=True)


def test_leading_eigenpairs_are_those_of_the_full_hessian(x64):
    params, x = drawn(NET)
    full, flatten = full_hessian(NET, params, x, 1)
    found = hessian_eigenpairs(NET, params, x, 1, num_wanted=4, num_directions=2, tolerance=1e-11)
    assert found.converged
    np.testing.assert_allclose(found.eigenvalues, by_size(np.linalg.eigvalsh(full))[:4], rtol=1e-8)
    for value, direction in zip(found.eigenvalues, found.directions, strict=False):
        y = flatten(direction)
        assert np.linalg.norm(y) == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(full @ y, value * y, atol=1e-9 * np.abs(found.eigenvalues[0]))
    assert found.coordinates["hidden1.weight"]["along_inputs"].shape == (4, 1, 1, 9)


def test_generic_route_refuses_a_large_basis_before_tracing(monkeypatch, x64):
    params, x = drawn(NET)
    monkeypatch.setattr(operator_module, "available_memory", lambda: 10_000.0)
    with pytest.raises(TooLarge) as refused:  # no parameter is a direct factor
        hessian_norm(lambda params, x: NET.apply(jax.tree.map(jax.lax.sin, params), x), params, x)
    assert refused.value.field == "max_matvecs"


@pytest.mark.slow
def test_batches_and_seeds_in_one_call_give_the_single_norms(x64):
    seeds = [drawn(NET, seed=seed)[0] for seed in (0, 1)]
    x = jax.random.normal(jax.random.key(5), (3, 4))
    together, first = hessian_norm(NET, seeds, x, 1), hessian_norm(NET, seeds, x[0], 1)
    assert (together.value.shape, first.value.shape) == ((2, 3), (2,))
    assert np.all(together.converged)
    for row, params in enumerate(seeds):
        np.testing.assert_allclose(
            together.value[row], hessian_norm(NET, params, x, 1).value, rtol=1e-12
        )
        alone = [hessian_norm(NET, params, each, 1).value for each in x]
        np.testing.assert_allclose(together.value[row], alone, rtol=1e-8)
        np.testing.assert_allclose(first.value[row], alone[0], rtol=1e-8)


def test_norms_by_output_are_those_of_each_output(x64):
    seeds = [drawn(NET, seed=seed)[0] for seed in (0, 1)]
    x = jax.random.normal(jax.random.key(5), (2, 4))
    outputs = ("linear", "softmax", "tanh")
    found = hessian_norms_by_output(NET, seeds, x, outputs, -2)
    assert tuple(found) == outputs
    for output, norms in found.items():
        assert norms.value.shape == (2, 2)
        assert np.all(norms.converged)
        for row, params in enumerate(seeds):
            for column, one in enumerate(x):
                full, _ = full_hessian(NET.with_output(output), params, one, 1)
                expected = np.linalg.norm(full, 2)
                assert norms.value[row, column] == pytest.approx(expected, rel=1e-7)


@pytest.mark.slow
def test_inputs_that_fit_in_both_ways_need_batched(x64):
    def apply(params, x):
        return params["v"] * jnp.tanh(params["w"] * x).sum(axis=tuple(range(1, x.ndim)))

    params, x = (
        {"v": jnp.array(1.5), "w": jnp.array(0.7)},
        jax.random.normal(jax.random.key(0), (3, 2)),
    )
    with pytest.raises(InvalidInput, match="batched=True for a batch"):
        hessian_norm(apply, params, x)
    both = hessian_norm(apply, params, x, batched=True).value
    together = hessian_norm(apply, params, x, batched=False).value
    assert both.shape == (3,)
    for value, rows in (*zip(both, x, strict=True), (together, x)):
        h = jax.hessian(lambda w, rows=rows: w[0] * jnp.tanh(w[1] * rows).sum())(
            jnp.array([1.5, 0.7])
        )
        assert value == pytest.approx(float(jnp.linalg.norm(h, 2)), rel=1e-6)


def test_too_few_products_are_unconverged(x64):
    params, x = drawn(NET)
    found = hessian_norm(NET, params, x, max_matvecs=3)
    assert not found.converged
    assert found.num_matvecs == 3
    assert found.residual > found.tolerance * found.value
    assert found.value <= hessian_norm(NET, params, x).value


def test_many_products_in_single_precision_agree_with_double():
    """After 84 products a basis orthogonalized only once has no correct digit and gives 0.202."""
    net = FullyConnected(width=300, depth=2)
    params, x = drawn(net, (10,))
    found = hessian_norm(net, params, x, tolerance=2e-6)
    assert found.converged
    assert found.num_matvecs > 70
    with jax.enable_x64(True):
        exact = hessian_norm(
            net, *jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (params, x))
        )
    assert exact.converged
    assert found.value == pytest.approx(exact.value, rel=2e-6)


def test_piecewise_linear_layers_bend_together_but_not_alone(x64):
    """With σ'' = 0 only blocks of two layers remain, so one trained layer has none."""
    alone = FullyConnected(width=7, activation="leaky_relu", trained="first", use_bias=False)
    assert hessian_norm(alone, *drawn(alone)).value == 0
    # Three pairs.
    net = FullyConnected(width=7, depth=2, num_outputs=3, activation="leaky_relu", use_bias=False)
    params, x = drawn(net)
    full, _ = full_hessian(net, params, x)
    assert hessian_norm(net, params, x).value == pytest.approx(largest(full), rel=1e-8)
    found = hessian_block_norms(net, params, x)
    assert np.all(np.diag(found.values) == 0)
    assert found.values.max() > 0.01


def test_almost_everywhere_hessian_misses_the_kinks(x64):
    """One trained ReLU layer: H = 0 wherever it exists,
    but the gradient jumps at each switch of a neuron.
    """
    net = FullyConnected(width=50, activation="relu", trained="first", use_bias=False)
    params, x = drawn(net, seed=1)
    away = jax.tree.map(
        lambda leaf: leaf + 2 * jax.random.normal(jax.random.key(7), leaf.shape), params
    )
    params, away = ({**w, "output": params["output"]} for w in (params, away))
    assert hessian_norm(net, params, x).value == hessian_norm(net, away, x).value == 0
    kernels = [float(empirical_ntk(net, w, x[None])[0, 0, 0, 0]) for w in (params, away)]
    assert abs(kernels[1] - kernels[0]) > 0.1 * kernels[0]


def test_weights_are_read_but_never_copied():
    net = FullyConnected(width=1000, depth=3, activation="tanh", use_bias=False)
    params = jax.eval_shape(lambda key: net.init(key, (10,)), jax.random.key(0))
    x = jax.ShapeDtypeStruct((10,), jnp.float32)
    one_weight_matrix = 4 * 1000**2
    linearized, image = _compiled("cpu")
    product, zero, _ = jax.eval_shape(linearized, net, (), params, x, 0)
    for program in (linearized.lower(net, (), params, x, 0), image.lower(product, params, zero)):
        spent = program.compile().memory_analysis()
        assert spent.temp_size_in_bytes + spent.output_size_in_bytes < 1.2 * one_weight_matrix


@pytest.mark.parametrize(
    "model", [NET, lambda params, x: NET.apply(params, x)], ids=["network", "function"]
)
@pytest.mark.parametrize("most", [5, 128])
def test_both_routes_agree_far_within_the_residual(model, most, x64):
    params, x = drawn(NET)
    one, other = (
        hessian_norm(model, params, x, 1, max_matvecs=most, repeated=each) for each in (False, True)
    )
    assert one.num_matvecs <= other.num_matvecs <= min(most, one.num_matvecs + 7)
    if one.num_matvecs == other.num_matvecs:
        # Rounding of some ten products.
        assert other.eigenvalue == pytest.approx(one.eigenvalue, rel=1e-12)
        assert other.residual == pytest.approx(one.residual, rel=1e-3)
    # further products only raise a Ritz value, at most by the residual
    excess = other.value / one.value - 1
    assert -1e-12 <= excess <= one.residual / one.value + 1e-12
    assert other.converged == (other.residual <= other.tolerance * other.value)


def test_networks_without_curvature_converge_on_both_routes(x64):
    net = FullyConnected(width=3, depth=1, activation="identity", trained="last", use_bias=False)
    params, x = drawn(net)
    for repeated in (False, True):
        found = hessian_norm(net, params, x, repeated=repeated)
        assert (found.value, found.converged) == (0.0, True)


def test_density_has_the_moments_of_the_full_hessian(x64):
    net = FullyConnected(width=10, num_outputs=2, activation="tanh", use_bias=True)
    params, x = drawn(net)
    sampled = hessian_density(net, params, x, num_probes=200, num_steps=6, key=jax.random.key(3))
    full, _ = full_hessian(net, params, x)
    assert sampled.num_parameters == len(full)
    eigenvalues = np.linalg.eigvalsh(full)
    for order in (1, 2, 3, 4):
        mean, error = sampled.moment(order)
        # the other p - dimension eigenvalues are exactly zero, and 4 standard errors
        # at 200 fixed probes
        assert abs(mean - np.sum(eigenvalues**order) / sampled.dimension) < 4 * error
        assert error > 0
    grid = np.linspace(-5, 5, 4001)
    narrow, wide = sampled.density(grid, 0.02), sampled.density(grid, 0.2)
    assert np.trapezoid([narrow, wide], grid) == pytest.approx(1, abs=1e-6)
    assert narrow.max() > wide.max()
