"""Changed functions are measured in their present state; unchanged ones reuse compiled code."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import kernel_change_between, linearize, quadratic_model, train
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk, kernel_derivative
from ntk_core.traced import freeze, traced
from tests.plain_derivatives import normal, plain_kernel

PARAMS = normal(w=(3, 8), v=(8, 2))
X = np.random.default_rng(1).standard_normal((4, 3)) / 2
factor = 1.0


def by_a_global(p, x):
    return factor * jnp.tanh(x @ p["w"]) @ p["v"]


class Scaled:
    scale = 1.0

    def __call__(self, p, x):
        return self.scale * jnp.tanh(x @ p["w"]) @ p["v"]


def without_layers(scale):
    return lambda p, x: scale[0] * jnp.tanh(x[:, :1] * p["w"][0, 0] ** 2) * p["v"][0] ** 2


def masked(mask):
    return lambda p, x: jnp.tanh((x * mask) @ p["w"]) @ p["v"]


def with_rule(scale):
    @jax.custom_jvp
    def own(x):
        return x

    own.defjvp(lambda primals, tangents: (own(*primals), scale[0] * tangents[0]))
    return lambda p, x: own(jnp.tanh(x @ p["w"])) @ p["v"]


def measured(apply):
    norm = hessian_norm(apply, PARAMS, jnp.asarray(X[0]), tolerance=1e-6).value
    kernel, _ = kernel_derivative(apply, PARAMS, PARAMS, X)
    return np.asarray(empirical_ntk(apply, PARAMS, X)), np.asarray(kernel), norm


def assert_scaled(before, after, ratio):
    for old, new in zip(before[:2], after[:2], strict=True):
        np.testing.assert_allclose(new, ratio**2 * old, rtol=1e-10)
    np.testing.assert_allclose(after[2], ratio * before[2], rtol=1e-5)


@pytest.mark.slow  # compiles six kernels and norms
def test_changed_globals_attributes_and_closures_are_measured(x64, monkeypatch):
    model, scale = Scaled(), [1.0]
    functions = (by_a_global, model, without_layers(scale))
    before = [measured(each) for each in functions]
    monkeypatch.setitem(globals(), "factor", 3.0)
    model.scale, scale[0] = 3.0, 3.0
    for function, old in zip(functions, before, strict=True):
        assert_scaled(old, measured(function), 3)


def trained(apply):
    """Weights after three steps, by the compiled loops for a function."""
    asked = {"learning_rate": 0.05, "max_steps": 3, "num_records": 2, "kernels": False}
    history = train(apply, jax.tree.map(jnp.asarray, PARAMS), X, np.ones((4, 2)), **asked)
    return [*jax.tree.leaves(history.params), history.linearized.outputs[-1]]


@pytest.mark.slow
def test_constants_changed_in_place_are_measured():
    """JAX reuses its copy of a float64 array as long as one of its programs keeps it."""
    params, x = (
        jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), each) for each in (PARAMS, X)
    )
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, params)
    mask = np.ones(3)
    apply = masked(mask)

    def seen(apply):
        norm = hessian_norm(apply, params, x[0], tolerance=1e-4).value
        change = kernel_change_between(apply, params, moved, x).change
        models = [each(apply, params)(moved, x) for each in (linearize, quadratic_model)]
        return [
            *map(np.asarray, (empirical_ntk(apply, params, x), norm, change, *models)),
            *trained(apply),
        ]

    before = seen(apply)
    mask[...] = 0.3
    for old, new, expected in zip(before, seen(apply), seen(masked(mask.copy())), strict=True):
        np.testing.assert_allclose(new, expected, rtol=1e-4, atol=1e-6)
        assert np.abs(new - old).max() > 1e-4


@pytest.mark.slow  # compiles several kernels
def test_changed_derivatives_are_measured(x64):
    scale = [1.0]
    apply = with_rule(scale)
    before = np.asarray(empirical_ntk(apply, PARAMS, X))
    assert traced(apply, PARAMS, X) is traced(apply, PARAMS, X)
    scale[0] = 3.0
    after = np.asarray(empirical_ntk(apply, PARAMS, X))
    expected = plain_kernel(apply, PARAMS, X)
    assert np.abs(after - before).max() > 0.1
    np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)


def test_programs_are_reused(x64):
    apply = masked(np.ones(3))
    program = traced(apply, PARAMS, X)
    assert traced(apply, PARAMS, X) is program
    assert traced(masked(np.ones(3)), PARAMS, X) is program, "the same program of another function"
    assert traced(apply, PARAMS, X[:3]) is program, "a batch of another size"
    assert traced(masked(np.zeros(3)), PARAMS, X) is not program
    assert traced(partial(by_a_global), PARAMS, X) is not program


def test_a_frozen_function_is_traced_once(x64):
    calls = []

    def counted(p, x):
        calls.append(x.shape)
        return jnp.tanh(x @ p["w"]) @ p["v"]

    fixed = freeze(counted)
    first = empirical_ntk(fixed, PARAMS, X)
    traces = len(calls)
    np.testing.assert_array_equal(empirical_ntk(fixed, PARAMS, X), first)
    assert len(calls) == traces
    empirical_ntk(counted, PARAMS, X)
    assert len(calls) > traces


def test_a_changed_number_of_outputs_is_measured(x64):
    columns = [1]

    def apply(p, x):
        return (jnp.tanh(x @ p["w"]) @ p["v"])[:, : columns[0]]

    hessian_norm(apply, PARAMS, X[0])
    columns[0] = 2
    assert empirical_ntk(apply, PARAMS, X).shape == (4, 4, 2, 2)
    assert hessian_norm(apply, PARAMS, X[0], output_index=1).value > 0
