"""Every traced program has the kernel of explicit Jacobians and the Hessian norm of the dense Hessian."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk, generic_ntk, split_inexact
from ntk_core.traced import layers_of
from tests.traced.programs import CASES, X, batch_statistics, draw

QUICK = ("mlp", "cut in three", "cnn", "tied weights", "layers in time", "weight norm")


def dense_norm(apply, params, x):
    moving, restore = split_inexact(params)
    flat, unravel = ravel_pytree(moving)
    hessian = jax.jit(jax.hessian(lambda w: apply(restore(unravel(w)), x[None])[0, 0]))(flat)
    return np.abs(np.linalg.eigvalsh(hessian)).max()


def compare(case):
    params, x = jax.tree.map(jnp.asarray, case.params), jnp.asarray(case.x)
    found = layers_of(case.apply, params, x)
    assert "".join(layer.kind[0] for layer in found.layers) == case.kinds, case.name
    expected = generic_ntk(case.apply, params, x, x[1:])
    scale = np.abs(expected).max()
    both = empirical_ntk(case.apply, params, x), empirical_ntk(case.apply, params, x, x[1:])
    np.testing.assert_allclose(both[0][:, 1:], expected, rtol=0, atol=1e-10 * scale, err_msg=case.name)
    np.testing.assert_allclose(both[1], expected, rtol=0, atol=1e-10 * scale, err_msg=case.name)
    norm = hessian_norm(case.apply, params, x[0], tolerance=1e-8, max_matvecs=400)
    assert norm.value == pytest.approx(dense_norm(case.apply, params, x[0]), rel=1e-6), case.name


@pytest.mark.parametrize("name", QUICK)
def test_some_programs(name, x64):
    compare(next(case for case in CASES if case.name == name))


@pytest.mark.slow
def test_all_other_programs(x64):
    for case in CASES:
        if case.name not in QUICK:
            compare(case)


def test_what_mixes_rows_is_refused_with_its_operation(x64):
    params = {"w": jnp.asarray(draw(3, 8)), "v": jnp.asarray(draw(8, 2))}
    for compute in (empirical_ntk, layers_of):
        with pytest.raises(InvalidInput, match="reduce_sum mixes the rows"):
            compute(batch_statistics, params, jnp.asarray(X))
