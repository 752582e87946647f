"""Attention and transformers against their formulas, with independent heads."""

from typing import Any

import jax
import numpy as np
import pytest

from linearity_lab.networks.sizes import layer_sizes
from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.networks.architectures import Attention, Scaling, Transformer
from ntk_core.networks.architectures._convolution import Gain
from ntk_core.networks.counts import num_features
from ntk_core.networks.graphs import graph_verdict, parse_composition
from tests.cases import FAST_COMPILE, Case, random_params


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def fast(net, params, x):
    return jax.jit(net.apply, compiler_options=FAST_COMPILE)(params, x)


def matrices(params):
    return {
        name: np.asarray(each["weight"]).reshape(-1, each["weight"].shape[-1])
        for name, each in params.items()
    }


def heads_of(x, q, k, v, num_heads, exponent, causal):
    """Oracle for one sequence (T, features).

    Concatenated Σⱼ Aᵢⱼ vⱼ of all heads, by single scores.
    """
    length, dim = len(x), q.shape[-1] // num_heads
    projected = [
        (x @ each / np.sqrt(x.shape[-1])).reshape(length, num_heads, dim) for each in (q, k, v)
    ]
    found = np.zeros((length, num_heads, dim))
    for h in range(num_heads):
        for i in range(length):
            seen = range(i + 1 if causal else length)
            weights = softmax(
                np.array([projected[0][i, h] @ projected[1][j, h] / dim**exponent for j in seen])
            )
            found[i, h] = sum(
                weight * projected[2][j, h] for weight, j in zip(weights, seen, strict=True)
            )
    return found.reshape(length, -1)


@pytest.mark.parametrize(("exponent", "causal"), [(0.5, False), (1.0, True)])
def test_attention_is_its_formula(exponent, causal, x64):
    net = Attention(num_heads=3, head_dim=2, num_outputs=2, score_exponent=exponent, causal=causal)
    params = random_params(Case("", net, (4, 5)))
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    q, k, v, u = matrices(params).values()
    expected = [
        heads_of(each, q, k, v, 3, exponent, causal).mean(axis=0) @ u / np.sqrt(6) for each in x
    ]
    np.testing.assert_allclose(fast(net, params, x), expected, rtol=1e-12)


def test_a_transformer_is_its_formula(x64):
    net = Transformer(
        num_heads=2,
        head_dim=3,
        num_blocks=1,
        mlp_factor=1.5,
        activation="tanh",
        token_readout="first",
    )
    params = random_params(Case("", net, (4, 5)))
    (x,) = np.random.default_rng(1).standard_normal((1, 4, 5))
    names = ("embed", "positions", "gain1", "q", "k", "v", "o", "gain2", "up", "down", "gain3", "u")
    w = dict(zip(names, matrices(params).values(), strict=True))

    def dense(a, name):
        return a @ w[name] / np.sqrt(a.shape[-1])

    def normalized(a, name):
        return (
            w[name]
            * (a - a.mean(axis=-1, keepdims=True))
            / np.sqrt(a.var(axis=-1, keepdims=True) + 1e-5)
        )

    a = dense(x, "embed") + w["positions"]
    a = a + dense(
        heads_of(normalized(a, "gain1"), w["q"], w["k"], w["v"], 2, 0.5, causal=False), "o"
    )
    a = a + dense(np.tanh(dense(normalized(a, "gain2"), "up")), "down")
    np.testing.assert_allclose(
        fast(net, params, x[None])[0], dense(normalized(a, "gain3")[0], "u"), rtol=1e-12
    )
    drawn = (
        Gain().init(jax.random.key(0), (4, 6)),
        Gain(scaling=Scaling("lecun", width=4)).init(jax.random.key(0), (6,)),
    )
    assert [float(each["weight"][0]) for each in drawn] == [1, 0.5]


def test_the_verdict_names_the_scores_of_a_head():
    attention: dict[str, Any] = {"width_is": "head_dim", "kind": "attention"}
    cases: dict[str, list[dict[str, Any]]] = {
        "not wide": [
            attention,
            {"kind": "transformer"},
            {"kind": "transformer", "width_is": "mlp_width"},
        ],
        "undecided": [
            {**attention, "score_exponent": 1.0},
            {"kind": "transformer", "width_is": "num_heads"},
        ],
        "wide": [{**attention, "width_is": "num_heads"}],
    }
    for outcome, specs in cases.items():
        for settings in specs:
            found = graph_verdict(ArchitectureSpec(**settings).written_out, 64, (6, 8))
            assert found.outcome == outcome, settings
            bottleneck = outcome == "not wide" and settings.get("width_is") != "mlp_width"
            assert ("36 scores of one head" in found.reasons[0].words) == bottleneck


def test_scores_are_counted_as_work_and_memory():
    with_heads = layer_sizes(ArchitectureSpec(kind="attention", num_heads=4), 16, (6, 8), 1)
    queries, _, values, _ = with_heads
    assert values.multiplications - queries.multiplications == 2 * 6 * 6 * 64
    assert num_features(with_heads) == 3 * 6 * 64 + 4 * 6 * 6 + 1


def test_composition_in_json_equals_its_transformer():
    written = ArchitectureSpec(kind="transformer", num_blocks=1, positions="fixed").written_out
    assert str(parse_composition(str(written)).layers[0]) == str(written.layers[0])
    assert written.roles().count("gains") == 3
