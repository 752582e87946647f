"""Assemblies against sums of copies; kernels and Hessians against plain derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import Assembly, hessian_norm
from ntk_core.networks.choices import SUB_MODELS
from ntk_core.traced import _layers, program_of_network
from tests.plain_derivatives import assert_those_of_plain_derivatives


def _init(key, num_inputs):
    return {"direction": jax.random.normal(key, (num_inputs,)), "size": jnp.ones(())}


def _apply(params, x):
    return jnp.cos(x @ params["direction"]) * params["size"] ** 2


OWN = (_init, _apply)
FORMULAS = {
    "neurons": lambda w, x: np.tanh(w[:9].reshape(3, 3) @ x / np.sqrt(3)) @ w[9:] / np.sqrt(3),
    "tree": lambda w, x: _tree(1 / (1 + np.exp(-w[:9].reshape(3, 3) @ x / np.sqrt(3))), w[9:]),
    "sines": lambda w, x: np.prod(np.sin(w[:6].reshape(2, 3) @ x / np.sqrt(3) + w[6:])),
}


def _tree(gates, leaves):
    root, left, right = gates
    return root * (left * leaves[0] + (1 - left) * leaves[1]) + (1 - root) * (
        right * leaves[2] + (1 - right) * leaves[3]
    )


def _inputs(num_rows):
    return jnp.asarray(np.random.default_rng(0).standard_normal((num_rows, 3)))


@pytest.mark.parametrize("name", SUB_MODELS)
@pytest.mark.parametrize("parameterization", ["ntk", "lecun"])
def test_an_assembly_is_its_formula(name, parameterization, x64):
    net, x = Assembly(5, name, parameterization=parameterization), _inputs(2)
    params = net.init(jax.random.key(0), (3,))
    root = np.sqrt(5) if parameterization == "lecun" else 1.0
    copies, v = root * np.asarray(params["hidden1"]["weight"]).T, root * np.asarray(params["output"]["weight"][:, 0])
    expected = [sum(b * FORMULAS[name](w, each) for w, b in zip(copies, v, strict=True)) / np.sqrt(5) for each in x]
    np.testing.assert_allclose(net.apply(params, x)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("model", [*SUB_MODELS, OWN], ids=[*SUB_MODELS, "own"])
def test_kernel_and_hessian_are_those_of_plain_derivatives(model, x64):
    net, x = Assembly(4, model, num_outputs=2, output="swish"), _inputs(3)
    assert_those_of_plain_derivatives(net, net.init(jax.random.key(1), (3,)), x)


def test_the_norm_is_that_of_the_largest_copy(x64):
    """docs/math/assemblies.md: ‖H‖ = m^(−½) max_i ‖H_i‖."""
    net, (x,) = Assembly(6, "tree"), _inputs(1)
    params = net.init(jax.random.key(2), (3,))
    alone = Assembly(1, "tree")
    norms = [
        hessian_norm(alone, {name: {"weight": part} for name, part in one.items()}, x).value
        for i in range(6)
        for one in [
            {"hidden1": params["hidden1"]["weight"][:, i : i + 1], "output": params["output"]["weight"][i : i + 1]}
        ]
    ]
    np.testing.assert_allclose(hessian_norm(net, params, x).value, max(norms) / np.sqrt(6), rtol=1e-8)


def test_copies_contract_alike_one_by_one_and_together(monkeypatch, x64):
    net, x = Assembly(width=3), jax.random.normal(jax.random.key(1), (2, 3))
    params = net.init(jax.random.key(0), (3,))
    program = program_of_network(net, params, x[0])
    leaves = program.leaves(params)
    views = program.views(leaves, x)
    together = program.kernel(leaves, views, views)
    monkeypatch.setattr(_layers, "BLOCK_ENTRIES", 0)
    np.testing.assert_allclose(program.kernel(leaves, views, views), together, rtol=1e-12)
