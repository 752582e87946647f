"""Naive oracles: the kernel of explicit Jacobians and the full Hessian of one output,
each compiled as one program.

Without ``jax.jit``, separate compilation of each operation takes half of a test's time.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ntk_core.hessians import hessian_norm
from ntk_core.hessians._operator import output_scalar, restricted_operator
from ntk_core.kernels import empirical_ntk, generic_ntk, split_inexact
from ntk_core.networks.architectures import merge
from tests.cases import FAST_COMPILE

quickly = functools.partial(jax.jit, compiler_options=FAST_COMPILE)


def drawn(net, input_shape=(4,), seed=0):
    """Parameters of a network and one normal input."""
    return net.init(jax.random.key(seed), input_shape), jax.random.normal(
        jax.random.key(seed + 1), input_shape
    )


def normal(seed=0, **shapes):
    """Normal arrays by name, divided by the root of their first axis."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(shape) / max(1, *shape[:1]) ** 0.5
        for name, shape in shapes.items()
    }


def plain_kernel(apply, params, x1, x2=None):
    """K (n1, n2, C, C) of any function."""
    moving, restore = split_inexact(params)
    of = quickly(lambda w: generic_ntk(lambda w, x: apply(restore(w), x), w, x1, x2))
    return np.asarray(of(moving))


def plain_hessian(apply, params, x, output_index=0):
    """Flat Hessian of any function over all parameters, for one input without batch axis."""
    moving, restore = split_inexact(params)
    of = quickly(lambda w: dense_hessian(lambda w, x: apply(restore(w), x), w, x, output_index))
    return np.asarray(of(moving))


def dense_hessian(apply, params, x, output_index=0):
    """``plain_hessian`` for use inside another program."""
    moving, restore = split_inexact(params)
    flat, unravel = ravel_pytree(moving)
    return jax.hessian(lambda w: apply(restore(unravel(w)), x[None])[0, output_index])(flat)


def small_hessian(net, params, x, output_index=0):
    """(Hessian of a network in coordinates of the small space, parameters that
    this space restricts).
    """
    bases: set[str] = set()

    def columns(params, x):
        hessian = restricted_operator(net, params, x, output_scalar(net, output_index))
        bases.update(hessian.space.bases)
        return jax.lax.map(lambda v: hessian.matvec(hessian.project(v)), jnp.eye(hessian.zero.size))

    return np.asarray(quickly(columns)(params, x)), bases


def of_trained(net, params):
    """(The network as a function of its trained parameters, these)."""
    trained, fixed = net.partition(params)
    return lambda w, x: net.apply(merge(w, fixed), x), trained


def full_hessian(net, params, x, output_index=0):
    """(H over all trained weights of a network, flat; flatten)."""
    return plain_hessian(*of_trained(net, params), x, output_index), lambda tree: np.asarray(
        ravel_pytree(tree)[0]
    )


def largest(hessian):
    """Spectral norm of a matrix that is symmetric up to rounding."""
    return np.abs(np.linalg.eigvalsh((hessian + hessian.T) / 2)).max()


def by_size(eigenvalues):
    """Eigenvalues by decreasing absolute value."""
    return eigenvalues[np.argsort(-np.abs(eigenvalues))]


def assert_those_of_plain_derivatives(net, params, x, output_index=1):
    """Compare the kernel of all rows and the Hessian norm of the first with plain
    derivatives in float64.
    """
    kernel = plain_kernel(*of_trained(net, params), x)
    np.testing.assert_allclose(empirical_ntk(net, params, x), kernel, rtol=1e-10, atol=1e-13)
    hessian, _ = full_hessian(net, params, x[0], output_index)
    found = hessian_norm(net, params, x[0], output_index=output_index)
    assert found.converged
    assert found.value == pytest.approx(largest(hessian), rel=1e-8)
