"""Each architecture and its pre-activations against formulas in NumPy.

Counts against its settings.
"""

import functools
from collections.abc import Iterable

import jax
import numpy as np
import pytest

from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import (
    Bottleneck,
    ConvNet,
    DAGNetwork,
    DenseNet,
    Edge,
    FullyConnected,
    Group,
    PreActivations,
    ResNet,
    Subtracted,
    merge,
    subtract_initial_output,
)
from ntk_core.networks.architectures._network import _layer_keys
from tests.cases import (
    ARCHITECTURES,
    FAST_COMPILE,
    MIRRORED,
    SUBTRACTED,
    Case,
    inputs,
    random_params,
)
from tests.compiler_flags import USUAL_EMITTERS
from tests.plain_derivatives import full_hessian, largest, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

fast = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
# Two halves cancel exactly only with XLA's usual emitters; without optimizations 1e-8
# remains in float32.
alike = functools.partial(jax.jit, compiler_options={**FAST_COMPILE, **USUAL_EMITTERS})


def _drawn(net, input_shape, seed=0):
    """Initial parameters of the network."""
    return fast(lambda key: net.init(key, input_shape))(jax.random.key(seed))


def _check(net, input_shape, formula):
    case = Case("", net, input_shape)
    params, x = random_params(case), inputs(case, 3)
    weights = {name: layer["weight"] for name, layer in params.items()}
    np.testing.assert_allclose(
        fast(net.apply)(params, x), formula(weights, x), rtol=1e-12, atol=1e-14
    )


def test_bottleneck_network_of_liu_eq_31(x64):
    def formula(w, x):
        m = 6
        alpha = 0.5 * (x @ w["hidden1"]) ** 2  # (n, m)
        narrow = alpha @ w["hidden2"] / np.sqrt(m)  # (n, 1)
        return (0.5 * (narrow @ w["hidden3"]) ** 2) @ w["output"] / np.sqrt(m)

    net = Bottleneck(
        width=6,
        activation="quadratic",
        bottleneck_width=1,
        bottleneck_activation="identity",
        use_bias=False,
    )
    _check(net, (1,), formula)


def test_residual_network_skips_every_two_layers(x64):
    def formula(w, x):
        alpha = np.tanh(x @ w["hidden1"] / 2)
        for first, second in (("hidden2", "hidden3"), ("hidden4", "hidden5")):
            alpha = np.tanh(np.tanh(alpha @ w[first] / 3) @ w[second] / 3) + alpha
        return alpha @ w["output"] / 3

    _check(ResNet(width=9, depth=5, activation="tanh", skip_every=2, use_bias=False), (4,), formula)


def test_densely_connected_network_sees_all_layers_below(x64):
    def formula(w, x):
        seen = x
        for name in ("hidden1", "hidden2"):
            seen = np.concatenate([seen, np.tanh(seen @ w[name] / np.sqrt(seen.shape[1]))], axis=1)
        return seen @ w["output"] / np.sqrt(seen.shape[1])

    _check(DenseNet(width=(5, 3), depth=2, activation="tanh", use_bias=False), (4,), formula)


def test_dag_network_follows_its_edges(x64):
    def formula(w, x):
        a = np.tanh(x @ w["a"] / 2)
        b = 0.5 * (x @ w["b"] / 2) ** 2
        c = np.tanh(np.concatenate([a, b], axis=1) @ w["c"] / 3)
        return np.concatenate([b, c], axis=1) @ w["output"] / np.sqrt(6)

    edges = (
        ("input", "a"),
        ("input", "b"),
        ("a", "c"),
        ("b", "c"),
        ("b", "output"),
        ("c", "output"),
    )
    net = DAGNetwork(
        width=5,
        groups=(Group("c", 2), Group("a"), Group("b", 4, "quadratic")),
        edges=tuple(Edge(*edge) for edge in edges),
        activation="tanh",
        use_bias=False,
    )
    assert net.depths == {"a": 1, "b": 1, "c": 2, "output": 3}
    _check(net, (4,), formula)


def test_only_circular_convolutions_are_invariant_to_shifts(x64):
    for padding in ("circular", "zero"):
        net = ConvNet(
            4, 2, activation="tanh", padding=padding, readout="global-average", use_bias=False
        )
        case = Case("", net, (4, 4, 2))
        params, x = random_params(case), inputs(case, 2)
        before, after = (
            fast(net.apply)(params, each) for each in (x, np.roll(x, (1, 2), axis=(1, 2)))
        )
        if padding == "circular":
            np.testing.assert_allclose(after, before, rtol=1e-12)
        else:
            assert np.abs(after - before).min() > 1e-3


def test_pooling_averages_windows(x64):
    net = ConvNet(width=2, activation="identity", kernel_size=1, pool_size=2, use_bias=False)

    def formula(w, x):
        pooled = x.reshape(3, 2, 2, 2, 2, 1).mean(axis=(2, 4))
        features = pooled @ w["hidden1"][0, 0]
        return np.moveaxis(features, -1, 1).reshape(3, 8) @ w["output"] / np.sqrt(8)

    _check(net, (4, 4, 1), formula)


@pytest.mark.parametrize(
    ("net", "input_shape", "width"),
    [
        (FullyConnected(width=(7, 5), depth=2, use_bias=False), (3,), 5),
        (Bottleneck(width=9, bottleneck_width=2, use_bias=False), (3,), 2),
        (ConvNet(width=6, use_bias=False), (4, 4, 1), 6),
        (DenseNet(width=10, depth=2, drop_probability=0.5, use_bias=False), (5,), 8),
        (DAGNetwork(width=10, use_bias=False), (4,), 14),
    ],
    ids=lambda value: type(value).__name__,
)
def test_width_is_the_smallest_layer_or_in_degree(net, input_shape, width):
    assert net.min_width(input_shape) == width


def test_drop_probabilities_of_a_graph_hold_edge_by_edge():
    edges = (Edge("input", "a"), Edge("input", "b"), Edge("a", "b", 0.9), Edge("b", "output"))
    net = DAGNetwork(width=100, groups=(Group("a"), Group("b")), edges=edges, use_bias=False)
    mask = np.asarray(_drawn(net, (30,))["b"]["mask"])
    assert mask[:30].all()
    assert mask[30:].mean() == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / mask[30:].size))


@pytest.mark.parametrize(("width", "use_bias"), [(2, True), (130, False)])
def test_symmetric_initialization_starts_at_exactly_zero(width, use_bias):
    net = FullyConnected(
        width=width, num_outputs=3, activation="tanh", symmetric=True, use_bias=use_bias
    )
    x = inputs(Case("", net, (7,)), 5)
    assert np.all(np.asarray(alike(net.apply)(_drawn(net, (7,)), x)) == 0)


@pytest.mark.parametrize("case", MIRRORED + SUBTRACTED, ids=lambda case: case.name)
def test_networks_with_a_copy_start_at_exactly_zero(case):
    params = _drawn(case.net, case.input_shape)
    assert np.all(np.asarray(alike(case.net.pre_outputs)(params, inputs(case, 3))) == 0)


def test_subtracted_network_equals_its_callable(x64):
    case = ARCHITECTURES[0]
    net = Subtracted(case.net)
    trained, fixed = net.partition(_drawn(net, case.input_shape))
    start = {name: fixed[f"copy.{name}"] for name in case.net.layers}
    x, moved = inputs(case, 3), jax.tree.map(lambda leaf: leaf + 0.1, trained)
    found = fast(net.apply)(merge(moved, fixed), x)
    expected = fast(subtract_initial_output(case.net, start))(
        {name: moved[name] for name in start}, x
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.abs(found).max() > 1e-3


def test_output_signs_are_signs_and_hidden_weights_are_not():
    params = _drawn(
        FullyConnected(width=50, output_signs=True, trained="hidden", use_bias=False), (3,)
    )
    assert set(np.unique(params["output"]["weight"])) == {-1.0, 1.0}
    assert np.unique(params["hidden1"]["weight"]).size > 100


@pytest.mark.long_after(1)
@pytest.mark.slow  # compiles Hessians of every layer
@pytest.mark.parametrize(
    "case", [ARCHITECTURES[k] for k in (1, 10, 13)], ids=lambda case: case.name
)
def test_pre_activations_are_networks_of_the_layers_below(case, x64):
    """Kernels and norms are over the weights below (Zhu, Liu & Belkin 2022, Theorem 3.8)."""
    params, x = random_params(case), inputs(case, 3)
    seen = {}

    def call(layer, a):
        seen[layer] = case.net.layers[layer].apply(params[layer], a)
        return seen[layer]

    case.net.body(call, x)
    for layer in case.net.layers:
        flat = np.asarray(seen[layer]).reshape(3, -1)
        view = PreActivations(case.net, layer, (0, flat.shape[1] - 1))
        np.testing.assert_allclose(view.apply(params, x), flat[:, [0, -1]], rtol=1e-12)
    view = PreActivations(
        case.net, [name for name in case.net.layers if name != "output"][-1], (0, 1)
    )
    below = {layer: params[layer] for layer in view.layers}
    expected = plain_kernel(view.apply, below, x)
    np.testing.assert_allclose(empirical_ntk(view, params, x), expected, rtol=1e-10, atol=1e-12)
    norm = largest(full_hessian(view, below, x[0], 1)[0])
    assert hessian_norm(view, params, x[0], 1).value == pytest.approx(norm, rel=1e-9)


@pytest.mark.parametrize("scaling", ["ntk", "standard"])
def test_weights_are_the_same_inside_of_jit(scaling):
    """Outside of it NumPy scales and shapes the numbers that JAX draws."""
    net = FullyConnected(width=7, depth=2, use_bias=True, parameterization=scaling)
    key = jax.random.key(3)
    outside = net.init(key, (5,))
    inside = jax.jit(net.init, static_argnums=1)(key, (5,))
    assert jax.tree.structure(outside) == jax.tree.structure(inside)
    for one, other in zip(jax.tree.leaves(outside), jax.tree.leaves(inside), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("num_layers", [1, 5, 33])
def test_layer_keys_are_those_of_one_split(num_layers):
    key = jax.random.key(3)

    def numbers(keys: Iterable[jax.Array]) -> list[list[int]]:
        return [np.asarray(jax.random.key_data(each)).tolist() for each in keys]

    expected = numbers(jax.random.split(key, num_layers))
    assert numbers(_layer_keys(key, num_layers)) == expected
    with jax.threefry_partitionable(False):  # the first keys depend on their number
        expected = numbers(jax.random.split(key, num_layers))
        assert numbers(_layer_keys(key, num_layers)) == expected
