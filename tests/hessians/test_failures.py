"""How often a converged norm or eigenpair is wrong, and numbers that are not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import hessian_norm
from ntk_core.hessians._host_lanczos import leading
from ntk_core.hessians._lanczos import lanczos_extreme
from ntk_core.networks.architectures import FullyConnected
from tests.plain_derivatives import drawn, small_hessian

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

TOLERANCES = (0.3, 0.1, 3e-2, 1e-2, 1e-3)


@pytest.mark.long
@pytest.mark.parametrize("width", [4, 16])
def test_norms_of_one_hidden_layer_are_within_their_tolerance(width, x64):
    rng = np.random.default_rng(0)
    net = FullyConnected(width=width, depth=1, activation="swish", use_bias=False)
    wrong = np.zeros(len(TOLERANCES))
    for seed in range(10):
        matrix = small_hessian(net, *drawn(net, (10,), seed))[0]
        values, vectors = np.linalg.eigh(matrix)
        basis = vectors[:, np.abs(values) > 1e-14]
        exact = np.abs(values).max()
        for _ in range(40):
            start = basis @ rng.standard_normal(basis.shape[1])
            for at, tolerance in enumerate(TOLERANCES):
                found = leading(
                    lambda v, matrix=matrix: (v, matrix @ v), start, 128, tolerance, basis.shape[1]
                )
                assert found.converged
                wrong[at] += abs(abs(found.value) - exact) > tolerance * exact
    # The chance of one error in 400 norms is at most 0.2 for each tolerance.
    assert wrong.sum() <= 1


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2])
def test_compiled_loop_waits_for_a_hidden_eigenvector(tolerance, x64):
    """The start has a component of 1e-3 along the eigenvector of 1.5 and finds 1 first."""
    values = jnp.concatenate([jnp.array([1.5, 1.0]), jnp.linspace(-0.2, 0.2, 98)])
    start = jax.random.normal(jax.random.key(0), (100,)).at[0].set(1e-2).at[1].set(10.0)
    asked = {"max_steps": 100, "tolerance": tolerance}
    found = lanczos_extreme(lambda v: values * v, start, start[::-1], **asked)
    assert found.converged
    assert float(found.values[0]) == pytest.approx(1.5, rel=tolerance)
    on_host = leading(lambda v: (v, values * v), np.asarray(start), 100, tolerance)
    assert on_host.converged
    assert on_host.value == pytest.approx(1.5, rel=tolerance)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_diverged_seed_leaves_the_others_right(repeated):
    net = FullyConnected(width=9, activation="tanh")
    params, x = drawn(net)
    lost = jax.tree.map(lambda leaf: leaf * jnp.nan, params)
    found = hessian_norm(net, [params, lost, params], x, repeated=repeated)
    alone = hessian_norm(net, params, x, repeated=repeated)
    assert found.converged.tolist() == [True, False, True]
    assert np.isnan(found.value).tolist() == [False, True, False]
    assert found.value[0] == found.value[2] == alone.value
    assert np.isnan(hessian_norm(net, params, x * jnp.nan, repeated=repeated).value)
