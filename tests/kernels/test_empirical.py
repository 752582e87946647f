"""The empirical tangent kernel of all shared cases against explicit Jacobians in float64.

The settings of a network are independent: output functions act after the layers, a trained subset
keeps the parts of its layers, and parameterizations act within layers. Each law has its own test;
every architecture has two settings.
"""

import functools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import (
    KernelOperator,
    diagonal_ntk,
    empirical_ntk,
    generic_ntk,
    pre_output_ntk,
    trace_outputs,
)
from ntk_core.kernels import _callable as routes
from ntk_core.networks.architectures import (
    Attention,
    ConvNet,
    FullyConnected,
    ResNet,
    Transformer,
    merge,
    output_function,
)
from ntk_core.traced import _program as programs
from ntk_core.traced import kernels_of, program_of_network, views_of
from tests.cases import (
    ACTIVATIONS,
    ARCHITECTURES,
    FAST_COMPILE,
    OUTPUTS,
    SEQUENCES,
    SETTINGS_IN_TIERS,
    TRAINED,
    VARIANTS,
    inputs,
    random_params,
)
from tests.compiler_flags import AS_FOR_PEOPLE
from tests.plain_derivatives import plain_kernel

compiled = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
SLOW_SEQUENCES = [pytest.param(case, marks=pytest.mark.slow) for case in SEQUENCES]
CASES = [*SETTINGS_IN_TIERS, *ACTIVATIONS, *VARIANTS, *SLOW_SEQUENCES]


def _oracle(case, params, x):
    trained, fixed = case.net.partition(params)
    return generic_ntk(lambda w, x: case.net.apply(merge(w, fixed), x), trained, x)


@pytest.mark.long_after(33)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel_is_that_of_explicit_jacobians(case, x64):
    params, x = random_params(case), inputs(case, 3)
    kernel, oracle = compiled(lambda w: (empirical_ntk(case.net, w, x), _oracle(case, w, x)))(
        params
    )
    scale = np.abs(oracle).max()
    constant = kernel.shape[2] == 1 and case.net.output == "softmax"
    least = 1e-12 if constant else 0
    assert (scale < 1e-12) == constant
    # Float64 sums of at most a few hundred products: 1e-10 leaves five digits for the
    # order of summation.
    np.testing.assert_allclose(kernel, oracle, rtol=1e-10, atol=max(1e-10 * scale, least))
    matrix = np.asarray(kernel).transpose(0, 2, 1, 3).reshape([3 * kernel.shape[2]] * 2)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=max(1e-12 * scale, least))
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] >= -max(
        1e-12 * scale * len(matrix), least
    )


@pytest.mark.parametrize("case", ARCHITECTURES[1::7], ids=lambda case: case.name)
def test_kernel_compiled_as_for_users_equals_jacobians(case, x64):
    params, x = random_params(case), inputs(case, 3)
    kernel = jax.jit(lambda w: empirical_ntk(case.net, w, x), compiler_options=AS_FOR_PEOPLE)(
        params
    )
    oracle = compiled(lambda w: _oracle(case, w, x))(params)
    np.testing.assert_allclose(kernel, oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_function_is_a_map_after_the_layers(output, x64):
    case = ARCHITECTURES[1]
    params, x = random_params(case), inputs(case, 3)

    @compiled
    def both(params):
        before, f, _ = pre_output_ntk(case.net, params, x)
        slopes = jax.vmap(jax.jacfwd(output_function(output)))(f)
        return empirical_ntk(replace(case.net, output=output), params, x), before, slopes

    kernel, before, slopes = both(params)
    expected = np.einsum("iac,ijcd,jbd->ijab", slopes, before, slopes)
    np.testing.assert_allclose(kernel, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(
    "case", [*ARCHITECTURES[::4], *VARIANTS[::3], SLOW_SEQUENCES[0]], ids=lambda case: case.name
)
def test_a_trained_subset_keeps_the_parts_of_its_layers(case, x64):
    params, x = random_params(case), inputs(case, 3)
    has_subsets = "trained" in case.net.__dataclass_fields__
    nets = (
        {each: replace(case.net, trained=each) for each in TRAINED}
        if has_subsets
        else {"all": case.net}
    )

    @compiled
    def kernels(params):
        parts = empirical_ntk(nets["all"], params, x, per_layer=True)
        return parts, {subset: empirical_ntk(net, params, x) for subset, net in nets.items()}

    parts, found = kernels(params)
    for subset, net in nets.items():
        names = [name for name, layer in net.layers.items() if layer.trainable]
        assert subset != "all" or set(parts) == set(names)
        expected = sum(np.asarray(parts[name]) for name in names)
        np.testing.assert_allclose(
            found[subset], expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max()
        )


LIMITED = [case for case in ARCHITECTURES if case.name in ("deep", "dropped", "conv-2d")]


@pytest.mark.parametrize(("case", "with_x2"), list(zip(LIMITED, (False, True, True), strict=True)))
def test_kernel_in_blocks_is_the_whole_kernel(case, with_x2, x64):
    params, x1 = random_params(case), inputs(case, 5)
    x2 = inputs(case, 3, seed=2) if with_x2 else None
    two_rows = 2 * 4 * program_of_network(case.net, params, x1[0]).row_bytes  # of each side
    whole = empirical_ntk(case.net, params, x1, x2, per_layer=True)
    for limit in (two_rows, 1):  # at least one row
        parts = empirical_ntk(case.net, params, x1, x2, per_layer=True, memory_limit=limit)
        for name, part in parts.items():
            np.testing.assert_allclose(part, whole[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("net", "input_shape"),
    [
        (
            FullyConnected(width=20_000, depth=1, num_outputs=3, activation="tanh", use_bias=False),
            (10,),
        ),
        (ResNet(width=1000, depth=4, num_outputs=2, activation="gelu", use_bias=False), (10,)),
        (ConvNet(width=32, depth=2, num_outputs=2, activation="tanh", use_bias=False), (8, 8, 3)),
        (Attention(num_heads=16, head_dim=4, num_outputs=2), (64, 8)),
        (Transformer(num_heads=4, head_dim=16, num_outputs=2, num_blocks=1), (16, 8)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_memory_estimate_of_views_covers_the_compiler(net, input_shape):
    params = jax.eval_shape(lambda key: net.init(key, input_shape), jax.random.key(0))
    rows = 16
    x = jax.ShapeDtypeStruct((rows, *input_shape), jnp.float32)
    program = program_of_network(net, params, jax.ShapeDtypeStruct(input_shape, jnp.float32))
    memory = views_of.lower(program, jax.tree.leaves(params), x).compile().memory_analysis()
    # The result and one copy of the largest weights may be in memory for any number of rows.
    used = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert used <= 4 * rows * program.row_bytes
    assert used >= 0.2 * rows * program.row_bytes  # without a gross overestimate


def test_contraction_needs_no_array_as_large_as_the_weights():
    # P = 1.6e7, 64 MB.
    net = FullyConnected(width=4000, depth=2, num_outputs=2, activation="tanh", use_bias=False)
    params = jax.eval_shape(lambda key: net.init(key, (10,)), jax.random.key(0))
    program = program_of_network(net, params, jax.ShapeDtypeStruct((10,), jnp.float32))
    leaves = jax.tree.leaves(params)
    views = jax.eval_shape(
        partial(views_of, program), leaves, jax.ShapeDtypeStruct((8, 10), jnp.float32)
    )
    memory = kernels_of.lower(program, False, leaves, views, None).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4e6


PARAMS = {
    "a": np.linspace(-1, 1, 12).reshape(3, 4),
    "b": np.linspace(0, 1, 8).reshape(4, 2),
    "step": np.array(3),
}
X = np.random.default_rng(0).standard_normal((5, 3))


def apply(params, x):
    """A function without layers, since no parameter is a direct factor."""
    return jnp.tanh(x @ jnp.sin(params["a"])) @ jnp.sin(params["b"]) + params["step"]


@pytest.mark.parametrize("x2", [None, X[:2] + 1], ids=["x1", "x2"])
@pytest.mark.parametrize("by_products", [True, False])
def test_both_routes_give_the_kernel_of_explicit_jacobians(by_products, x2, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: by_products)
    expected = plain_kernel(apply, PARAMS, X, x2)
    limit = 2 * 2 * 2 * 20 * 8  # two rows of two outputs of 20 float64 numbers, on both sides
    for function, most in ((apply, None), (functools.partial(apply), None), (Unhashable(), limit)):
        np.testing.assert_allclose(
            empirical_ntk(function, PARAMS, X, x2, memory_limit=most), expected, rtol=1e-12
        )


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, params, x):
        return apply(params, x)


@pytest.mark.parametrize("by_products", [True, False])
def test_rules_for_reverse_mode_alone_suffice(by_products, x64, monkeypatch):
    monkeypatch.setattr(routes, "vector_products_are_cheaper", lambda *args: by_products)
    bent = jax.custom_vjp(jnp.sin)
    bent.defvjp(lambda a: (jnp.sin(a), a), lambda a, cotangent: (cotangent * jnp.cos(a),))

    def with_rule(params, x):
        return bent(apply(params, bent(x)))

    expected = plain_kernel(with_rule, PARAMS, X)
    np.testing.assert_allclose(
        empirical_ntk(with_rule, PARAMS, X), expected, rtol=1e-11, atol=1e-14
    )
    products = KernelOperator(with_rule, PARAMS, X).product(np.ones((5, 2)))
    np.testing.assert_allclose(products, expected.sum((1, 3)), rtol=1e-10)


@pytest.mark.parametrize("as_function", [False, True])
def test_diagonal_and_trace_are_parts_of_the_kernel(as_function, x64):
    net = FullyConnected(width=7, depth=2, num_outputs=3, activation="tanh")
    params, x = (
        net.init(jax.random.key(0), 3),
        jnp.asarray(np.tile(X, (5, 1)) * np.linspace(0.1, 2, 25)[:, None]),
    )
    model = (lambda w, x: net.apply(w, x)) if as_function else net
    jacobian = jax.jit(jax.jacobian(lambda w: net.apply(w, x)))(params)
    flat = jnp.concatenate([leaf.reshape(25, 3, -1) for leaf in jax.tree.leaves(jacobian)], axis=2)
    np.testing.assert_allclose(
        diagonal_ntk(model, params, x), jnp.einsum("iap,ibp->iab", flat, flat), rtol=1e-10
    )
    traced = trace_outputs(empirical_ntk(model, params, x))
    np.testing.assert_allclose(traced, jnp.einsum("iap,jap->ij", flat, flat) / 3, rtol=1e-10)
    np.testing.assert_allclose(
        empirical_ntk(model, params, x, trace_outputs=True), traced, rtol=1e-12
    )


@pytest.mark.parametrize("second", [None, 7], ids=["same rows", "other rows"])
def test_kernel_in_blocks_equals_jacobians(second, monkeypatch, x64):
    """Blocks of two rows with three outputs, the last of which repeats one of 13 rows."""
    monkeypatch.setattr(programs, "BLOCK_ROWS", 6)

    def apply(w, x):
        hidden = jnp.tanh(x @ w["first"] + w["bias"])
        # The squared scale is no layer, and has Jacobians.
        return w["scale"] ** 2 * (jnp.sin(hidden @ w["second"]) @ w["last"])

    rng = np.random.default_rng(0)
    shapes = {"first": (4, 5), "bias": (5,), "second": (5, 6), "last": (6, 3), "scale": (3,)}
    params = {name: jnp.asarray(rng.standard_normal(shape)) for name, shape in shapes.items()}
    x1 = jnp.asarray(rng.standard_normal((13, 4)))
    x2 = None if second is None else jnp.asarray(rng.standard_normal((second, 4)))
    kernel = empirical_ntk(apply, params, x1, x2)
    oracle = plain_kernel(apply, params, x1, x1 if x2 is None else x2)
    np.testing.assert_allclose(kernel, oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())
    if x2 is None:
        mirrored = np.transpose(kernel, (1, 0, 3, 2))
        np.testing.assert_allclose(kernel, mirrored, rtol=0, atol=1e-12 * np.abs(oracle).max())
