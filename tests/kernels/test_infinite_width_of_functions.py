"""Infinite width of functions, read from their programs.

Against closed formulas, NumPy recursions and wide draws.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import InvalidInput, empirical_ntk, infinite_width, infinite_width_ntk
from ntk_core.kernels import _infinite_width as limits
from ntk_core.kernels import infinite_heads_ntk, infinite_width_nngp
from ntk_core.kernels._limit_maps import Picked
from ntk_core.networks.architectures import (
    Attention,
    ConvNet,
    FullyConnected,
    MixedNet,
    ResNet,
)
from tests.kernels.limit_oracle import limit_of

X = np.random.default_rng(0).standard_normal((3, 5))
IMAGES = np.random.default_rng(0).standard_normal((2, 4, 4, 2))
ONES = {"*": 1.0}
RNG = np.random.default_rng(1)


def drawn(**shapes: tuple[int, ...]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(RNG.standard_normal(shape)) for name, shape in shapes.items()}


def arc_cosine(cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[σ(u) σ(v)] and E[σ'(u) σ'(v)] of a ReLU (Cho & Saul 2009), in NumPy."""
    scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    angle = np.arccos(np.clip(cov / scale, -1, 1))
    values = scale * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    return values, (np.pi - angle) / (2 * np.pi)


NETWORKS: list[Any] = [
    (FullyConnected(width=8, depth=2, activation="relu", use_bias=(True, False)), X),
    (ResNet(width=8, depth=3, activation="relu", skip_every=2, use_bias=True), X),
    (ConvNet(width=8, depth=1, activation="relu", use_bias=True), IMAGES[:, :3, :3]),
    (FullyConnected(width=8, depth=2, activation="tanh", use_bias=True), X),
    (FullyConnected(width=8, depth=2, activation="gelu", use_bias=True), X),
    (FullyConnected(width=8, depth=2, activation="selu", use_bias=True), X),
    (ResNet(width=8, depth=2, activation="swish", use_bias=True), X),
    (
        ConvNet(width=8, depth=2, activation="relu", readout="global-average", padding="zero"),
        IMAGES,
    ),
    (MixedNet(width=8, depth=2, activation="relu", pool_size=2, padding="zero"), IMAGES),
    (ConvNet(width=8, depth=2, activation="relu", readout="global-average"), IMAGES),
]


@pytest.mark.long_after(3)
@pytest.mark.first_cases(2)  # the others compile quadratures or convolutions
@pytest.mark.parametrize(("net", "x"), NETWORKS, ids=lambda value: getattr(value, "activation", ""))
def test_networks_read_from_programs_have_their_kernels(net, x, x64):
    """Against the recursions of their blocks, as networks and as functions."""
    ntk, nngp = limit_of(net, jnp.asarray(x), jnp.asarray(x))
    np.testing.assert_allclose(infinite_width_ntk(net, x), ntk, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(infinite_width_nngp(net, x), nngp, rtol=1e-12, atol=1e-12)
    params = net.init(jax.random.key(0), x.shape[1:])
    found = infinite_width(lambda params, x: net.apply(params, x), params, x, weight_std=ONES)
    np.testing.assert_allclose(found.ntk, ntk, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.nngp, nngp, rtol=1e-12, atol=1e-12)


@pytest.mark.slow  # compiles quadratures
def test_branches_of_an_odd_and_an_even_function_add_means(x64):
    """Blocks of several skips share no pre-activation, so cross terms are products of means."""
    for depth, skip_every in ((7, 2), (6, 1)):
        net = ResNet(width=8, depth=depth, activation="softplus", skip_every=skip_every)
        expected = limit_of(net, jnp.asarray(X[:2]), jnp.asarray(X))
        np.testing.assert_allclose(infinite_width_ntk(net, X[:2], X), expected[0], rtol=1e-12)
        np.testing.assert_allclose(infinite_width_nngp(net, X[:2], X), expected[1], rtol=1e-12)


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_flat_patches_keep_equal_positions(padding, x64):
    """Padding and patches move entries without adding them, so no pair of positions is needed."""
    net = ConvNet(width=8, depth=2, activation="relu", padding=padding)
    limit = limits._limit_program(net, IMAGES.shape[1:])
    assert not limit.needs(jnp.asarray(IMAGES), jnp.asarray(IMAGES)).all_pairs
    expected, _ = limit_of(net, jnp.asarray(IMAGES), jnp.asarray(IMAGES))
    np.testing.assert_allclose(infinite_width_ntk(net, IMAGES), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_maps_of_positions_are_look_ups_of_entries(seed):
    """Maps of each axis, and of mixed axes, against one look-up of single entries."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 5, 2).tolist())
    of_axes = [rng.integers(0, size + 1, rng.integers(1, 7)) for size in sizes]
    if seed % 2:  # circular padding: runs of neighbors
        of_axes = [np.r_[size, np.arange(size) + 1, 0, 1] for size in sizes]
    rows, columns = np.meshgrid(*of_axes, indexing="ij")
    numbers = np.where((rows > 0) & (columns > 0), (rows - 1) * sizes[1] + columns, 0)
    if seed % 4 > 1:
        numbers = rng.permuted(numbers, axis=1)
    array = rng.standard_normal((2, *sizes, 3))
    flat = np.concatenate([np.zeros((2, 1, 3)), array.reshape(2, -1, 3)], axis=1)
    of_positions = Picked(lambda entries, after: numbers, sizes)
    for given in (array, jnp.asarray(array)):
        found = of_positions(given, 1)
        assert isinstance(found, np.ndarray) == (given is array)  # which compiles nothing
        np.testing.assert_array_equal(found, flat[:, numbers].astype(found.dtype))
    is_by_axes = of_positions.along_axes is not None
    assert is_by_axes or seed % 4 > 1


def test_sums_of_neighbors_need_all_pairs_of_positions(x64):
    """A sum before a concatenation mixes positions: as before a weight, so after it."""
    params = drawn(a=(2, 8), b=(8, 6), v=(24, 1))

    def neighbors(a: Any) -> Any:
        return jnp.concatenate([a[:, :-1] + a[:, 1:], a[:, :1]], axis=1)

    def read(p: Any, z: Any) -> Any:
        return jax.nn.relu(z).reshape(len(z), -1) @ p["v"]

    def before(p: Any, x: Any) -> Any:
        return read(p, neighbors(jax.nn.relu(x @ p["a"])) @ p["b"])

    def after(p: Any, x: Any) -> Any:
        return read(p, neighbors(jax.nn.relu(x @ p["a"]) @ p["b"]))

    x = IMAGES.reshape(2, 16, 2)[:, :4]
    one, two = (infinite_width(each, params, x, weight_std=ONES) for each in (before, after))
    np.testing.assert_allclose(one.ntk, two.ntk, rtol=1e-12)
    np.testing.assert_allclose(one.nngp, two.nngp, rtol=1e-12)


def test_an_opaque_activation_of_a_network_is_one_operation(x64):
    """A loop has no rule, but an activation of our networks is known as a whole."""

    def looped(z: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, a: jnp.tanh(a), z)

    net = FullyConnected(width=8, depth=2, activation=looped)
    plain = replace(net, activation=lambda z: jnp.tanh(jnp.tanh(jnp.tanh(z))))
    expected, _ = limit_of(plain, jnp.asarray(X), jnp.asarray(X))
    np.testing.assert_allclose(infinite_width_ntk(net, X), expected, rtol=1e-10)


def weighted_residual(p: Any, x: Any) -> Any:
    """A pre-activation block with weighted branches, in the standard parameterization."""
    z = x @ p["a"] + 0.5 * p["c"]
    z = 0.6 * z + 0.8 * (jax.nn.relu(z) @ p["b"])
    return jax.nn.relu(z) @ p["v"]


def test_weighted_branches_match_a_recursion(x64):
    width = 16
    params = drawn(a=(5, width), b=(width, width), c=(width,), v=(width, 2))
    std = {"a": 0.7, "b": 0.3, "c": 0.2, "v": 0.1}
    found = infinite_width(weighted_residual, params, X, weight_std=std)
    cov = 0.7**2 * X @ X.T + 0.25 * 0.2**2
    tangent = X @ X.T + 0.25
    values, slopes = arc_cosine(cov)
    inner = width * (0.3**2 * tangent * slopes + values)
    both = 0.36 * cov + 0.64 * width * 0.3**2 * values
    tangent = 0.36 * tangent + 0.64 * inner
    values, slopes = arc_cosine(both)
    expected = width * (0.1**2 * tangent * slopes + values)
    # arccos loses half of the digits at x = x'.
    np.testing.assert_allclose(found.ntk, expected, rtol=1e-7)
    np.testing.assert_allclose(found.nngp, width * 0.1**2 * values, rtol=1e-7)


@pytest.mark.slow  # four kernels of three layers, 4 s
def test_frozen_parameters_contribute_nothing(x64):
    params = drawn(a=(5, 16), b=(16, 16), c=(16,), v=(16, 2))
    parts = [
        infinite_width(weighted_residual, params, X, weight_std=ONES, trainable=name).ntk
        for name in (["a", "c"], ["b", "v"])
    ]
    whole = infinite_width(weighted_residual, params, X, weight_std=ONES)
    np.testing.assert_allclose(parts[0] + parts[1], whole.ntk, rtol=1e-12)
    block = infinite_width(weighted_residual, params, X[:1], X[1:], weight_std=ONES)
    np.testing.assert_allclose(block.ntk, whole.ntk[:1, 1:], rtol=1e-12)


def pooled(p: Any, x: Any) -> Any:
    """Strided convolutions, average pooling and a dense head, as Flax writes them."""
    numbers = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=numbers)
    a = jax.nn.relu(z / 18**0.5 + p["b"])
    ones = (1, 2, 2, 1)
    a = jax.lax.reduce_window(a, 0.0, jax.lax.add, ones, ones, "VALID") / 4
    z = jax.lax.conv_general_dilated(a, p["l"], (1, 1), "SAME", dimension_numbers=numbers)
    a = jax.nn.relu(z / (4 * p["l"].shape[2]) ** 0.5)
    a = a.reshape(len(a), -1)
    return a @ p["v"] / a.shape[1] ** 0.5


def test_skip_around_an_activation_uses_the_mean_slope(x64):
    """E[σ(u) v] = E[σ'(u)] E[u v] for z + σ(z): relu(z) + z is a leaky ReLU of slopes 1 and 2."""
    params = drawn(a=(5, 16), v=(16, 1))

    def apply(p: Any, x: Any) -> Any:
        z = x @ p["a"]
        return (z + jax.nn.relu(z)) @ p["v"] / 4

    def leaky(p: Any, x: Any) -> Any:
        return 2 * jax.nn.leaky_relu(x @ p["a"], 0.5) @ p["v"] / 4

    one, two = (infinite_width(each, params, X, weight_std=ONES) for each in (apply, leaky))
    np.testing.assert_allclose(one.ntk, two.ntk, rtol=1e-12)
    np.testing.assert_allclose(one.nngp, two.nngp, rtol=1e-12)


def dense_positions(p: Any, x: Any) -> Any:
    """The same dense layers at each position, a bias per position, and a mean over positions."""
    a = jnp.tanh(x @ p["a"] / x.shape[-1] ** 0.5 + 0.5 * p["positions"])
    a = jnp.swapaxes(jnp.swapaxes(a, 1, 2), 1, 2)
    a = jax.nn.relu(a @ p["b"] / a.shape[-1] ** 0.5) + 0.5 * a
    return a.mean(axis=1) @ p["v"] / a.shape[-1] ** 0.5


def branches(p: Any, x: Any) -> Any:
    """Concatenations of hidden layers and of the inputs, and a bias over all of them."""
    below = x @ p["a"] / x.shape[-1] ** 0.5
    features = jnp.concatenate([jax.nn.relu(below), x], axis=-1)
    z = features @ p["b"] / features.shape[-1] ** 0.5
    both = jax.nn.relu(jnp.concatenate([0.5 * z, below], axis=-1) + p["c"])
    return both @ p["v"] / both.shape[-1] ** 0.5


def attention(p: Any, x: Any) -> Any:
    """Causal attention with heads of two neurons beside a skip connection, then a dense layer."""
    x = x @ p["e"] / x.shape[-1] ** 0.5
    root = x.shape[-1] ** 0.5
    queries, keys, values = (
        (x @ p[name] / root).reshape(*x.shape[:2], -1, 2) for name in ("q", "k", "w")
    )
    scores = jnp.einsum("nihc,njhc->nhij", queries, keys)
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
    mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), values)
    x = x + mixed.reshape(*x.shape) @ p["o"] / root
    return jax.nn.relu(x).mean(axis=1) @ p["v"] / root


def test_concatenated_branches_match_a_recursion(x64):
    params = drawn(a=(5, 16), b=(21, 8), v=(8, 1))

    def apply(p: Any, x: Any) -> Any:
        both = jnp.concatenate([jax.nn.relu(x @ p["a"]), x], axis=1)
        return jax.nn.relu(both @ p["b"]) @ p["v"]

    found = infinite_width(apply, params, X, weight_std={"a": 0.5, "b": 0.25, "v": 1.0})
    values, slopes = arc_cosine(0.25 * X @ X.T)
    below = 16 * values + X @ X.T  # products of the 21 concatenated features
    tangent = 0.25**2 * 16 * slopes * (X @ X.T) + below
    values, slopes = arc_cosine(0.25**2 * below)
    np.testing.assert_allclose(found.nngp, 8 * values, rtol=1e-7)
    np.testing.assert_allclose(found.ntk, 8 * (slopes * tangent + values), rtol=1e-7)


@pytest.mark.slow
def test_concatenated_branches_are_sums_of_branches(x64):
    """Over positions: one weight of concatenated features is a sum of one weight for each."""
    x = IMAGES.reshape(2, 16, 2)[:, :3]
    params = drawn(a=(2, 6), b=(2, 4), v=(10, 1), one=(6, 1), two=(4, 1))

    def together(p: Any, x: Any) -> Any:
        both = jnp.concatenate([jax.nn.relu(x @ p["a"]), x @ p["b"]], axis=-1)
        return both.mean(axis=1) @ p["v"]

    def apart(p: Any, x: Any) -> Any:
        one = jax.nn.relu(x @ p["a"]).mean(axis=1) @ p["one"]
        return one + (x @ p["b"]).mean(axis=1) @ p["two"]

    first, second = (infinite_width(each, params, x, weight_std=ONES) for each in (together, apart))
    np.testing.assert_allclose(first.ntk, second.ntk, rtol=1e-12)
    np.testing.assert_allclose(first.nngp, second.nngp, rtol=1e-12)


@pytest.mark.long  # compiles draws of heads, 10 s
def test_attention_has_the_kernel_of_infinitely_many_heads(x64):
    net = Attention(num_heads=4, head_dim=3, causal=True)
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    params = net.init(jax.random.key(0), x.shape[1:])
    found = infinite_width(lambda p, x: net.apply(p, x), params, x[:1], x[1:], weight_std=ONES)
    expected = infinite_heads_ntk(net, x[:1], x[1:])
    distance = np.linalg.norm(found.ntk - expected.value) / np.linalg.norm(expected.value)
    other = np.linalg.norm(expected.standard_error) / np.linalg.norm(expected.value)
    assert distance < 4 * (found.sampling_error + other)
    assert 0 < found.sampling_error < 0.03
    assert "draws of heads" in repr(found)


MONTE_CARLO: list[Any] = [
    (branches, X, 40, lambda m: {"a": (5, m), "b": (m + 5, m), "c": (2 * m,), "v": (2 * m, 1)}),
    (
        attention,
        IMAGES.reshape(2, 8, 4)[:, :3],
        60,
        lambda m: {"e": (4, m), **dict.fromkeys(("q", "k", "w", "o"), (m, m)), "v": (m, 1)},
    ),
    (weighted_residual, X, 80, lambda m: {"a": (5, m), "b": (m, m), "c": (m,), "v": (m, 1)}),
    (
        pooled,
        IMAGES,
        80,
        lambda m: {"k": (3, 3, 2, m), "b": (m,), "l": (2, 2, m, m), "v": (4 * m, 1)},
    ),
    (
        dense_positions,
        IMAGES.reshape(2, 16, 2)[:, :6],
        24,
        lambda m: {"a": (2, m), "positions": (6, m), "b": (m, m), "v": (m, 1)},
    ),
]


@pytest.mark.long  # 24 to 80 kernels of networks of width 192 each
@pytest.mark.parametrize(("apply", "x", "count", "shapes"), MONTE_CARLO)
def test_mean_kernel_of_wide_networks_is_the_limit(apply, x, count, shapes, x64):
    width = 192
    std = {"*": 1.0} if apply is not weighted_residual else {"*": width**-0.5, "a": 1.0, "c": 1.0}
    sizes = shapes(width)
    deviations = {name: std.get(name, std["*"]) for name in sizes}

    def draw(key: jax.Array) -> dict[str, jax.Array]:
        keys = jax.random.split(key, len(sizes))
        return {
            name: deviations[name] * jax.random.normal(each, size)
            for each, (name, size) in zip(keys, sizes.items(), strict=True)
        }

    stated = {name: deviations[name] for name in sizes}
    limit = infinite_width(apply, draw(jax.random.key(0)), x, weight_std=stated)
    kernel = jax.jit(lambda key: empirical_ntk(apply, draw(key), x)[..., 0, 0])
    kernels = np.stack([kernel(key) for key in jax.random.split(jax.random.key(1), count)])
    along = (kernels * np.asarray(limit.ntk)).sum(axis=(1, 2)) / (np.asarray(limit.ntk) ** 2).sum()
    error = along.std(ddof=1) / count**0.5
    # Fluctuations are of order m^(-1/2) per network; the bias of order 1/m stays below 1%.
    assert abs(along.mean() - 1) < 3 * error + 0.01
    assert error < 0.02


@pytest.mark.slow  # imports Flax
def test_flax_module_has_the_limit_of_its_formula(x64):
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(64), nn.relu, nn.Dense(1)])
    params = jax.tree.map(jnp.float64, model.init(jax.random.key(0), X))
    std = {"*.kernel": 0.5, "*.bias": 0.25}
    found = infinite_width(model.apply, params, X, weight_std=std)
    cov = 0.25 * X @ X.T + 0.25**2
    values, slopes = arc_cosine(cov)
    expected = 64 * 0.25 * slopes * (X @ X.T + 1) + 64 * values + 1
    np.testing.assert_allclose(found.ntk, expected, rtol=1e-7)
    np.testing.assert_allclose(found.nngp, 64 * 0.25 * values + 0.25**2, rtol=1e-7)


@pytest.mark.long  # imports Flax; compiles draws of heads twice
def test_flax_attention_has_the_limit_of_its_formula(x64):
    nn = pytest.importorskip("flax.linen")

    class Block(nn.Module):  # type: ignore[name-defined,misc,unused-ignore]
        """Causal attention beside a skip connection, then a dense layer."""

        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.Dense(16, use_bias=False, name="embed")(x)
            mask = nn.make_causal_mask(x[..., 0])
            heads = nn.MultiHeadDotProductAttention(num_heads=8, use_bias=False, name="heads")
            x = x + heads(x, x, mask=mask)
            return nn.Dense(1, use_bias=False, name="head")(nn.relu(x).mean(axis=1))

    def formula(params: Any, x: Any) -> Any:
        p = params["params"]
        x = x @ p["embed"]["kernel"]
        queries, keys, values = (
            jnp.einsum("nif,fhc->nihc", x, p["heads"][name]["kernel"])
            for name in ("query", "key", "value")
        )
        scores = jnp.einsum("nihc,njhc->nhij", queries, keys) / queries.shape[-1] ** 0.5
        scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
        mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), values)
        x = x + jnp.einsum("nihc,hcf->nif", mixed, p["heads"]["out"]["kernel"])
        return jax.nn.relu(x).mean(axis=1) @ p["head"]["kernel"]

    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    model = Block()
    params = jax.tree.map(jnp.float64, model.init(jax.random.key(0), x))
    np.testing.assert_allclose(model.apply(params, x), formula(params, x), rtol=1e-12)
    module, function = (
        infinite_width(apply, params, x[:1], x[1:], weight_std={"*": 0.25})
        for apply in (model.apply, formula)
    )
    # The formula is compared with wide draws above.
    for one, other in ((module.ntk, function.ntk), (module.nngp, function.nngp)):
        distance = np.linalg.norm(one - other) / np.linalg.norm(other)
        assert distance < 4 * (module.sampling_error + function.sampling_error)
    assert 0 < module.sampling_error < 0.01


def test_scales_are_measured_on_the_given_parameters(x64):
    params = drawn(a=(5, 400), v=(400, 1))
    params = {"a": 2 * params["a"], "v": params["v"]}
    found = infinite_width(
        lambda p, x: jnp.maximum(x @ p["a"], 0) @ p["v"] / 20, params, X, weight_std={"v": 1.0}
    )
    measured, stated = found.scales
    assert not measured.is_stated
    assert abs(measured.std - 2) < 4 * measured.standard_error
    assert (stated.is_stated, stated.std, stated.standard_error) == (True, 1.0, 0.0)
    assert "a: " in repr(found)
    assert "stated" in repr(found)
    assert len(repr(found)) < 300


W = {
    "a": jnp.ones((5, 8)),
    "b": jnp.ones((8, 8)),
    "v": jnp.ones((8, 2)),
    "g": jnp.ones(8),
    "c": jnp.ones((16, 2)),
}


def normalized(p: Any, x: Any) -> Any:
    z = x @ p["a"]
    return (z - z.mean(axis=-1, keepdims=True)) @ p["v"]


@jax.custom_vjp
def clipped(z: jax.Array) -> jax.Array:
    return jnp.tanh(z)


clipped.defvjp(lambda z: (jnp.tanh(z), None), lambda _, d: (d,))  # straight through


def mixed_heads(p: Any, x: Any) -> Any:
    """A softmax over the heads."""
    heads = (x @ p["a"]).reshape(len(x), 4, 2)
    return jax.nn.softmax(heads, axis=1).reshape(len(x), 8) @ p["v"]


# What is refused → (function, words of the message).
REFUSED: dict[str, tuple[Any, str]] = {
    "shared": (
        lambda p, x: jnp.tanh(jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["b"]) @ p["v"],
        "dot_general, whose parameter b is shared",
    ),
    "normalized": (normalized, "reduce_sum, over the width"),
    "product": (lambda p, x: ((x @ p["a"]) * (x @ p["b"][:5])) @ p["v"], "slice, of a parameter"),
    "gated": (
        lambda p, x: ((z := jnp.tanh(x @ p["a"])) * jax.nn.sigmoid(z @ p["b"])) @ p["v"],
        "mul, of different pre-activations",
    ),
    "gains": (lambda p, x: ((x @ p["a"]) * p["g"]) @ p["v"], "mul, with a parameter"),
    "heads": (mixed_heads, "dot_general, of 4 heads that depend on each other"),
    "token": (
        lambda p, x: jnp.concatenate([x @ p["a"], jnp.ones((len(x), 1)) * p["g"]], 1) @ p["c"],
        "concatenate, of a parameter",
    ),
    "softmax": (lambda p, x: jax.nn.softmax(x @ p["a"]) @ p["v"], "reduce_max"),
    "outputs": (lambda p, x: jnp.tanh(x @ p["a"]), "output, which is a nonlinear function"),
    "look-up": (lambda p, x: p["a"][jnp.argmax(x, axis=1)] @ p["v"], "gather"),
    "not-gaussian": (
        lambda p, x: jnp.tanh(jnp.tanh(z := x @ p["a"]) @ p["b"] + jnp.tanh(z)) @ p["v"],
        "tanh, of a sum that is not Gaussian",
    ),
    "custom": (lambda p, x: clipped(x @ p["a"]) @ p["v"], "whose derivative is not"),
    "neurons-differ": (
        lambda p, x: jnp.tanh((x @ p["a"]) * jnp.arange(8.0)) @ p["v"],
        "mul, by numbers that differ",
    ),
    "divided by 0": (lambda p, x: jnp.tanh(x @ p["a"]) @ p["v"] / 0.0, "div, by 0"),
    "weights by 0": (lambda p, x: jnp.tanh(x @ (p["a"] / 0.0)) @ p["v"], "div, by 0"),
    "times infinity": (lambda p, x: jnp.tanh(x @ p["a"]) @ p["v"] * np.inf, "mul, by 0, or by"),
    "plus infinity": (lambda p, x: jnp.tanh(x @ p["a"]) @ p["v"] + np.inf, "add, of a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_without_a_rule_are_refused_by_name(name, x64):
    apply, words = REFUSED[name]
    with pytest.raises(InvalidInput) as refused:
        infinite_width(apply, W, X, weight_std=ONES)
    assert words in str(refused.value)
    assert refused.value.field == "net"


@pytest.mark.parametrize(
    ("stated", "field", "words"),
    [
        ({"aa": 1.0}, "weight_std", "a, the nearest name"),
        ({"a": -1.0}, "weight_std", "at least 0"),
        ({"a": float("nan")}, "weight_std", "a finite number"),
        ({}, "params", "a with mean 1"),
    ],
)
def test_statements_that_fit_nothing_are_refused(stated, field, words, x64):
    with pytest.raises(InvalidInput) as refused:
        infinite_width(lambda p, x: jnp.tanh(x @ p["a"]) @ p["v"], W, X, weight_std=stated)
    assert refused.value.field == field
    assert words in str(refused.value)


def test_kernel_functions_take_functions_with_parameters(x64):
    net = FullyConnected(width=8, depth=1, activation="relu", use_bias=False)
    params = net.init(jax.random.key(0), (5,))
    apply = lambda params, x: net.apply(params, x)  # noqa: E731
    limit = infinite_width(apply, params, X, weight_std=ONES)
    np.testing.assert_array_equal(infinite_width_ntk(apply, params, X, weight_std=ONES), limit.ntk)
    np.testing.assert_array_equal(
        infinite_width_nngp(apply, params, X, weight_std=ONES), limit.nngp
    )
    last = replace(net, trained="last")
    np.testing.assert_allclose(limit.nngp, infinite_width_ntk(last, X), rtol=1e-12)
