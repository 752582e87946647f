"""The plain route on request, and one spelling of parameter names,
against the structured route in float64.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.errors import InvalidInput
from ntk_core.hessians import (
    hessian_block_norms,
    path_sup,
    smallest_eigenvalue_in_ball,
    vector_hessian_norm,
)
from ntk_core.kernels import diagonal_ntk
from ntk_core.networks.architectures import FullyConnected
from ntk_core.traced import Program, restricted
from tests.plain_derivatives import normal, plain_kernel

PARAMS = normal(w=(3, 5), b=(5,), v=(5, 2))
X = normal(x=(4, 3))["x"]
LATER = {name: 1.1 * leaf for name, leaf in PARAMS.items()}
NORM: dict[str, Any] = {"tolerance": 1e-9, "max_matvecs": 256}


def model(params, x):
    return jnp.tanh(x @ params["w"] + params["b"]) @ params["v"]


# Functions that choose a route, and a number of their results.
FUNCTIONS = {
    "empirical_ntk": lambda net, w, route: ntk_core.empirical_ntk(net, w, X, X[:2], route=route),
    "diagonal_ntk": lambda net, w, route: diagonal_ntk(net, w, X, route=route),
    "kernel_change_between": lambda net, w, route: (
        ntk_core.kernel_change_between(
            net, w, jax.tree.map(lambda leaf: 1.1 * leaf, w), X, route=route
        ).change
    ),
    "hessian_norm": lambda net, w, route: (
        ntk_core.hessian_norm(net, w, X[0], -1, route=route, **NORM).value
    ),
    "hessian_eigenpairs": lambda net, w, route: (
        ntk_core.hessian_eigenpairs(net, w, X[0], num_wanted=2, route=route, **NORM).eigenvalues
    ),
    "vector_hessian_norm": lambda net, w, route: (
        vector_hessian_norm(net, w, X[0], route=route, **NORM).outputs
    ),
    "hessian_block_norms": lambda net, w, route: (
        hessian_block_norms(net, w, X[0], route=route, **NORM).values
    ),
    "path_sup": lambda net, w, route: path_sup(net, [w], X[0], route=route, **NORM).value,
    "smallest_eigenvalue_in_ball": lambda net, w, route: (
        (
            smallest_eigenvalue_in_ball(net, w, X[:1], 0.1, num_starts=1, num_steps=0, route=route)
        ).at_center
    ),
}
DAILY = {"empirical_ntk", "hessian_norm"}
NAMES = [
    # Each compiles two routes.
    pytest.param(name, marks=() if name in DAILY else pytest.mark.slow)
    for name in FUNCTIONS
]


@pytest.mark.long_after(3)
@pytest.mark.parametrize("name", NAMES)
def test_plain_route_agrees_and_forms_no_views(name, x64, monkeypatch):
    expected = FUNCTIONS[name](model, PARAMS, "auto")

    def refused(*given):
        raise AssertionError("the plain route needs no views of layers")

    monkeypatch.setattr(Program, "views", refused)
    found = FUNCTIONS[name](model, PARAMS, "plain")
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.slow  # traces a network as a function
def test_plain_route_of_a_network_keeps_frozen_layers(x64):
    net = FullyConnected(width=5, depth=2, num_outputs=2, trained="hidden", output="softmax")
    params = net.init(jax.random.key(0), 3)
    found = ntk_core.empirical_ntk(net, params, X, route="plain")
    np.testing.assert_allclose(found, ntk_core.empirical_ntk(net, params, X), rtol=1e-9)


def test_unknown_routes_and_parts_without_layers_are_refused():
    with pytest.raises(InvalidInput, match="route: 'fast' cannot be used; use 'auto' or 'plain'"):
        restricted(model, PARAMS, None, "fast")
    with pytest.raises(InvalidInput, match=r"per_layer: True .* False for the plain route"):
        ntk_core.empirical_ntk(model, PARAMS, X, per_layer=True, route="plain")


def test_names_are_spelled_alike(x64):
    """Kernel parts, layers, reports, blocks and ``trainable`` name an array alike."""
    params = {"enc": {"w": PARAMS["w"], "b": PARAMS["b"]}, "head": PARAMS["v"]}

    def nested(params, x):
        return jnp.tanh(x @ params["enc"]["w"] + params["enc"]["b"]) @ params["head"]

    names = ["enc.b", "enc.w", "head"]
    layers = ntk_core.layers_of(nested, params, X).layers
    assert [layer.name for layer in layers] == names
    parts = ntk_core.empirical_ntk(nested, params, X, per_layer=True)
    assert set(parts) == set(names)
    for name in names:
        alone = ntk_core.empirical_ntk(nested, params, X, trainable=name)
        np.testing.assert_allclose(alone, parts[name], rtol=1e-10)


def test_names_that_would_be_equal_are_told_apart(x64):
    """No part of a kernel replaces another one of the same name."""
    params = {"a": {"b": PARAMS["w"]}, "a.b": PARAMS["v"]}

    def dotted(params, x):
        return jnp.tanh(x @ params["a"]["b"]) @ params["a.b"]

    parts = ntk_core.empirical_ntk(dotted, params, X, per_layer=True)
    assert set(parts) == {"['a']['b']", "['a.b']"}
    np.testing.assert_allclose(sum(parts.values()), plain_kernel(dotted, params, X), rtol=1e-10)
