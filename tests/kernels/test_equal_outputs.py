"""Kernels of equal outputs, contracted inside,
against explicit Jacobians in float64 over one list of cases.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import _callable as routes
from ntk_core.kernels import _output_pairs, empirical_ntk, generic_ntk
from ntk_core.networks.architectures import FullyConnected, merge
from ntk_core.traced import program_of_network, summed_kernels
from tests.cases import (
    ARCHITECTURES,
    FAST_COMPILE,
    SEQUENCES,
    VARIANTS,
    inputs,
    random_params,
)
from tests.plain_derivatives import normal, plain_kernel

compiled = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
# The whole list compiles two programs a case; a part of it is enough for every day.
ALL = {case.name: case for case in [*ARCHITECTURES, *VARIANTS, *SEQUENCES]}.values()
DAILY = {"deep", "dropped", "conv-2d", "composed", "transformer"}
NETWORKS = [
    pytest.param(case, marks=() if case.name in DAILY else pytest.mark.slow, id=case.name)
    for case in ALL
]


def _equal(kernel):
    """K[i, j, a, a] of a whole kernel."""
    return np.einsum("ijaa->ija", kernel)


def _assert_close(found, expected, kernel):
    """Sums of at most a few thousand products in float64, relative to the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(kernel).max())


@pytest.fixture
def _short_stretches(monkeypatch):
    monkeypatch.setattr(_output_pairs, "MIN_STRETCH", 2)
    monkeypatch.setattr(_output_pairs, "STRETCH_ENTRIES", 1)


@pytest.mark.long_after(2)
@pytest.mark.sampled(12)  # a grid of architectures and settings
@pytest.mark.first_cases(2)  # each architecture compiles its oracle
@pytest.mark.usefixtures("x64", "_short_stretches")
@pytest.mark.parametrize("case", NETWORKS)
def test_equal_outputs_of_every_architecture(case):
    params = random_params(case)
    x1, x2 = inputs(case, 3), inputs(case, 2, seed=5)
    trained, fixed = case.net.partition(params)

    @compiled
    def found(params):
        mean = empirical_ntk(case.net, params, x1, trace_outputs=True)
        each = empirical_ntk(case.net, params, x1, x2, equal_outputs=True)
        return mean, each

    @compiled
    def oracle(trained):
        return generic_ntk(
            lambda w, x: case.net.apply(merge(w, fixed), x), trained, jnp.concatenate([x1, x2])
        )

    mean, each = found(params)
    kernel = oracle(trained)
    _assert_close(mean, _equal(kernel)[:3, :3].mean(-1), kernel)
    _assert_close(each, _equal(kernel)[:3, 3:], kernel)


def _tied(p, tokens):
    """A table that is looked up, and multiplies the last features."""
    h = jnp.tanh(p["table"][tokens] @ p["w"])
    return (h @ p["table"].T).mean(1)


def _recurrent(p, x):
    def step(h, row):
        return jnp.tanh(h @ p["hidden"] + row @ p["in"] + p["bias"]), None

    h, _ = jax.lax.scan(step, jnp.zeros((len(x), 4)), jnp.moveaxis(x, 1, 0))
    return h @ p["out"] * p["gain"]


def _images(p, x):
    layout = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(x, p["filter"], (2, 1), "SAME", dimension_numbers=layout)
    return jnp.tanh(z + p["bias"]).reshape(len(x), -1) @ p["out"]


def _without_layers(p, x):
    return jnp.tanh(x @ jnp.sin(p["a"])) @ jnp.cos(p["b"])


def _tokens(seed, n):
    return np.random.default_rng(seed).integers(0, 7, (n, 3))


OWN = {
    "tied": (_tied, normal(table=(7, 4), w=(4, 4)), _tokens(0, 5), _tokens(1, 3)),
    "recurrent": (
        _recurrent,
        normal(hidden=(4, 4), bias=(4,), out=(4, 3), gain=(3,)) | {"in": normal(i=(2, 4))["i"]},
        *normal(a=(5, 3, 2), b=(3, 3, 2)).values(),
    ),
    "images": (
        _images,
        normal(filter=(3, 2, 2, 4), bias=(4,), out=(36, 3)),
        *normal(a=(5, 6, 3, 2), b=(3, 6, 3, 2)).values(),
    ),
    "without layers": (
        _without_layers,
        normal(a=(3, 4), b=(4, 5)),
        *normal(a=(5, 3), b=(3, 3)).values(),
    ),
}


@pytest.mark.slow
@pytest.mark.first_cases(2)  # each function compiles its oracle
@pytest.mark.usefixtures("x64", "_short_stretches")
@pytest.mark.parametrize("name", OWN)
def test_equal_outputs_of_own_functions(name):
    apply, params, x1, x2 = OWN[name]
    kernel = plain_kernel(apply, params, x1, x2)
    own = plain_kernel(apply, params, x1)
    mean = empirical_ntk(apply, params, x1, x2, trace_outputs=True)
    each = empirical_ntk(apply, params, x1, equal_outputs=True, memory_limit=1)  # row by row
    _assert_close(mean, _equal(kernel).mean(-1), kernel)
    _assert_close(each, _equal(own), own)


@pytest.mark.parametrize("by_products", [True, False])
def test_equal_outputs_without_layers_by_both_routes(by_products, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: by_products)
    apply, params, x1, x2 = OWN["without layers"]
    kernel = plain_kernel(apply, params, x1, x2)
    mean = empirical_ntk(apply, params, x1, x2, trace_outputs=True)
    each = empirical_ntk(apply, params, x1, x2, equal_outputs=True)
    _assert_close(mean, _equal(kernel).mean(-1), kernel)
    _assert_close(each, _equal(kernel), kernel)


@pytest.mark.parametrize("output", ["softmax", "tanh"])
def test_equal_outputs_after_an_output_function(output, x64):
    net = replace(FullyConnected(width=6, depth=2, num_outputs=4, activation="tanh"), output=output)
    params, x = net.init(jax.random.key(0), 3), inputs(ARCHITECTURES[0], 3)[:, :3]
    kernel = empirical_ntk(net, params, x)
    _assert_close(empirical_ntk(net, params, x, equal_outputs=True), _equal(kernel), kernel)


def test_many_outputs_need_no_array_of_their_pairs():
    net = FullyConnected(width=300, depth=3, num_outputs=1_000, activation="relu")
    shapes = jax.eval_shape(lambda key: net.init(key, (10,)), jax.random.key(0))
    program = program_of_network(net, shapes, jax.ShapeDtypeStruct((10,), jnp.float32))
    x = jax.ShapeDtypeStruct((60, 10), jnp.float32)
    seeds = jax.ShapeDtypeStruct((1_000, 1_000), jnp.float32)
    lowered = summed_kernels.lower(
        program, False, jax.tree.leaves(shapes), x, None, seeds, stretch=14
    )
    memory = lowered.compile().memory_analysis()
    # Pairs of outputs would take 14 GB, and all cotangents of one layer 72 MB.
    assert memory.temp_size_in_bytes < 20e6
