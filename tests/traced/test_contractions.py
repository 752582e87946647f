"""Products of long rows in stretches, and of cotangents factored into slopes times weights,
against whole products.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels import empirical_ntk, pre_output_ntk
from ntk_core.networks.architectures import FullyConnected, Mirrored
from ntk_core.traced import _contractions, program_of_network
from ntk_core.traced._contractions import FactoredCotangents, cotangent_products, gram, whole
from tests.cases import ARCHITECTURES, FAST_COMPILE, MIRRORED, VARIANTS, inputs, random_params
from tests.plain_derivatives import plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

READ = {
    "shallow",
    "deep",
    "symmetric",
    "bottleneck",
    "liu-eq31",
    "resnet",
    "resnet-every-two",
    "mixed",
    "composed",
}
FACTORED = [case for case in (*ARCHITECTURES[1::2], *VARIANTS[2:]) if case.net.read_elementwise()]


EPS = np.finfo(np.float64).eps


@pytest.fixture
def _short_stretches(monkeypatch):
    monkeypatch.setattr(_contractions, "STRETCH", 7)


@pytest.mark.slow
@pytest.mark.usefixtures("x64", "_short_stretches")
@pytest.mark.parametrize("length", [13, 14, 31])
@pytest.mark.parametrize("rows", [(5,), (3, 12)])
@pytest.mark.parametrize("same", [True, False])
def test_products_of_long_rows_are_summed_over_their_stretches(length, rows, same):
    left = jax.random.normal(jax.random.key(0), (*rows, length))
    right = left if same else jax.random.normal(jax.random.key(1), (4, length))
    found = jax.jit(lambda a, b: gram(a, a if same else b))(left, right)
    # Sums of at most 50 products of order one, in a different order.
    np.testing.assert_allclose(
        found, np.tensordot(left, right, (-1, -1)), rtol=0, atol=200 * EPS * 50
    )


@pytest.mark.slow
@pytest.mark.usefixtures("x64", "_short_stretches")
def test_long_products_have_derivatives_and_a_batch_of_seeds():
    a = jax.random.normal(jax.random.key(0), (3, 40, 30))
    np.testing.assert_allclose(
        jax.vmap(lambda a: gram(a, a))(a), a @ a.transpose(0, 2, 1), rtol=0, atol=1e4 * EPS
    )
    gradient = jax.grad(lambda a: jnp.sum(gram(a, a) ** 2))(a[0])
    # Entries of order 10³.
    np.testing.assert_allclose(gradient, 4 * a[0] @ a[0].T @ a[0], rtol=0, atol=1e5 * EPS)


def test_factorable_networks_are_recognized():
    assert {case.name for case in ARCHITECTURES if case.net.read_elementwise()} == READ
    assert MIRRORED[0].net.read_elementwise() == {
        "hidden3": "output",
        "copy.hidden3": "copy.output",
    }


def _moved_one_layer_at_a_time(net, params, x, name):
    """Oracle: ∂f_c(x_i)/∂z_j of one layer, for every pair of inputs, by forward differentiation."""
    shape = net.layers[name].output_shape(net.layer_input_shapes(x.shape[1:])[name])

    def outputs(tap):
        def call(each, a):
            z = net.layers[each].apply(params[each], a)
            return z + tap if each == name else z

        return net.body(call, x)

    return jax.jacfwd(outputs)(jnp.zeros((len(x), *shape)))


@pytest.mark.slow  # compiles every kind of use
@pytest.mark.parametrize("case", FACTORED, ids=lambda case: case.name)
def test_slopes_times_weights_are_the_cotangents(case, x64):
    params, x = random_params(case), inputs(case, 3)
    program = program_of_network(case.net, params, x[0])
    views = jax.jit(program.views, compiler_options=FAST_COMPILE)(program.leaves(params), x)
    factored = {
        name for name, each in views.cotangents.items() if isinstance(each, FactoredCotangents)
    }
    layers = {layer.uses[0].name: layer.name.rpartition(".")[0] for layer in program.layers}
    read = {name for name in case.net.read_elementwise() if case.net.layers[name].trainable}
    assert read == {layers[name] for name in factored}
    for name in factored:
        oracle = jax.jit(
            lambda p, name=name: _moved_one_layer_at_a_time(case.net, p, x, layers[name])
        )(params)
        apart = oracle[np.arange(3), :, np.arange(3)]
        assert not np.any(np.delete(oracle.swapaxes(1, 2).reshape(9, -1), [0, 4, 8], axis=0))
        # Sums of at most ten products in float64.
        np.testing.assert_allclose(
            whole(views.cotangents[name]), apart.swapaxes(0, 1), rtol=1e-12, atol=1e-13
        )


def _factored(seed, num_inputs, num_outputs, length):
    rng = np.random.default_rng(seed)
    slopes, weights = (
        rng.standard_normal((num_inputs, length)),
        rng.standard_normal((num_outputs, length)),
    )
    return FactoredCotangents(jnp.asarray(slopes), jnp.asarray(weights))


@pytest.mark.usefixtures("x64", "_short_stretches")
@pytest.mark.parametrize("stretches", [True, False])
@pytest.mark.parametrize(
    "num_outputs", [1, 3, 9]
)  # nine outputs have more pairs than there are inputs
@pytest.mark.parametrize("same", [True, False])
def test_products_of_factored_cotangents_are_those_of_whole_ones(
    monkeypatch, same, num_outputs, stretches
):
    monkeypatch.setattr(_contractions, "in_stretches", lambda: stretches)
    left = _factored(0, 16, num_outputs, 31)
    right = (
        left if same else FactoredCotangents(_factored(1, 4, num_outputs, 31).slopes, left.weights)
    )
    found = jax.jit(lambda a, b: cotangent_products(a, a if same else b))(left, right)
    expected = np.einsum("cik,djk->cidj", whole(left), whole(right))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


WIDE = FullyConnected(
    width=30, depth=1, num_outputs=3, activation="gelu", output="softmax", use_bias=True
)
DEEP = FullyConnected(width=(5, 30), depth=2, num_outputs=3, activation="tanh", use_bias=True)


@pytest.mark.slow  # compiles its oracle
@pytest.mark.usefixtures("x64", "_short_stretches")
@pytest.mark.parametrize(("net", "with_x2"), [(WIDE, False), (DEEP, True), (Mirrored(DEEP), False)])
def test_kernels_of_class_pairs_in_blocks_equal_jacobians(net, with_x2):
    params = net.init(jax.random.key(0), (4,))
    x1, x2 = (
        jax.random.normal(jax.random.key(1), (8, 4)),
        jax.random.normal(jax.random.key(2), (3, 4)),
    )
    sides = (x1, x2) if with_x2 else (x1,)
    found = jax.jit(lambda p: empirical_ntk(net, p, *sides), compiler_options=FAST_COMPILE)(params)
    oracle = plain_kernel(net.apply, params, *sides)
    np.testing.assert_allclose(found, oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())


def test_inputs_may_be_of_another_precision_than_weights(x64):
    params, x = (
        WIDE.init(jax.random.key(0), (4,)),
        jax.random.normal(jax.random.key(1), (3, 4), jnp.float32),
    )
    found = empirical_ntk(WIDE, params, x)
    oracle = plain_kernel(WIDE.apply, params, x)
    # Sums of float32 numbers.
    np.testing.assert_allclose(found, oracle, rtol=0, atol=1e-5 * np.abs(oracle).max())


@pytest.mark.usefixtures("x64", "_short_stretches")
def test_seeds_at_once_have_the_kernels_of_each():
    x = jax.random.normal(jax.random.key(1), (8, 4))
    several = jax.vmap(lambda key: WIDE.init(key, (4,)))(jax.random.split(jax.random.key(0), 2))
    found = jax.jit(
        jax.vmap(lambda p: pre_output_ntk(WIDE, p, x)[0]), compiler_options=FAST_COMPILE
    )(several)
    for seed, kernel in enumerate(found):
        net, params = (
            WIDE.with_output("linear"),
            jax.tree.map(lambda leaf, seed=seed: leaf[seed], several),
        )
        oracle = plain_kernel(net.apply, params, x)
        np.testing.assert_allclose(kernel, oracle, rtol=1e-10, atol=1e-10 * np.abs(oracle).max())


def test_hidden_cotangents_are_never_in_memory_together():
    net, rows = FullyConnected(width=60_000, depth=1, num_outputs=3, use_bias=False), 40
    params = jax.eval_shape(lambda key: net.init(key, (10,)), jax.random.key(0))
    x = jax.ShapeDtypeStruct((rows, 10), jnp.float32)
    compiled = jax.jit(lambda p, x: empirical_ntk(net, p, x)).lower(params, x).compile()
    if jax.default_backend() == "cpu":
        # Pre-activations, activations and slopes fit; three cotangents would take as much again.
        assert compiled.memory_analysis().temp_size_in_bytes < 4 * rows * 60_000 * 3.2
