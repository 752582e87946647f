"""Functions with outputs (n, T, C) against plain derivatives in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import ntk_core
from ntk_core.dynamics import gauss_newton_product, loss_hessian_product
from ntk_core.errors import InvalidInput
from ntk_core.kernels import diagonal_ntk
from tests.plain_derivatives import normal

T, D, C, N = 3, 4, 2, 5


def tokens(w, x):
    """One head of attention over the tokens of each row, with an output per token."""
    scores = jax.nn.softmax(jnp.einsum("ntd,de,nse->nts", x, w["k"], x) / D)
    return jnp.tanh(jnp.einsum("nts,nsd->ntd", scores, x @ w["v"])) @ w["o"]


def pointwise(w, x):
    return jnp.tanh(x @ w["v"]) @ w["o"]


@pytest.fixture
def problem(x64):
    given = normal(k=(D, D), v=(D, 6), o=(6, C), x=(N, T, D), y=(N, T, C))
    x, y = (2 * jnp.asarray(given.pop(name)) for name in "xy")
    return jax.tree.map(jnp.asarray, given), x, y


def flat(tree):
    return ravel_pytree(tree)[0]


def jacobian(params, x):
    found = jax.tree.leaves(jax.jit(jax.jacobian(lambda w: tokens(w, x)))(params))
    return jnp.concatenate([leaf.reshape(len(x), T, C, -1) for leaf in found], axis=-1)


@pytest.mark.long  # compiles five kernels
def test_kernels_reshape_to_output_axes(problem):
    params, x, _ = problem
    slopes = jacobian(params, x)
    expected = jnp.einsum("itcp,jsdp->ijtcsd", slopes, slopes)
    kernel = ntk_core.empirical_ntk(tokens, params, x)
    assert kernel.shape == (N, N, T * C, T * C)
    np.testing.assert_allclose(kernel.reshape(N, N, T, C, T, C), expected, rtol=1e-9, atol=1e-12)
    parts = ntk_core.empirical_ntk(tokens, params, x, per_layer=True)
    np.testing.assert_allclose(sum(parts.values()), kernel, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        ntk_core.empirical_ntk(tokens, params, x[:2], x, trace_outputs=True),
        jnp.einsum("itcp,jtcp->ij", slopes[:2], slopes) / (T * C),
        rtol=1e-9,
    )
    own = diagonal_ntk(tokens, params, x).reshape(N, T, C, T, C)
    np.testing.assert_allclose(
        own, jnp.einsum("itcp,isdp->itcsd", slopes, slopes), rtol=1e-9, atol=1e-12
    )
    vector = np.linspace(-1, 1, N * T * C).reshape(N, T * C)
    product = ntk_core.KernelOperator(tokens, params, x).product(vector)
    np.testing.assert_allclose(
        product,
        np.einsum("ijab,jb->ia", kernel, vector).reshape(np.shape(product)),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.slow
def test_hessian_norm_counts_outputs_row_by_row(problem):
    params, x, _ = problem
    t, c = 1, 1
    weights, restore = ravel_pytree(params)
    dense = jax.jit(jax.hessian(lambda w: tokens(restore(w), x[:1])[0, t, c]))(weights)
    norm = jnp.abs(jnp.linalg.eigvalsh(dense)).max()
    for given, value in ((x[0], norm), (x[:1], norm[None])):
        found = ntk_core.hessian_norm(tokens, params, given, t * C + c)
        np.testing.assert_allclose(found.value, value, rtol=1e-6)
    with pytest.raises(InvalidInput, match="output_index"):
        ntk_core.hessian_norm(tokens, params, x[0], T * C)


def test_functions_of_single_rows_keep_their_batch(problem):
    """``x @ w`` also accepts x (n, d) as one input of n tokens."""
    params, x, _ = problem
    rows = x[:, 0]
    batch = ntk_core.hessian_norm(pointwise, params, rows)
    one = ntk_core.hessian_norm(pointwise, params, rows[0])
    assert batch.value.shape == (N,)
    np.testing.assert_allclose(batch.value[0], one.value, rtol=1e-6)


@pytest.mark.slow
def test_linear_and_quadratic_models_keep_output_axes(problem):
    params, x, _ = problem
    moved = jax.tree.map(lambda w: 1.1 * w + 0.05, params)
    weights, restore = ravel_pytree(params)
    delta = flat(moved) - weights
    slope = jacobian(params, x) @ delta
    bend = jax.jit(jax.hessian(lambda w: tokens(restore(w), x)))(weights)
    linear = tokens(params, x) + slope
    np.testing.assert_allclose(ntk_core.linearize(tokens, params)(moved, x), linear, rtol=1e-9)
    quadratic = linear + jnp.einsum("itcpq,p,q->itc", bend, delta, delta) / 2
    np.testing.assert_allclose(
        ntk_core.quadratic_model(tokens, params)(moved, x), quadratic, rtol=1e-9
    )


def test_loss_products_sum_over_output_axes(problem):
    params, x, y = problem
    weights, restore = ravel_pytree(params)
    vector = jax.tree.map(lambda w: jnp.cos(w), params)
    dense = jax.jit(jax.hessian(lambda w: 0.5 * jnp.sum((tokens(restore(w), x) - y) ** 2) / N))(
        weights
    )
    slopes = jacobian(params, x).reshape(N * T * C, -1)
    found = flat(loss_hessian_product(tokens, params, x, y, vector))
    np.testing.assert_allclose(found, dense @ flat(vector), rtol=1e-8, atol=1e-10)
    found = flat(gauss_newton_product(tokens, params, x, y, vector))
    np.testing.assert_allclose(found, slopes.T @ (slopes @ flat(vector)) / N, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_training_is_gradient_descent_on_all_outputs(problem):
    params, x, y = problem
    history = ntk_core.train(tokens, params, x, y, learning_rate=0.05, max_steps=20, num_records=3)
    trained = params
    slope = jax.jit(jax.grad(lambda w: 0.5 * jnp.sum((tokens(w, x) - y) ** 2) / N))
    for _ in range(20):
        trained = jax.tree.map(lambda w, g: w - 0.05 * g, trained, slope(trained))
    np.testing.assert_allclose(flat(history.params), flat(trained), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        history.network.outputs[-1].reshape(N, T, C), tokens(trained, x), rtol=1e-8, atol=1e-10
    )
    same = ntk_core.train(
        tokens, params, x, y.reshape(N, T * C), learning_rate=0.05, max_steps=20, num_records=3
    )
    np.testing.assert_array_equal(same.network.loss, history.network.loss)


def test_losses_and_shapes_without_a_meaning_are_refused(problem):
    params, x, y = problem
    with pytest.raises(InvalidInput, match="cross-entropy of outputs"):
        ntk_core.train(tokens, params, x, y, loss="cross-entropy")
    with pytest.raises(InvalidInput, match="cross-entropy of outputs"):
        gauss_newton_product(tokens, params, x, y, params, "cross-entropy")
    with pytest.raises(InvalidInput, match="y"):
        ntk_core.train(tokens, params, x, y.swapaxes(1, 2))
    with pytest.raises(InvalidInput, match=r"\(n, T, C\)"):
        ntk_core.empirical_ntk(lambda w, x: tokens(w, x)[..., None], params, x)
    with pytest.raises(InvalidInput, match="rows"):
        ntk_core.empirical_ntk(lambda w, x: tokens(w, x - x.mean(0)), params, x)
