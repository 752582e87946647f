"""Inputs that are trees of arrays, against the same function of one array in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.dynamics import gauss_newton_product, kernel_velocity, loss_hessian_product
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_block_norms
from ntk_core.kernels import diagonal_ntk
from tests.plain_derivatives import normal

WORDS, D, T, C, N = 11, 4, 5, 2, 4


def attend(params, ids, mask, scale):
    """One masked head of attention over embedded tokens, and a readout of their mean."""
    h = params["table"][ids]
    scores = jnp.einsum("ntd,nsd->nts", h @ params["q"], h @ params["k"]) / 2
    weights = jax.nn.softmax(jnp.where(mask[:, None, :], scores, -1e9), axis=-1)
    h = jnp.tanh(h + weights @ (h @ params["v"])) * mask[..., None]
    return h.sum(1) * scale[:, None] @ params["out"]


def of_tree(params, x):
    return attend(params, x["ids"], x["text"][0], x["text"][1])


def of_array(params, x):
    return attend(params, x[:, :T].astype(int), x[:, T : 2 * T] > 0, x[:, 2 * T])


def mean_of_rows(params, x):
    return of_tree(params, x) - of_tree(params, x).mean(0)


@pytest.fixture
def problem(x64):
    drawn = normal(table=(WORDS, D), q=(D, D), k=(D, D), v=(D, D), out=(D, C), scale=(N,))
    scale = drawn.pop("scale")
    ids = np.random.default_rng(0).integers(0, WORDS, (N, T))
    mask = np.arange(T) < np.array([5, 3, 4, 2])[:, None]
    x = {"ids": jnp.asarray(ids), "text": (mask, scale)}
    packed = jnp.concatenate([ids, mask, scale[:, None]], axis=1)
    return jax.tree.map(jnp.asarray, drawn), x, packed


def rows(x, chosen):
    return jax.tree.map(lambda leaf: leaf[chosen], x)


@pytest.mark.long  # compiles blocks of trees
def test_kernels_of_trees(problem):
    params, x, packed = problem
    expected = ntk_core.empirical_ntk(of_array, params, packed)
    found = ntk_core.empirical_ntk(of_tree, params, x)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    in_blocks = ntk_core.empirical_ntk(
        of_tree, params, x, rows(x, np.array([2, 0, 1])), memory_limit=1e3
    )
    np.testing.assert_allclose(in_blocks, expected[:, np.array([2, 0, 1])], rtol=1e-9)


@pytest.mark.long  # compiles several programs of attention
def test_other_kernels_of_trees(problem):
    params, x, packed = problem
    expected = ntk_core.empirical_ntk(of_array, params, packed)
    np.testing.assert_allclose(
        ntk_core.empirical_ntk(of_tree, params, x, trainable="v"),
        ntk_core.empirical_ntk(of_array, params, packed, trainable="v"),
        rtol=1e-9,
    )
    diagonal = diagonal_ntk(of_tree, params, x)
    np.testing.assert_allclose(diagonal, jnp.einsum("iiab->iab", expected), rtol=1e-9)
    operator = ntk_core.KernelOperator(of_tree, params, x)
    v = packed[:, :C]
    product = jnp.einsum("ijab,jb->ia", expected, v)
    np.testing.assert_allclose(operator.product(v), product, rtol=1e-9)
    np.testing.assert_allclose(operator.product(v, rows(x, slice(1, 2))), product[1:2], rtol=1e-9)
    later = jax.tree.map(lambda w: 1.1 * w, params)
    change = ntk_core.kernel_change_between(of_tree, params, later, x, memory_limit=2e4)
    own = ntk_core.kernel_change_between(of_array, params, later, packed)
    np.testing.assert_allclose(change.change, own.change, rtol=1e-9)
    kinds = [layer.kind for layer in ntk_core.layers_of(of_tree, params, x).layers]
    assert sorted(kinds) == ["look-up"] + ["product"] * 4


@pytest.mark.long  # compiles Hessian products of attention
def test_hessians_of_trees(problem):
    params, x, packed = problem
    expected = ntk_core.hessian_norm(of_array, params, packed).value
    np.testing.assert_allclose(ntk_core.hessian_norm(of_tree, params, x).value, expected, rtol=1e-6)
    one = ntk_core.hessian_norm(of_tree, params, rows(x, 1))
    np.testing.assert_allclose(one.value, expected[1], rtol=1e-6)
    blocks = hessian_block_norms(of_tree, params, rows(x, 1))
    own = hessian_block_norms(of_array, params, packed[1])
    np.testing.assert_allclose(blocks.values, own.values, rtol=1e-5)


@pytest.mark.long  # trains and reports
def test_training_and_reports_on_trees(problem):
    params, x, packed = problem
    y = packed[:, :C] / WORDS
    few = {"max_steps": 4, "num_records": 3, "learning_rate": 0.01}
    found = ntk_core.train(of_tree, params, x, y, x_test=rows(x, slice(1, 2)), y_test=y[1:2], **few)
    own = ntk_core.train(of_array, params, packed, y, x_test=packed[1:2], y_test=y[1:2], **few)
    np.testing.assert_allclose(found.network.test_outputs, own.network.test_outputs, rtol=1e-9)
    np.testing.assert_allclose(found.linearized.loss, own.linearized.loss, rtol=1e-9)
    report = ntk_core.linearity_report(of_tree, params, found.params, x, y)
    own_report = ntk_core.linearity_report(of_array, params, found.params, packed, y)
    assert report.kernel_change == pytest.approx(own_report.kernel_change, rel=1e-8)
    assert report.output_error == pytest.approx(own_report.output_error, rel=1e-8)
    linear = ntk_core.linearize(of_tree, params)(found.params, x)
    expected = ntk_core.linearize(of_array, params)(found.params, packed)
    np.testing.assert_allclose(linear, expected, rtol=1e-9)
    sweep = ntk_core.sweep_widths(
        lambda width, key: (of_tree, params), [8], x, y, num_seeds=1, max_steps=2, num_inputs=1
    )
    assert sweep.runs[0].hessian_norm > 0


def test_every_type_packs_exactly(x64):
    types = (bool, np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64)
    values = np.array([[0, 1, 3], [1, 0, 2]])

    def summed(w, x):
        total = sum(leaf.astype(float).sum((1, 2)) for leaf in jax.tree.leaves(x))
        return (w * total)[:, None]

    x = {str(np.dtype(kind)): values[:, :, None].astype(kind) - kind(1) * 0 for kind in types}
    found = ntk_core.empirical_ntk(summed, jnp.ones(()), x)
    total = sum(leaf.astype(float).sum((1, 2)) for leaf in x.values())
    np.testing.assert_allclose(found[:, :, 0, 0], np.outer(total, total), rtol=1e-12)
    lowest = {"ids": np.array([[-(2**62)]]), "mean": np.array([[np.nextafter(1, 2)]])}
    found = ntk_core.empirical_ntk(
        lambda w, x: w * (x["mean"] - 1) + 0 * x["ids"], jnp.ones(()), lowest
    )
    np.testing.assert_allclose(found.item(), np.finfo(float).eps ** 2, rtol=1e-9)


def test_trees_that_cannot_be_used(problem):
    params, x, _ = problem
    net = ntk_core.FullyConnected(width=4)
    for given, words in (
        (
            {"ids": x["ids"], "text": (x["text"][0][:2], x["text"][1])},
            "4 rows in ids and 2 in text.0",
        ),
        ({}, "a tree without arrays"),
        (rows(x, slice(0)), "arrays without rows"),
        ({"ids": 3}, "x1.ids: a number without rows"),
        ({"ids": ["a", "b"]}, "x1.ids: list of type"),
        ({"ids": [x["ids"], x["ids"][:, 0]]}, "x1.ids: a list .* or a tuple of arrays"),
        ({"ids": x["ids"] * 1j}, "an array of real numbers"),
        ({"ids": x["ids"]}, "arrays ids \\(n, 5\\) of int64"),
    ):
        with pytest.raises(InvalidInput, match=words):
            ntk_core.empirical_ntk(of_tree, params, given)
    with pytest.raises(InvalidInput, match="networks of this package take one"):
        ntk_core.empirical_ntk(net, net.init(jax.random.key(0), (3,)), x)
    with pytest.raises(InvalidInput, match="as in the other inputs"):
        ntk_core.empirical_ntk(of_tree, params, x, {**x, "ids": x["ids"] * 1.0})


def of_mean(params, x):
    """Means over the selected words, which divide by 0 if there are none."""
    mask = x["text"][0][..., None]
    words = jnp.tanh(params["table"][x["ids"]])
    return (words * mask).sum(1) / mask.sum(1) @ params["out"]


@pytest.fixture
def masked(problem):
    """Parameters, inputs whose row 2 selects nothing, and the same rows with words in all."""
    params, x, _ = problem
    mask = x["text"][0].copy()
    mask[2] = False
    return params, {**x, "text": (mask, x["text"][1])}, x


@pytest.mark.slow
def test_mask_that_selects_nothing_is_refused_by_row(masked):
    params, x, _ = masked
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, params)
    operator = ntk_core.KernelOperator(of_mean, params, x)
    for compared in (
        lambda: ntk_core.empirical_ntk(of_mean, params, x),
        lambda: ntk_core.empirical_ntk(of_mean, params, rows(x, slice(2)), x),
        lambda: ntk_core.kernel_change_between(of_mean, params, moved, x),
        lambda: operator.flat_product(np.ones(operator.shape[0])),
        lambda: ntk_core.linearize(of_mean, params)(moved, x),
    ):
        with pytest.raises(InvalidInput, match=r"rows 2, .* a mask that selects nothing"):
            compared()
    with pytest.raises(InvalidInput, match=r"rows 0, .* a mask that selects nothing"):
        ntk_core.empirical_ntk(of_mean, params, rows(x, slice(2, 3)))
    lost = jax.tree.map(lambda leaf: jnp.nan * leaf, params)
    assert np.isnan(ntk_core.empirical_ntk(of_mean, lost, x)).all()  # not the fault of a mask


REFUSED_LATER = {  # (params, masked inputs, inputs, targets) → never
    "hessian_norm": lambda w, x, whole, y: ntk_core.hessian_norm(of_mean, w, x, batched=True),
    "hessian_density": lambda w, x, whole, y: ntk_core.hessian_density(of_mean, w, rows(x, 2)),
    "block norms": lambda w, x, whole, y: hessian_block_norms(of_mean, w, rows(x, 2)),
    "ball_sup": lambda w, x, whole, y: ntk_core.ball_sup(of_mean, w, rows(x, 2), 1.0),
    "train": lambda w, x, whole, y: ntk_core.train(of_mean, w, x, y),
    "train, x_test": lambda w, x, whole, y: ntk_core.train(
        of_mean, w, whole, y, x_test=x, y_test=y
    ),
    "quadratic_model": lambda w, x, whole, y: ntk_core.quadratic_model(of_mean, w)(w, x),
    "loss_hessian": lambda w, x, whole, y: ntk_core.loss_hessian(of_mean, w, x, y).norm(),
    "fisher": lambda w, x, whole, y: ntk_core.fisher(of_mean, w, x, loss="square").product(w),
    "loss_hessian_product": lambda w, x, whole, y: loss_hessian_product(of_mean, w, x, y, w),
    "gauss_newton_product": lambda w, x, whole, y: gauss_newton_product(of_mean, w, x, y, w),
    "kernel_velocity": lambda w, x, whole, y: kernel_velocity(of_mean, w, x, y),
}


@pytest.mark.first_cases(1)  # each compiles programs of its own
@pytest.mark.parametrize("name", REFUSED_LATER)
def test_mask_that_selects_nothing_is_refused_everywhere(name, masked):
    params, x, whole = masked
    row = 0 if name in ("hessian_density", "block norms", "ball_sup") else 2
    field = "x_test" if name == "train, x_test" else "x"
    with pytest.raises(InvalidInput, match=rf"{field}: rows {row}, .* a mask that selects nothing"):
        REFUSED_LATER[name](params, x, whole, np.ones((N, C)))


@pytest.mark.slow
def test_one_input_of_lists(x64):
    def apply(w, x):
        return ((x["a"] @ w) ** 2)[:, None]

    # ∂²(aᵀw)² = 2 a aᵀ has the norm 2 |a|² = 10 at a = (1, 2)
    found = ntk_core.hessian_norm(apply, jnp.ones(2), {"a": [1.0, 2.0]}, batched=False)
    np.testing.assert_allclose(found.value, 10, rtol=1e-6)
    for wrong in ("abc", np.full(2, None), [1j, 2j], [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidInput, match=r"x\.a"):
            ntk_core.hessian_norm(apply, jnp.ones(2), {"a": wrong}, batched=False)


@pytest.mark.slow  # traces both batches of attention
def test_rows_of_trees_that_interact(problem):
    params, x, _ = problem
    with pytest.raises(InvalidInput, match="mixes the rows"):
        ntk_core.empirical_ntk(mean_of_rows, params, x)


@pytest.mark.slow  # compiles two matrices
def test_matrices_of_losses_on_trees(problem):
    params, x, packed = problem
    y = packed[:, :C] / WORDS
    found = ntk_core.gauss_newton(of_tree, params, x, y).norm().value
    expected = ntk_core.gauss_newton(of_array, params, packed, y).norm().value
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_custom_rules_are_checked_at_rows_of_a_tree(x64):
    """Random rows are drawn leaf by leaf; random bits would be no numbers."""

    @jax.custom_jvp
    def cube(z):
        return z**3

    @cube.defjvp
    def shifted(primals, tangents):
        return primals[0] ** 3 + 1, 3 * primals[0] ** 2 * tangents[0]

    x = {"ids": jnp.array([[0], [2]]), "z": jnp.zeros((2, 1))}

    def wrong_off_zero(w, x):
        return jnp.where(x["z"] == 0, w[x["ids"]], cube(w[x["ids"]]))

    with pytest.raises(InvalidInput, match="a custom rule whose values differ"):
        ntk_core.empirical_ntk(wrong_off_zero, jnp.arange(1.0, 4.0), x)
