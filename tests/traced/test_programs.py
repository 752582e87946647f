"""Every program of the zoo: kernel against explicit Jacobians, Hessian norm against the dense Hessian."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import _compiled, hessian_norm
from ntk_core.hessians._compiled import with_layers
from ntk_core.kernels import _empirical, empirical_ntk
from ntk_core.traced import TracingDisagrees, _program, layers_of, traced
from tests.plain_derivatives import largest, plain_hessian, plain_kernel
from tests.traced.programs import CASES, Case, X, batch_statistics, draw, mlp, while_with_weights

QUICK = ("tied weights", "padding by default", "in bf16", "complex product")


def numbers(case):
    return jax.tree.map(jnp.asarray, case.params), jnp.asarray(case.x)


def zoo():
    """All cases, with the quick ones in the quick tier."""
    return [pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.slow) for case in CASES]


def compare(case):
    """Compare a kernel between rows, and the Hessian norm of the last row, with whole-batch derivatives."""
    params, x = numbers(case)
    oracle = case.oracle or case.apply
    expected, dense = plain_kernel(oracle, params, x[:-1], x[1:]), plain_hessian(oracle, params, x[-1])
    kernel = empirical_ntk(case.apply, params, x[:-1], x[1:])
    assert kernel.shape == expected.shape
    np.testing.assert_allclose(kernel, expected, rtol=0, atol=case.tolerance * np.abs(expected).max())
    asked = {"tolerance": 1e-9} if case.tolerance < 1e-8 else {}
    found = hessian_norm(case.apply, params, x[-1], **asked)
    assert found.value == pytest.approx(largest(dense), rel=max(case.tolerance, 1e-8), abs=1e-12)


@pytest.mark.parametrize("case", zoo())
def test_kernel_and_hessian_are_those_of_plain_derivatives(case, x64):
    compare(case)


def test_loops_without_a_gradient_are_refused_by_name(x64):
    x = jnp.asarray(X)
    params = {"w": jnp.asarray(draw(3, 8)), "u": jnp.asarray(draw(8, 8)), "v": jnp.asarray(draw(8, 2))}
    for refuse in (empirical_ntk, layers_of):
        with pytest.raises(InvalidInput, match="while_loop"):
            refuse(while_with_weights, params, x)
    with pytest.raises(InvalidInput, match="while_loop"):
        hessian_norm(while_with_weights, params, x[0])


def test_uses_are_found_in_all_programs(x64):
    for case in CASES:
        params, x = numbers(case)
        program = traced(case.apply, params, x)
        program.kept["kernel"] = None  # analysis only, without the comparison
        kinds = "".join(layer.kind[0] for layer in layers_of(case.apply, params, x).layers)
        assert kinds == case.kinds, (case.name, kinds)
        del program.kept["kernel"]


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
    assert set(parts) == {"['b']", "['v']", "['w']"}
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
    seen = []
    jax.jit(lambda p: seen.append(with_layers(another, p, x[0])))(params)
    assert seen[0] is traced(another, params, x)
    assert "hessian, drawn" in seen[0].kept


def test_jit_refuses_interacting_rows_and_ignores_nan(x64):
    params = {"w": jnp.asarray(draw(3, 8)), "v": jnp.asarray(draw(8, 2))}
    x = jnp.asarray(X)
    with pytest.raises(InvalidInput, match="reduce_sum mixes the rows"):
        jax.jit(lambda p: empirical_ntk(lambda q, x: batch_statistics(q, x), p, x))(params)

    def of_positive(p, x):
        return jnp.tanh(x @ jnp.log(p["w"])) @ p["v"]

    jax.jit(lambda p: empirical_ntk(of_positive, p, x))(jax.tree.map(jnp.abs, params))
    assert not traced(of_positive, params, x).kept.get("kernel, drawn")


@pytest.mark.slow
def test_numbers_that_disagree_are_no_result(x64, monkeypatch):
    kernels = _program.Program.kernels

    def wrong(*given):
        return {name: 1.001 * part for name, part in kernels(*given).items()}

    monkeypatch.setattr(_program.Program, "kernels", wrong)
    params = {"w": jnp.asarray(draw(3, 8)), "b": jnp.zeros(8), "v": jnp.asarray(draw(8, 2))}
    with pytest.raises(TracingDisagrees, match="2 traced layers"):
        empirical_ntk(lambda p, x: 7 * mlp(p, x), params, jnp.asarray(X))


def chaotic(p, x):
    a = x.astype(jnp.bfloat16)
    for _ in range(6):
        a = jnp.sin(8 * a @ p["w"].astype(jnp.bfloat16))
    return (a @ p["v"].astype(jnp.bfloat16)).astype(jnp.float32)


def test_disagreement_by_rounding_is_blamed_on_the_precision(monkeypatch):
    rng = np.random.default_rng(0)  # the check of a norm in bfloat16 allows for 90 %
    w, v, x = (jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in ((3, 3), (3, 2), (4, 3)))
    params = {"w": w, "v": v}
    kernels, product = _program.Program.kernels, _compiled.compiled_product
    monkeypatch.setattr(_program.Program, "kernels", lambda *given: {k: 30 * v for k, v in kernels(*given).items()})

    def wrong(*given):
        multiply, *rest = product(*given)
        return (lambda v: (multiply(v)[0], 0.05 * multiply(v)[1]), *rest)

    monkeypatch.setattr(_compiled, "compiled_product", wrong)
    for measure in (lambda: empirical_ntk(chaotic, params, x), lambda: hessian_norm(chaotic, params, x[0])):
        with pytest.raises(InvalidInput, match="too sensitive to rounding in bfloat16"):
            measure()
    with pytest.raises(TracingDisagrees, match="Please report"):
        hessian_norm(lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"], params, x[0])


def of_flax():
    nn: Any = pytest.importorskip("flax.linen", reason="flax is not installed")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            a = nn.Embed(7, 4)(x)
            a = a + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(a))
            return nn.Dense(2)(a.mean(1))

    x = jnp.arange(12).reshape(3, 4) % 7
    params = Block().init(jax.random.key(0), x)
    return Case("flax", Block().apply, jax.tree.map(lambda leaf: leaf.astype(float), params), x, "")


def of_equinox():
    eqx: Any = pytest.importorskip("equinox", reason="equinox is not installed")
    keys = jax.random.split(jax.random.key(0))
    model = (eqx.nn.GRUCell(3, 4, key=keys[0]), eqx.nn.Linear(4, 2, key=keys[1]))
    params, structure = eqx.partition(model, eqx.is_inexact_array)

    def apply(params, x):
        cell, last = eqx.combine(params, structure)

        def row(series):
            return last(jax.lax.scan(lambda h, a: (cell(a, h), None), jnp.zeros(4), series)[0])

        return jax.vmap(row)(x)

    return Case("equinox", apply, params, draw(3, 4, 3), "")


@pytest.mark.slow
def test_models_of_flax_and_equinox_have_them_without_a_fallback(x64):
    for case in (of_flax(), of_equinox()):
        params, x = numbers(case)
        kinds = {layer.kind for layer in layers_of(case.apply, params, x).layers}
        assert "product" in kinds
        assert "jacobian" not in kinds, case.name
        compare(case)
