"""Hessians of networks with attention: the small space holds the whole non-zero spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians import hessian_norm
from ntk_core.hessians._operator import generic_operator, output_scalar, restricted_operator
from ntk_core.networks.architectures import Attention, merge
from tests.cases import FAST_COMPILE, SEQUENCES, inputs, random_params
from tests.plain_derivatives import by_size

QUICK, SLOW = ("attention",), ("transformer", "transformer-layers")  # kernels of all of them: tests/kernels
CASES = [
    pytest.param(case, id=case.name, marks=[] if case.name in QUICK else pytest.mark.slow)
    for case in SEQUENCES
    if case.name in (*QUICK, *SLOW)
]


@pytest.mark.parametrize("case", CASES)
def test_restricted_hessian_has_the_dense_spectrum(case, x64):
    params, (x,) = random_params(case), inputs(case, 1)
    trained, fixed = case.net.partition(params)
    restricted: set[str] = set()

    def matrices(trained):
        small = restricted_operator(case.net, merge(trained, fixed), x, output_scalar(case.net, 0))
        full = generic_operator(lambda w, x: case.net.apply(merge(w, fixed), x), trained, x, 0)
        restricted.update(small.space.bases)
        return [jax.lax.map(lambda v, h=h: h.matvec(h.project(v)), jnp.eye(h.zero.size)) for h in (small, full)]

    small, full = map(np.asarray, jax.jit(matrices, compiler_options=FAST_COMPILE)(trained))
    eigenvalues, expected = by_size(np.linalg.eigvalsh(small)), by_size(np.linalg.eigvalsh(full))
    shared, norm = min(len(eigenvalues), len(expected)), np.abs(expected[0])
    np.testing.assert_allclose(small, small.T, atol=1e-12 * norm)
    np.testing.assert_allclose(np.sort(eigenvalues[:shared]), np.sort(expected[:shared]), atol=1e-8 * norm)
    assert np.all(np.abs(np.concatenate([eigenvalues[shared:], expected[shared:]])) <= 1e-12 * norm)
    if case.name == "attention":  # 2 positions, below 8 inputs and 8 features
        assert restricted >= {f"['hidden{layer}']['weight']" for layer in (1, 2, 3)}


@pytest.mark.slow
def test_norms_decrease_with_head_dimension_if_scores_vanish():
    x = jax.random.normal(jax.random.key(0), (1, 4, 4))
    means = {}
    for exponent in (0.5, 1.0):
        for dim in (8, 64):
            net = Attention(num_heads=1, head_dim=dim, score_exponent=exponent)
            drawn = [net.init(key, (4, 4)) for key in jax.random.split(jax.random.key(dim), 16)]
            means[exponent, dim] = hessian_norm(net, drawn, x, tolerance=1e-2).value.mean()
    # Eight times as wide: by derivation 1 and 8^(−½) = 0.35; means over 16 draws that vary by half.
    assert 0.6 < means[0.5, 64] / means[0.5, 8] < 1.7
    assert 0.2 < means[1.0, 64] / means[1.0, 8] < 0.6
