"""Documented conversions: normalization in evaluation mode, dropout off, recurrent layers."""

from typing import Any

import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import ntk_core
from ntk_core import InvalidInput
from tests.documents import ROOT

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

X = np.random.default_rng(0).standard_normal((5, 6, 3)).astype(np.float32)  # sequences


def kernel_of_jacobians(function, params, x):
    slopes = jax.tree.leaves(jax.jit(jax.jacrev(lambda w: function(w, x)))(params))
    flat = [np.asarray(each, np.float64).reshape(len(x), 2, -1) for each in slopes]
    jacobian = np.concatenate(flat, axis=-1)
    return np.einsum("iap,jbp->ijab", jacobian, jacobian)


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x, train=False):
        states: Any = linen.RNN(linen.GRUCell(5))(x)
        h = states[:, -1]
        h = linen.BatchNorm(use_running_average=not train)(h)
        return linen.Dense(2)(linen.Dropout(0.5, deterministic=not train)(h))


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 5, rngs=rngs))
        self.norm = nnx.BatchNorm(5, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.out = nnx.Linear(5, 2, rngs=rngs)

    def __call__(self, x):
        return self.out(self.drop(self.norm(self.rnn(x)[:, -1])))


class EquinoxNet(eqx.Module):
    cell: eqx.nn.GRUCell
    norm: eqx.nn.LayerNorm
    drop: eqx.nn.Dropout
    out: eqx.nn.Linear

    def __init__(self, key):
        first, last = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(3, 5, key=first)
        self.norm = eqx.nn.LayerNorm(5)
        self.drop = eqx.nn.Dropout(0.5)
        self.out = eqx.nn.Linear(5, 2, key=last)

    def __call__(self, x):
        last = jax.lax.scan(lambda h, row: (self.cell(row, h), None), jnp.zeros(5), x)[0]
        return self.out(self.drop(self.norm(last)))


def modules():
    net = NnxNet(nnx.Rngs(0))
    net.eval()
    return {
        "Flax Linen": LinenNet(),
        "Flax NNX": net,
        "Equinox": eqx.nn.inference_mode(EquinoxNet(jax.random.key(0))),
    }


def documented(library):
    """The code of the table's row."""
    page = (ROOT / "docs/own-data-and-models.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {library} |"))
    return row.split("`")[1::2]


@pytest.mark.parametrize("library", ["Flax Linen", "Flax NNX", "Equinox"])
def test_documented_conversion_has_the_kernel_of_its_parameters(library):
    names = {"model": modules()[library], "x": X, "jax": jax, "nnx": nnx, "eqx": eqx}
    for line in documented(library):
        exec(line, names)  # the project's own page
    apply, params = names["apply"], names["params"]
    leaves = jax.tree_util.tree_leaves_with_path(params)
    assert not any("mean" in jax.tree_util.keystr(path) for path, _ in leaves)
    expected = kernel_of_jacobians(apply, params, X)
    found = ntk_core.empirical_ntk(apply, params, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_collections_of_linen_are_refused_as_parameters():
    model = LinenNet()
    variables = model.init(jax.random.key(0), X)
    for apply in (model.apply, lambda params, x: model.apply(params, x)):
        with pytest.raises(InvalidInput, match="params: the collection batch_stats"):
            ntk_core.empirical_ntk(apply, variables, X)
    custom = {"params": variables["params"], "counts": {"n": jnp.zeros(3)}}
    with pytest.raises(InvalidInput, match="params: the collection counts"):
        ntk_core.empirical_ntk(model.apply, custom, X)
    for name in ("cache", "intermediates"):
        other = {"params": variables["params"], name: {"h": jnp.zeros(3)}}
        with pytest.raises(InvalidInput, match=f"params: the collection {name}"):
            ntk_core.hessian_norm(lambda params, x: x[:, -1], other, X[0])


def test_variables_of_nnx_that_are_no_parameters_are_refused():
    graphdef, state = nnx.split(modules()["Flax NNX"])
    with pytest.raises(InvalidInput, match=r"params: variables of type (BatchStat|Rng)"):
        ntk_core.empirical_ntk(
            lambda params, x: nnx.merge(graphdef, params, copy=True)(x), state, X
        )


def test_own_names_beside_params_are_parameters():
    params = {"params": {"w": jnp.ones((3, 2))}, "cache": jnp.ones(2), "scale": {"s": jnp.ones(2)}}

    def apply(params, x):
        return x[:, -1] @ params["params"]["w"] * params["cache"] * params["scale"]["s"]

    assert ntk_core.empirical_ntk(apply, params, X).shape == (5, 5, 2, 2)


class EquinoxAverages(eqx.Module):
    norm: eqx.nn.BatchNorm
    out: eqx.nn.Linear

    def __init__(self, key):
        self.norm = eqx.nn.BatchNorm(3, "rows", mode="batch")
        self.out = eqx.nn.Linear(3, 2, key=key)

    def __call__(self, x, state):
        normalized, state = self.norm(x, state)
        return self.out(jnp.tanh(normalized)), state


def test_batch_normalization_of_equinox_in_both_modes():
    """Averages over rows mix them; kept averages are constants, and no parameters."""
    x = X[:, 0]
    model, state = eqx.nn.make_with_state(EquinoxAverages)(jax.random.key(0))

    def rows_of(module, kept, rows):
        mapped = jax.vmap(module, axis_name="rows", in_axes=(0, None), out_axes=(0, None))
        return mapped(rows, kept)

    _, state = rows_of(model, state, x)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    with pytest.raises(InvalidInput, match="mixes the rows"):
        ntk_core.empirical_ntk(
            lambda p, rows: rows_of(eqx.combine(p, static), state, rows)[0], params, x
        )
    params, static = eqx.partition(eqx.nn.inference_mode(model), eqx.is_inexact_array)

    def apply(p, rows):
        return rows_of(eqx.combine(p, static), state, rows)[0]

    found = ntk_core.empirical_ntk(apply, params, x)
    expected = kernel_of_jacobians(apply, params, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    averages, rest = eqx.partition(state, eqx.is_inexact_array)
    with pytest.raises(InvalidInput, match="params: a State of Equinox"):
        ntk_core.empirical_ntk(
            lambda p, rows: rows_of(eqx.combine(p[0], static), eqx.combine(p[1], rest), rows)[0],
            (params, averages),
            x,
        )
