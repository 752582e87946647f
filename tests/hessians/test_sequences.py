"""Hessians of networks with attention: the small space holds the whole non-zero spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians._operator import generic_operator, output_scalar, restricted_operator
from ntk_core.networks.architectures import merge
from tests.cases import FAST_COMPILE, SEQUENCES, inputs, random_params
from tests.hessians.dense_oracle import by_size

CASES = [
    pytest.param(case, id=case.name, marks=[] if case.name == "attention" else pytest.mark.slow) for case in SEQUENCES
]


@pytest.mark.parametrize("case", CASES)
def test_restricted_hessian_has_exactly_the_spectrum_of_the_dense_one(case, x64):
    params, (x,) = random_params(case), inputs(case, 1)
    trained, fixed = case.net.partition(params)
    restricted: set[str] = set()

    def matrices(trained):
        small = restricted_operator(case.net, merge(trained, fixed), x, output_scalar(case.net, 0))
        full = generic_operator(lambda w, x: case.net.apply(merge(w, fixed), x), trained, x, 0)
        restricted.update(small.restriction.bases)
        return [jax.lax.map(lambda v, h=h: h.matvec(h.project(v)), jnp.eye(h.zero.size)) for h in (small, full)]

    small, full = map(np.asarray, jax.jit(matrices, compiler_options=FAST_COMPILE)(trained))
    eigenvalues, expected = by_size(np.linalg.eigvalsh(small)), by_size(np.linalg.eigvalsh(full))
    shared, norm = min(len(eigenvalues), len(expected)), np.abs(expected[0])
    np.testing.assert_allclose(small, small.T, atol=1e-12 * norm)
    np.testing.assert_allclose(np.sort(eigenvalues[:shared]), np.sort(expected[:shared]), atol=1e-8 * norm)
    assert np.all(np.abs(np.concatenate([eigenvalues[shared:], expected[shared:]])) <= 1e-12 * norm)
    if case.name == "attention":  # 2 positions, below 8 inputs and 8 features
        assert restricted >= {"hidden1", "hidden2", "hidden3"}
