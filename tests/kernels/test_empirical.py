"""The empirical tangent kernel of all shared cases against explicit Jacobians in float64."""

import functools
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import empirical_ntk, generic_ntk
from ntk_core.networks.architectures import Attention, ConvNet, FullyConnected, ResNet, Transformer, merge
from ntk_core.traced import kernels_of, program_of_network, views_of
from tests.cases import ARCHITECTURES, CASES, FAST_COMPILE, SEQUENCES, inputs, random_params
from tests.compiler_flags import AS_FOR_PEOPLE

BY_NAME = {case.name: case for case in (*CASES, *SEQUENCES)}
SEQUENCES_ARE_SLOW = [pytest.param(case.name, marks=pytest.mark.slow) for case in SEQUENCES]
# Most architectures are slow here; tests/kernels/test_every_setting.py has each under some settings.
NAMES = [
    *(
        pytest.param(case.name, marks=pytest.mark.slow if case in ARCHITECTURES and k % 4 else [])
        for k, case in enumerate(CASES)
    ),
    *SEQUENCES_ARE_SLOW,
]


@functools.cache
def _kernels(name):
    """(structured kernel, kernel of explicit Jacobians) of a case, compiled together."""
    case = BY_NAME[name]
    trained, fixed = case.net.partition(random_params(case))

    def both(trained, fixed, x):
        oracle = generic_ntk(lambda w, x: case.net.apply(merge(w, fixed), x), trained, x)
        return empirical_ntk(case.net, merge(trained, fixed), x), oracle

    compiled = jax.jit(both, compiler_options=FAST_COMPILE)
    return jax.tree.map(np.asarray, compiled(trained, fixed, inputs(case, 3)))


@pytest.mark.parametrize("name", NAMES)
def test_structured_kernel_is_that_of_explicit_jacobians(name, x64):
    structured, oracle = _kernels(name)
    # Float64 sums of at most a few hundred products: 1e-10 leaves five digits for the order of summation.
    np.testing.assert_allclose(structured, oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())


@pytest.mark.parametrize("name", [case.name for case in ARCHITECTURES[::4]])
def test_compiled_kernel_equals_explicit_jacobians(name, x64):
    _, oracle = _kernels(name)
    case = BY_NAME[name]
    structured = jax.jit(lambda w: empirical_ntk(case.net, w, inputs(case, 3)), compiler_options=AS_FOR_PEOPLE)
    np.testing.assert_allclose(structured(random_params(case)), oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())


@pytest.mark.parametrize("name", NAMES)
def test_kernel_is_symmetric_and_positive_semidefinite(name, x64):
    kernel, _ = _kernels(name)
    n, _, num_outputs, _ = kernel.shape
    matrix = kernel.transpose(0, 2, 1, 3).reshape(n * num_outputs, n * num_outputs)
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-12 * scale)
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] >= -1e-12 * scale * len(matrix)


@pytest.mark.parametrize("name", [*(case.name for case in CASES[::6]), *SEQUENCES_ARE_SLOW])
def test_kernels_of_the_trained_layers_sum_to_the_whole(name, x64):
    case = BY_NAME[name]
    by_layer = jax.jit(lambda p, x: empirical_ntk(case.net, p, x, per_layer=True), compiler_options=FAST_COMPILE)
    parts = by_layer(random_params(case), inputs(case, 3))
    assert set(parts) == {name for name, layer in case.net.layers.items() if layer.trainable}
    kernel, _ = _kernels(name)
    np.testing.assert_allclose(sum(parts.values()), kernel, rtol=1e-12, atol=1e-12 * np.abs(kernel).max())


@pytest.mark.parametrize("case", ARCHITECTURES[::3], ids=lambda case: case.name)
def test_kernel_of_a_model_linear_in_its_weights_is_constant(case, x64):
    net = replace(case.net, trained="last")  # all layers below are fixed features
    trained, fixed = net.partition(random_params(case, seed=0))
    far, _ = net.partition(random_params(case, seed=7))
    kernel = jax.jit(lambda w: empirical_ntk(net, merge(w, fixed), inputs(case, 3)), compiler_options=FAST_COMPILE)
    np.testing.assert_allclose(kernel(far), kernel(trained), rtol=1e-13)


def test_nonlinear_model_has_a_moving_kernel(x64):
    case = ARCHITECTURES[0]
    before, after = (empirical_ntk(case.net, random_params(case, seed), inputs(case, 3)) for seed in (0, 7))
    assert np.linalg.norm(after - before) > 0.1 * np.linalg.norm(before)


LIMITED = [case for case in ARCHITECTURES if case.name in ("deep", "dropped", "conv-2d")]


@pytest.mark.parametrize("with_x2", [False, True])
@pytest.mark.parametrize("case", LIMITED, ids=lambda case: case.name)
def test_kernel_in_blocks_is_the_whole_kernel(case, with_x2, x64):
    params, x1 = random_params(case), inputs(case, 5)
    x2 = inputs(case, 3, seed=2) if with_x2 else None
    limit = 2 * 4 * program_of_network(case.net, params, x1[0]).row_bytes()  # two rows of each side at a time
    whole = empirical_ntk(case.net, params, x1, x2, per_layer=True)
    parts = empirical_ntk(case.net, params, x1, x2, per_layer=True, memory_limit=limit)
    for name, part in parts.items():
        np.testing.assert_allclose(part, whole[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("net", "input_shape"),
    [
        (FullyConnected(width=20_000, depth=1, num_outputs=3, activation="tanh", use_bias=False), (10,)),
        (FullyConnected(width=2000, depth=3, num_outputs=3, activation="tanh", use_bias=False), (10,)),
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
    compiled = views_of.lower(program, jax.tree.leaves(params), x).compile()
    memory = compiled.memory_analysis()
    # The result and one copy of the largest weights may be in memory for any number of rows.
    used = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert used <= 4 * rows * program.row_bytes()
    assert used >= 0.2 * rows * program.row_bytes()  # without a gross overestimate


def test_one_row_of_each_side_is_the_least(x64):
    case = ARCHITECTURES[0]
    params, x = random_params(case), inputs(case, 3)
    kernel = empirical_ntk(case.net, params, x, memory_limit=1)
    np.testing.assert_allclose(kernel, empirical_ntk(case.net, params, x), rtol=1e-12)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_memory_limit_must_be_positive(limit):
    case = ARCHITECTURES[0]
    with pytest.raises(InvalidInput, match="memory_limit"):
        empirical_ntk(case.net, random_params(case), inputs(case, 2), memory_limit=limit)


def test_inputs_of_another_size_than_the_parameters_are_refused():
    case = ARCHITECTURES[0]
    with pytest.raises(InvalidInput, match="input_shape: 7 input features"):
        empirical_ntk(case.net, random_params(case), np.ones((2, 7), np.float32))


def test_contraction_needs_no_array_as_large_as_the_weights():
    net = FullyConnected(width=4000, depth=2, num_outputs=2, activation="tanh", use_bias=False)  # p = 1.6e7, 64 MB
    params = jax.eval_shape(lambda key: net.init(key, (10,)), jax.random.key(0))
    program = program_of_network(net, params, jax.ShapeDtypeStruct((10,), jnp.float32))
    leaves = jax.tree.leaves(params)
    views = jax.eval_shape(partial(views_of, program), leaves, jax.ShapeDtypeStruct((8, 10), jnp.float32))
    memory = kernels_of.lower(program, False, leaves, views, None).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4e6
