"""Low-rank adapters and assemblies of sub-models.

Formulas, and kernels and Hessians against plain derivatives.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.networks.build import build_network
from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core import Adapted, Assembly, hessian_norm
from ntk_core.networks.architectures import merge
from ntk_core.networks.choices import SUB_MODELS
from ntk_core.traced import _layers, program_of_network
from tests.cases import Case, inputs, random_params
from tests.plain_derivatives import assert_those_of_plain_derivatives, quickly


def _case(**settings):
    given = {"width": 6, "depth": 3, "adapter_rank": 2, "num_outputs": 2, "activation": "tanh"}
    return Case("", Adapted(**{**given, "adapted_layers": (2, 3), **settings}), (4,))


@pytest.mark.parametrize("parameterization", ["ntk", "standard", "lecun"])
def test_an_adapter_is_its_formula(parameterization, x64):
    case = _case(rank_exponent=0.75, adapted_layers=(2,), parameterization=parameterization)
    params, x = random_params(case), inputs(case, 3)
    w = {name: np.asarray(each["weight"]) for name, each in params.items()}
    b = {name: np.asarray(each["bias"]) for name, each in params.items() if "bias" in each}
    root = {
        "ntk": np.sqrt,
        "standard": lambda fan_in: 1.0,
        "lecun": lambda fan_in: np.sqrt(fan_in / 6),
    }[parameterization]
    unit = np.sqrt(6) if parameterization == "lecun" else 1.0  # in front of biases
    first = np.tanh(x @ w["hidden1"] / root(4) + unit * b["hidden1"])
    update = unit * w["hidden3"] @ w["hidden4"] / 2**0.75
    second = np.tanh(first @ (w["hidden2"] + update) / root(6) + unit * b["hidden2"])
    third = np.tanh(second @ w["hidden5"] / root(6) + unit * b["hidden5"])
    np.testing.assert_allclose(case.net.apply(params, x), third @ w["output"] / root(6), rtol=1e-12)


@pytest.mark.parametrize("base", ["fully-connected", "bottleneck", "resnet", "densenet"])
def test_it_starts_as_its_base_and_moves_adapters_alone(base):
    net = _case(base=base, trained="hidden").net
    params = net.init(jax.random.key(0), (4,))
    trained, fixed = net.partition(params)
    assert [name for name, each in trained.items() if each] == [
        "hidden3",
        "hidden4",
        "hidden6",
        "hidden7",
    ]
    assert not params["hidden4"]["weight"].any()
    assert not params["hidden7"]["weight"].any()
    moved = jax.tree.map(lambda leaf: leaf, trained)
    moved["hidden3"]["weight"] = moved["hidden3"]["weight"] + 1.0  # A has no effect while B = 0
    x = inputs(Case("", net, (4,)), 3)
    np.testing.assert_array_equal(net.apply(merge(moved, fixed), x), net.apply(params, x))


@pytest.mark.parametrize(
    ("base", "start"),
    [("fully-connected", "drawn"), pytest.param("densenet", "moved", marks=pytest.mark.slow)],
)
def test_adapters_have_plain_kernels_and_hessians(base, start, x64):
    case = _case(base=base, trained="hidden" if start == "drawn" else "all")
    params = case.net.init(jax.random.key(1), (4,)) if start == "drawn" else random_params(case)
    assert_those_of_plain_derivatives(case.net, params, inputs(case, 4))


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_one_adapter_has_the_derived_hessian_norm(exponent, x64):
    """docs/math/adapters.md: ‖H‖ = ‖δ‖ ‖a‖ / (r^s √m) for one adapted layer and a
    piecewise linear σ.
    """
    case = _case(
        adapted_layers=(2,), depth=2, activation="relu", trained="hidden", rank_exponent=exponent
    )
    net, (x,) = case.net, inputs(case, 1)
    params = net.init(jax.random.key(2), (4,))
    a = jax.nn.relu(params["hidden1"]["weight"].T @ x / 2 + params["hidden1"]["bias"])
    z = params["hidden2"]["weight"].T @ a / np.sqrt(6) + params["hidden2"]["bias"]
    delta = (z > 0) * params["output"]["weight"][:, 0] / np.sqrt(6)
    expected = np.linalg.norm(delta) * np.linalg.norm(a) / (2**exponent * np.sqrt(6))
    np.testing.assert_allclose(hessian_norm(net, params, x).value, expected, rtol=1e-8)


def test_a_spec_sweeps_the_width_or_the_rank():
    found = []
    for settings in ({"adapter_rank": 3}, {"grows": "rank", "layer_width": 7}):
        net = build_network(ArchitectureSpec(kind="adapted", depth=2, **settings), 9, 1, "linear")
        assert isinstance(net, Adapted)
        found.append(net.widths)
    assert found == [(9, 3, 9, 9, 3, 9), (7, 9, 7, 7, 9, 7)]


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


@pytest.mark.parametrize(
    ("name", "parameterization"), [("neurons", "ntk"), ("tree", "ntk"), ("sines", "lecun")]
)
def test_an_assembly_is_its_formula(name, parameterization, x64):
    net, x = Assembly(5, name, parameterization=parameterization), _inputs(2)
    params = net.init(jax.random.key(0), (3,))
    root = np.sqrt(5) if parameterization == "lecun" else 1.0
    copies, v = (
        root * np.asarray(params["hidden1"]["weight"]).T,
        root * np.asarray(params["output"]["weight"][:, 0]),
    )
    expected = [
        sum(b * FORMULAS[name](w, each) for w, b in zip(copies, v, strict=True)) / np.sqrt(5)
        for each in x
    ]
    np.testing.assert_allclose(net.apply(params, x)[:, 0], expected, rtol=1e-12)


@pytest.mark.first_cases(1)  # each model compiles its oracle
@pytest.mark.parametrize("model", [*SUB_MODELS, OWN], ids=[*SUB_MODELS, "own"])
def test_assemblies_have_plain_kernels_and_hessians(model, x64):
    net, x = Assembly(4, model, num_outputs=2, output="swish"), _inputs(3)
    assert_those_of_plain_derivatives(net, net.init(jax.random.key(1), (3,)), x)


@pytest.mark.slow  # compiles two Hessians seven times
def test_the_norm_is_that_of_the_largest_copy(x64):
    """docs/math/assemblies.md: ‖H‖ = m^(−½) max_i ‖H_i‖."""
    net, (x,) = Assembly(6, "tree"), _inputs(1)
    params = net.init(jax.random.key(2), (3,))
    alone = Assembly(1, "tree")
    norms = [
        hessian_norm(alone, {name: {"weight": part} for name, part in one.items()}, x).value
        for i in range(6)
        for one in [
            {
                "hidden1": params["hidden1"]["weight"][:, i : i + 1],
                "output": params["output"]["weight"][i : i + 1],
            }
        ]
    ]
    np.testing.assert_allclose(
        hessian_norm(net, params, x).value, max(norms) / np.sqrt(6), rtol=1e-8
    )


def test_copies_contract_alike_one_by_one_and_together(monkeypatch, x64):
    net, x = Assembly(width=3), jax.random.normal(jax.random.key(1), (2, 3))
    params = net.init(jax.random.key(0), (3,))
    program = program_of_network(net, params, x[0])
    leaves = program.leaves(params)
    views = quickly(program.views)(leaves, x)
    together = quickly(program.kernel)(leaves, views, views)
    monkeypatch.setattr(_layers, "BLOCK_ENTRIES", 0)
    one_by_one = quickly(lambda *given: program.kernel(*given))(leaves, views, views)
    np.testing.assert_allclose(one_by_one, together, rtol=1e-12)
