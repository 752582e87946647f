"""Tiny programs of usual architectures.

Kernels and Hessian norms against plain derivatives, and the safety check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core.errors import InvalidInput
from ntk_core.hessians import _compiled, hessian_norm
from ntk_core.kernels import _empirical, empirical_ntk
from ntk_core.traced import TracingDisagrees, _program, layers_of, traced
from ntk_core.traced._row_axes import Proof
from ntk_core.traced._rows import operation_between_rows
from ntk_core.traced._same import ProgramComparison
from tests.plain_derivatives import largest, normal, plain_hessian, plain_kernel

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A program with the kinds of its layers in the order of its parameters.

    Attributes:
        tolerance: of its numbers, relative to the largest; by its number types.
        oracle: reference program if the program's own derivatives differ from those of its
            function.
    """

    name: str
    apply: Callable[[Any, Any], Any]
    params: Any
    x: Any
    kinds: str  # one letter each: p(roduct) c(onvolution) l(ook-up) a(ddition) g(ain) j(acobian)
    tolerance: float = 1e-9
    oracle: Callable[[Any, Any], Any] | None = None


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) / max(1, shape[0]) ** 0.5


def normalized(a: Any) -> Any:
    centered = a - a.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-3)


def mlp(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]


def attention(p, x):
    def split(a):
        return a.reshape(*a.shape[:2], 2, -1)

    q, k, v = (split(x @ p[name]) for name in ("q", "k", "v"))
    scores = jax.nn.softmax(jnp.einsum("nihd,njhd->nhij", q, k) / q.shape[-1], axis=-1)
    mixed = jnp.einsum("nhij,njhd->nihd", scores, v).reshape(x.shape[0], x.shape[1], -1)
    return jnp.einsum("nthd,hdo->nto", split(mixed), p["o"]).mean(1)


def transformer(p, x):
    a = p["table"][x] + p["places"]

    def block(a, w):
        b = p["gain"] * normalized(a)
        a = a + attention({**w, "o": w["o"].reshape(2, 2, 4)}, b)[:, None]
        return a + jax.nn.gelu(b @ w["up"]) @ w["down"], None

    return lax.scan(block, a, p["blocks"])[0].mean(1) @ p["table"].T[:, :3]


def tied(p, x):
    return (jnp.tanh(p["table"][x] @ p["w"]) @ p["table"].T).mean(1)


def default_indexing(p, x):
    return jnp.tanh(p["table"][x] @ p["v"]).sum(1)


def fixed_outside(p, x):
    """Default indexing, whose reverse mode ignores indices outside the table."""
    rows = p["table"][x]
    inside = ((x >= -7) & (x < 7))[..., None]
    return jnp.tanh(jnp.where(inside, rows, lax.stop_gradient(rows)) @ p["v"]).sum(1)


def large_table_in_bf16(p, x):
    a = jnp.take(p["table"].astype(jnp.bfloat16), 37 * x, axis=0, mode="fill", fill_value=0)
    return (a.astype(float) @ p["v"]).sum(1)


def kept_averages(p, x):
    a = (x @ p["w"] - lax.stop_gradient(p["mean"])) / jnp.sqrt(
        lax.stop_gradient(p["var"]) ** 2 + 1e-3
    )
    return jnp.tanh(p["g"] * a + p["b"]) @ p["v"]


def while_without_weights(p, x):
    scale = lax.while_loop(lambda s: s < 4, lambda s: 1.5 * s, jnp.ones(()) * 1.0)
    return jnp.tanh(scale * x @ p["w"]) @ p["v"]


def while_with_weights(p, x):
    return (
        lax.while_loop(
            lambda a: jnp.sum(a**2) > 0.1, lambda a: 0.5 * jnp.tanh(a @ p["u"]), x @ p["w"]
        )
        @ p["v"]
    )


@jax.custom_vjp
def product_with_rule(a, w):
    return a @ w


product_with_rule.defvjp(
    lambda a, w: (a @ w, (a, w)), lambda kept, t: (t @ kept[1].T, kept[0].T @ t)
)


@jax.custom_jvp
def product_with_tangents(a, w):
    return a @ w


product_with_tangents.defjvp(lambda at, along: (at[0] @ at[1], along[0] @ at[1] + at[0] @ along[1]))


def by(product):
    return lambda p, x: jnp.tanh(product(x, p["w"])) @ p["v"]


def computed_in(dtype):
    def apply(p, x):
        p = jax.tree.map(lambda leaf: leaf.astype(dtype), p)
        a = jnp.tanh(normalized(x.astype(dtype) @ p["w"]) @ p["u"])
        return (a @ p["v"]).astype(float)

    return apply


X, TOKENS = draw(4, 3), RNG.integers(0, 7, (4, 5))
WV = {"w": draw(3, 8), "v": draw(8, 2)}
BLOCKS = {name: draw(2, 4, 4) for name in "qkvo"} | {"up": draw(2, 4, 6), "down": draw(2, 6, 4)}
# 7 words; later rows have ids outside the table.
OUTSIDE = np.array([[0, 3, 6], [5, 1, 1], [7, -1, 2], [9, 4, -8]])
KEPT = {name: 1 + draw(8) for name in ("b", "g", "mean", "var")}
EMBEDDED = {"table": draw(7, 4), "places": draw(5, 4), "gain": draw(4), "blocks": BLOCKS}
TABLE = {"table": draw(7, 4), "v": draw(4, 2)}
NUMBERS = {**WV, "factor": np.array(0.5), "count": np.array(3)}
SMALL = {**WV, "one": draw(1), "scalar": np.array(0.3), "none": np.zeros((0, 3))}

CASES = [
    Case("mlp", mlp, {**WV, "b": draw(8)}, X, "app"),
    Case(
        "squared",
        lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"] + 0.1 * jnp.sum(p["v"] ** 2),
        WV,
        X,
        "jp",
    ),
    Case("rule for tangents", by(product_with_tangents), WV, X, "pj"),
    Case("rule for cotangents", by(product_with_rule), WV, X, "pj"),
    Case("transformer", transformer, EMBEDDED, TOKENS, "ppppppgaj"),
    Case("tied weights", tied, {"table": draw(7, 4), "w": draw(4, 4)}, TOKENS, "lp"),
    Case(
        "numbers",
        lambda p, x: jnp.tanh(x @ p["w"] * p["factor"]) @ p["v"] + p["count"],
        NUMBERS,
        X,
        "gpp",
    ),
    Case("padding by default", default_indexing, TABLE, OUTSIDE, "lp", oracle=fixed_outside),
    Case(
        "large table in bf16",
        large_table_in_bf16,
        {**TABLE, "table": draw(300, 4)},
        OUTSIDE,
        "lp",
        3e-2,
    ),
    Case("kept averages", kept_averages, {**WV, **KEPT}, X, "agjpjp"),
    Case("while without weights", while_without_weights, WV, X, "pp"),
    Case(
        "in bf16",
        computed_in(jnp.bfloat16),
        {**WV, "u": draw(8, 8)},
        X,
        "ppp",
        0.1,
        oracle=computed_in(float),
    ),
    Case(
        "one vector",
        lambda p, x: jnp.tanh(x @ p[:24].reshape(3, 8)) @ p[24:].reshape(8, 2),
        draw(40),
        X,
        "pp",
    ),
    Case(
        "small shapes",
        lambda p, x: p["one"] * mlp({**p, "b": 0}, x) + p["scalar"] + p["none"].sum(),
        SMALL,
        X,
        "gapp",
    ),
    Case(
        "integers",
        lambda p, x: mlp({**p, "b": 0}, x % 5) + x[:, :2],
        WV,
        RNG.integers(-9, 9, (4, 3)),
        "pp",
    ),
]
# All others are slow.
QUICK = ("tied weights", "padding by default", "in bf16")
IN_TIERS = [
    pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.slow)
    for case in CASES
]


def numbers(case):
    return jax.tree.map(jnp.asarray, case.params), jnp.asarray(case.x)


def compare(case):
    """Compare a kernel between rows, and the Hessian norm of the last row,
    with whole-batch derivatives.
    """
    params, x = numbers(case)
    oracle = case.oracle or case.apply
    expected, dense = (
        plain_kernel(oracle, params, x[:-1], x[1:]),
        plain_hessian(oracle, params, x[-1]),
    )
    kernel = empirical_ntk(case.apply, params, x[:-1], x[1:])
    assert kernel.shape == expected.shape
    np.testing.assert_allclose(
        kernel, expected, rtol=0, atol=case.tolerance * np.abs(expected).max()
    )
    asked = {"tolerance": 1e-9} if case.tolerance < 1e-8 else {}
    found = hessian_norm(case.apply, params, x[-1], **asked)
    assert found.value == pytest.approx(largest(dense), rel=max(case.tolerance, 1e-8), abs=1e-12)


@pytest.mark.long_after(3)
@pytest.mark.first_cases(2)  # each program compiles its oracle
@pytest.mark.parametrize("case", IN_TIERS)
def test_kernel_and_hessian_are_those_of_plain_derivatives(case, x64):
    compare(case)


def test_loops_without_a_gradient_are_refused_by_name(x64):
    params = normal(w=(3, 8), u=(8, 8), v=(8, 2))
    for refuse in (empirical_ntk, layers_of):
        with pytest.raises(InvalidInput, match="while_loop"):
            refuse(while_with_weights, params, X)
    with pytest.raises(InvalidInput, match="while_loop"):
        hessian_norm(while_with_weights, params, X[0])


def test_uses_are_found_and_rows_proven_independent(x64):
    for case in CASES:
        params, x = numbers(case)
        program = traced(case.apply, params, x)
        program.kept["kernel"] = None  # analysis only, without the comparison
        kinds = "".join(layer.kind[0] for layer in layers_of(case.apply, params, x).layers)
        assert kinds == case.kinds, (case.name, kinds)
        del program.kept["kernel"]
        whole, single = (
            jax.make_jaxpr(lambda p, x, case=case: case.apply(p, x))(params, rows)
            for rows in (x, x[:1])
        )
        expected = {
            "rule for tangents": "custom_jvp_call",
            "rule for cotangents": "custom_vjp_call",
        }.get(case.name)
        proof = Proof(len(x))
        assert operation_between_rows(whole, proof) == expected, case.name
        assert expected or ProgramComparison(proof).alike(whole, single), case.name


def test_a_function_takes_this_route_by_itself(x64):
    case = CASES[0]
    params, x = numbers(case)
    found = layers_of(case.apply, params, x)
    assert [layer.kind for layer in found.layers] == ["addition", "product", "product"]
    assert found.check.kernel < 1e-12
    assert found.multiplications < found.jacobian_multiplications
    assert not found.fallbacks
    expected = plain_kernel(case.apply, params, x, x[1:])
    parts = empirical_ntk(case.apply, params, x, x[1:], per_layer=True)
    assert set(parts) == {"b", "v", "w"}
    in_blocks = empirical_ntk(case.apply, params, x, x[1:], memory_limit=1)
    for each in (sum(parts.values()), in_blocks):
        np.testing.assert_allclose(each, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.slow
def test_check_uses_random_numbers_inside_jit_and_vmap(x64, monkeypatch):
    """Unchecked programs take the structured route inside jit and vmap, without whole Jacobians."""
    monkeypatch.setattr(_empirical, "callable_ntk", None)
    params, x = numbers(CASES[0])
    expected = plain_kernel(mlp, params, x)

    def fresh(p, x):
        return 3 * mlp(p, x)

    found = jax.jit(lambda p, x: empirical_ntk(fresh, p, x))(params, x)
    np.testing.assert_allclose(found, 9 * expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    program = traced(fresh, params, x)
    assert program.kept["kernel, drawn"].kernel < 1e-12
    assert "kernel" not in program.kept, "known numbers are compared again"
    assert layers_of(fresh, params, x).check.kernel < 1e-12

    def another(p, x):
        return 5 * mlp(p, x)

    several = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), params)
    both = jax.vmap(lambda p: empirical_ntk(another, p, x))(several)
    np.testing.assert_allclose(both[0], 25 * expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.slow
def test_numbers_that_disagree_are_no_result(x64, monkeypatch):
    kernels = _program.Program.kernels

    def wrong(*given):
        return {name: 1.001 * part for name, part in kernels(*given).items()}

    monkeypatch.setattr(_program.Program, "kernels", wrong)
    with pytest.raises(TracingDisagrees, match="2 traced layers"):
        empirical_ntk(lambda p, x: 7 * mlp(p, x), *numbers(CASES[0]))


def chaotic(p, x):
    a = x.astype(jnp.bfloat16)
    for _ in range(6):
        a = jnp.sin(8 * a @ p[0].astype(jnp.bfloat16))
    return (a @ p[1].astype(jnp.bfloat16)).astype(jnp.float32)


@pytest.mark.slow  # compiles four programs
@pytest.mark.parametrize("bits", [(8, 7), (5, 10), (8, 4)])
def test_rounded_numbers_have_the_precision_of_their_bits(bits):
    rng = np.random.default_rng(0)
    params = [jnp.asarray(rng.standard_normal(s), jnp.float32) for s in ((5, 8), (8, 2))]
    x = jnp.asarray(rng.standard_normal((6, 5)), jnp.float32)

    def rounded(p, x):
        return jax.lax.reduce_precision(jnp.tanh(x @ p[0]), *bits) @ p[1]

    expected = np.asarray(plain_kernel(rounded, params, x))
    found = empirical_ntk(rounded, params, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.long  # compiles kernels and norms that are wrong on purpose
def test_disagreement_by_rounding_is_blamed_on_the_precision(monkeypatch):
    rng = np.random.default_rng(0)  # the check of a norm in bfloat16 allows for 90 %
    *params, x = (
        jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in ((3, 3), (3, 2), (4, 3))
    )
    kernels, product = _program.Program.kernels, _compiled.compiled_product
    monkeypatch.setattr(
        _program.Program, "kernels", lambda *given: {k: 30 * v for k, v in kernels(*given).items()}
    )

    def wrong(*given):
        multiply, *rest = product(*given)
        return (lambda v: (multiply(v)[0], 0.05 * multiply(v)[1]), *rest)

    monkeypatch.setattr(_compiled, "compiled_product", wrong)
    for measure in (
        lambda: empirical_ntk(chaotic, params, x),
        lambda: hessian_norm(chaotic, params, x[0]),
    ):
        with pytest.raises(InvalidInput, match="too sensitive to rounding in bfloat16"):
            measure()
    with pytest.raises(TracingDisagrees, match="Please report"):
        hessian_norm(lambda p, x: jnp.tanh(x @ p[0]) @ p[1], params, x[0])


@pytest.mark.long
def test_a_module_of_flax_needs_no_jacobians(x64):
    nn: Any = pytest.importorskip("flax.linen", reason="flax is not installed")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            a = nn.Embed(7, 4)(x)
            a = a + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(a))
            return nn.Dense(2)(a.mean(1))

    x = jnp.arange(12).reshape(3, 4) % 7
    params = jax.tree.map(lambda leaf: leaf.astype(float), Block().init(jax.random.key(0), x))
    kinds = {layer.kind for layer in layers_of(Block().apply, params, x).layers}
    assert "product" in kinds
    assert "jacobian" not in kinds
    compare(Case("flax", Block().apply, params, x, ""))
