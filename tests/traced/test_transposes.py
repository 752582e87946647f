"""Transposes that users state are compared with their linear maps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import linear_call

from ntk_core import empirical_ntk, linearity_report, linearize
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from tests.plain_derivatives import normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

PARAMS = {**normal(w=(3, 4), a=(4, 4), v=(4, 2)), "c": np.ones(4)}
X = np.random.default_rng(0).standard_normal((5, 3))


def solved(transpose=True, symmetric=False):
    """Solve (3 + a) y = h row by row, with a right or a wrong transpose."""

    def row(p, h):
        matrix = 3 * jnp.eye(4) + p["a"]

        def solve(_, b):
            return jnp.linalg.inv(matrix) @ b

        def solve_transposed(_, b):
            return jnp.linalg.inv(matrix.T if transpose else matrix) @ b

        other = None if symmetric else solve_transposed
        return jax.lax.custom_linear_solve(
            lambda y: matrix @ y, h, solve, other, symmetric=symmetric
        )

    return lambda p, x: jax.vmap(lambda h: row(p, h))(jnp.tanh(x @ p["w"])) @ p["v"]


def called(factor):
    """Multiply by constants, with a transpose that multiplies by a multiple of them."""
    c = np.arange(1.0, 5.0)

    def apply(p, x):
        h = jnp.tanh(x @ p["w"])
        scaled = linear_call(lambda c, h: c * h, lambda c, t: factor * c * t, c, h)
        return scaled @ p["v"]

    return apply


WRONG = {
    "solve": solved(transpose=False),
    "symmetric": solved(symmetric=True),
}
QUANTITIES = {
    "kernel": lambda f: empirical_ntk(f, PARAMS, X),
    "kernel of one row": lambda f: empirical_ntk(f, PARAMS, X[:1]),
    "Hessian": lambda f: hessian_norm(f, PARAMS, X[0]),
    "linear model": lambda f: linearize(f, PARAMS)(PARAMS, X),
    "report": lambda f: linearity_report(
        f, PARAMS, jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS), X
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_every_quantity_refuses_other_transposes(quantity, x64):
    with pytest.raises(InvalidInput, match="transpose"):
        QUANTITIES[quantity](WRONG["solve"])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_transposes_are_refused(name, x64):
    with pytest.raises(InvalidInput, match="transpose"):
        empirical_ntk(WRONG[name], PARAMS, X)


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "apply",
    [
        solved(),
        lambda p, x: jnp.linalg.solve(3 * jnp.eye(4) + p["a"], jnp.tanh(x @ p["w"]).T).T @ p["v"],
    ],
    ids=["solve", "jnp.linalg.solve"],
)
def test_right_transposes_are_measured(apply, x64):
    np.testing.assert_allclose(
        empirical_ntk(apply, PARAMS, X), plain_kernel(apply, PARAMS, X), rtol=1e-8, atol=1e-10
    )


def test_linear_calls_are_refused(x64):
    with pytest.raises(InvalidInput, match="custom_vjp"):
        empirical_ntk(called(1.0), PARAMS, X)


def test_transposes_that_become_wrong_are_refused_later(x64):
    """At a symmetric matrix of the first call any transpose is right."""
    start = {**PARAMS, "a": np.zeros((4, 4))}
    with pytest.raises(InvalidInput, match="transpose"):
        empirical_ntk(WRONG["symmetric"], start, X)


def test_custom_batching_is_refused(x64):
    doubled = custom_vmap(jnp.tanh)
    doubled.def_vmap(lambda size, batched, z: (2 * jnp.tanh(z), True))
    with pytest.raises(InvalidInput, match="custom_vmap"):
        empirical_ntk(lambda p, x: doubled(x @ p["w"]), PARAMS, X)
