"""Elementwise JAX functions as activations: networks and kernels of infinite width."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

from ntk_core import InvalidInput, empirical_ntk, hessian_norm, infinite_width_ntk
from ntk_core.kernels._gaussian import has_closed_form, mean, pair_expectations
from ntk_core.networks.architectures import DAGNetwork, FullyConnected, activation_of
from ntk_core.networks.choices import ACTIVATIONS, ALIASES, KINKED

OWN = {
    "a lambda": lambda z: jnp.sin(z) + 0.1 * z**2,
    "kinked": lambda z: jnp.where(z > 0, jnp.tanh(z), 0.3 * z),
}
EACH = {**{name: name for name in ACTIVATIONS}, **OWN}
FIRST = ("leaky_relu", "erf", "tanh", "elu", "kinked")  # of each route; all others are slow
# (covariance, variances): equal, nearly equal, unequal, opposite, independent, one constant.
PAIRS = np.array(
    [
        [1.3, 1.3, 1.3],
        [0.999, 1, 1],
        [0.4, 0.5, 2.0],
        [-0.8, 0.8, 1.2],
        [0.0, 1.0, 0.3],
        [0.0, 0.0, 1.0],
    ]
)


def by_products(sigma, cov, variance1, variance2):
    """E[σ(u)σ(v)] by a product of rules, split at u = 0 and, for each u, at v = 0."""
    nodes, weights = leggauss(100)

    def cut(at):
        """Nodes and normal weights on both sides of ``at``, within ±9."""
        at = min(max(at, -9.0), 9.0)
        parts = [((high - low) / 2, (high + low) / 2) for low, high in ((-9.0, at), (at, 9.0))]
        g = np.concatenate([half * nodes + middle for half, middle in parts])
        w = np.concatenate([half * weights for half, _ in parts])
        return g, w * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)

    first, of_first = cut(0.0)
    u = np.sqrt(variance1) * first
    along = cov / variance1 * u if variance1 else 0.0 * u
    rest = np.sqrt(max(variance2 - (cov**2 / variance1 if variance1 else 0.0), 0.0))
    rules = [cut(-a / rest) if rest > 1e-9 else (np.zeros(1), np.ones(1)) for a in along]
    h, of_h = (np.stack(each) for each in zip(*rules, strict=True))
    inner = (of_h * np.asarray(sigma(jnp.asarray(along[:, None] + rest * h)))).sum(axis=1)
    return (of_first * np.asarray(sigma(jnp.asarray(u)))) @ inner


@pytest.mark.long_after(2)
@pytest.mark.sampled(8)  # one rule integrates all functions
@pytest.mark.first_cases(2)  # the oracle takes a second for each function
@pytest.mark.parametrize(
    "activation",
    [
        pytest.param(each, id=name, marks=() if name in FIRST else pytest.mark.slow)
        for name, each in EACH.items()
    ],
)
def test_expectations_agree_with_a_product_of_quadratures(x64, activation):
    sigma = jax.jit(activation_of(activation).apply)
    slope = jax.jit(jnp.vectorize(jax.grad(sigma)))
    values, slopes = pair_expectations(activation, *map(jnp.asarray, PAIRS.T))
    for row, (pair, found, moved) in enumerate(zip(PAIRS, values, slopes, strict=True)):
        np.testing.assert_allclose(found, by_products(sigma, *pair), rtol=1e-7, atol=1e-9)
        if row < 5:  # the slope of a constant at a kink is undefined
            np.testing.assert_allclose(moved, by_products(slope, *pair), rtol=1e-6, atol=1e-9)
    constant = jnp.asarray(0.7)
    g = np.random.default_rng(0).standard_normal(1_000_000) * np.sqrt(0.7)
    drawn = np.asarray(sigma(jnp.asarray(g)))
    assert abs(float(mean(activation, constant)) - drawn.mean()) < 5 * drawn.std() / 1000 + 1e-12


@pytest.mark.slow  # compiles every measurement twice
def test_a_function_measures_as_its_name():
    x = jax.random.normal(jax.random.key(1), (3, 4))
    named, own = (
        FullyConnected(width=5, depth=2, activation=each, use_bias=False)
        for each in ("relu", jax.nn.relu)
    )
    params = named.init(jax.random.key(0), 4)
    assert hessian_norm(named, params, x[0]).value == pytest.approx(
        hessian_norm(own, params, x[0]).value, rel=1e-5
    )
    for measure in (
        lambda net: empirical_ntk(net, params, x),
        lambda net: infinite_width_ntk(net, x),
    ):
        np.testing.assert_allclose(measure(named), measure(own), rtol=1e-5, atol=1e-7)


def test_kinked_names_are_refused_if_quadrature_misses_the_kinks(x64):
    x = jax.random.normal(jax.random.key(1), (6, 4))
    with pytest.raises(InvalidInput, match="'hard_tanh', with an error of"):
        infinite_width_ntk(FullyConnected(depth=2, activation="hard_tanh", use_bias=False), x)


@pytest.mark.slow
def test_kinks_and_closed_forms_are_found():
    assert activation_of(lambda z: jnp.maximum(z, 0.2 * z)).negative_slope == pytest.approx(0.2)
    assert activation_of(jnp.abs).negative_slope == -1
    assert activation_of(jax.scipy.special.erf).name == "erf"
    assert has_closed_form(jax.nn.relu)
    assert not has_closed_form(jnp.tanh)
    assert {name: activation_of(name).name for name in ALIASES} == ALIASES
    z = jnp.linspace(-9, 9, 181)
    for name in KINKED:
        np.testing.assert_array_equal(activation_of(name).apply(z), getattr(jax.nn, name)(z))


@pytest.mark.parametrize(
    ("activation", "words"),
    [
        ("swoosh", "one of relu"),
        (3, "elementwise JAX function"),
        (jax.nn.softmax, "mixes|fails"),
        (lambda z: z - z.mean(), "mixes"),
        (lambda z: z[:1], "mixes|fails"),
        (jnp.log, "not finite"),
        (lambda z: float(z), "fails"),
        (lambda z: np.tanh(np.asarray(z)), "fails"),
        (jax.nn.glu, "mixes|fails"),
        (lambda a, b: a + b, "fails"),
    ],
)
def test_what_is_no_elementwise_function_is_refused(activation, words):
    for make in (FullyConnected, DAGNetwork):
        with pytest.raises(InvalidInput, match=words) as caught:
            make(activation=activation)
        assert caught.value.field == "activation"
        assert "\n" not in str(caught.value)
