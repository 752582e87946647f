"""Low-rank adapters against their formula; kernels and Hessians against plain derivatives."""

import jax
import numpy as np
import pytest

from ntk_core import Adapted, hessian_norm
from ntk_core.networks.architectures import merge
from ntk_core.networks.build import build_network
from ntk_core.networks.spec import ArchitectureSpec
from tests.cases import Case, inputs, random_params
from tests.plain_derivatives import assert_those_of_plain_derivatives


def _case(**settings):
    given = {"width": 6, "depth": 3, "adapter_rank": 2, "num_outputs": 2, "activation": "tanh"}
    return Case("", Adapted(**{**given, "adapted_layers": (2, 3), **settings}), (4,))


@pytest.mark.parametrize("parameterization", ["ntk", "standard", "lecun"])
def test_an_adapter_is_its_formula(parameterization, x64):
    case = _case(rank_exponent=0.75, adapted_layers=(2,), parameterization=parameterization)
    params, x = random_params(case), inputs(case, 3)
    w = {name: np.asarray(each["weight"]) for name, each in params.items()}
    b = {name: np.asarray(each["bias"]) for name, each in params.items() if "bias" in each}
    root = {"ntk": np.sqrt, "standard": lambda fan_in: 1.0, "lecun": lambda fan_in: np.sqrt(fan_in / 6)}[
        parameterization
    ]
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
    assert [name for name, each in trained.items() if each] == ["hidden3", "hidden4", "hidden6", "hidden7"]
    assert not params["hidden4"]["weight"].any()
    assert not params["hidden7"]["weight"].any()
    moved = jax.tree.map(lambda leaf: leaf, trained)
    moved["hidden3"]["weight"] = moved["hidden3"]["weight"] + 1.0  # A has no effect while B = 0
    x = inputs(Case("", net, (4,)), 3)
    np.testing.assert_array_equal(net.apply(merge(moved, fixed), x), net.apply(params, x))


@pytest.mark.parametrize(
    ("base", "start"), [("fully-connected", "drawn"), pytest.param("densenet", "moved", marks=pytest.mark.slow)]
)
def test_kernel_and_hessian_are_those_of_plain_derivatives(base, start, x64):
    case = _case(base=base, trained="hidden" if start == "drawn" else "all")
    params = case.net.init(jax.random.key(1), (4,)) if start == "drawn" else random_params(case)
    assert_those_of_plain_derivatives(case.net, params, inputs(case, 4))


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_one_adapter_has_the_derived_hessian_norm(exponent, x64):
    """docs/math/adapters.md: ‖H‖ = ‖δ‖ ‖a‖ / (r^s √m) for one adapted layer and a piecewise linear σ."""
    case = _case(adapted_layers=(2,), depth=2, activation="relu", trained="hidden", rank_exponent=exponent)
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
