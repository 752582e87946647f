"""Every activation and output: one entry with correct properties."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import Loss
from ntk_core.kernels._gaussian import pair_expectations
from ntk_core.networks.architectures import (
    FullyConnected,
    largest_slope,
    output_jacobian,
    slope_jumps,
)
from ntk_core.networks.choices import ACTIVATIONS, ALIASES, KINKED, OUTPUTS, Function

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

GRID = np.concatenate([np.linspace(-30, 30, 60_001), np.linspace(-1e4, 1e4, 2_000)])
POINTWISE = {**ACTIVATIONS, **{name: term for name, term in OUTPUTS.items() if name != "softmax"}}


LARGEST = {
    "erf": 2 / math.sqrt(math.pi),
    "sigmoid": 0.25,
    "swish": 1.0998,
    "gelu": 1.129,
    "quadratic": math.inf,
}
# All others have slopes of at most 1.
LARGEST |= {
    "selu": 1.0507009873554805 * 1.6732632423543772,
    "mish": 1.0884,
}


@pytest.mark.long_after(2)
@pytest.mark.parametrize("function", POINTWISE.values(), ids=POINTWISE)
def test_slopes_and_kinks_are_those_of_the_function(x64, function):
    slope = jax.grad(function.apply)
    slopes, second = (np.abs(jax.jit(jax.vmap(each))(GRID)) for each in (slope, jax.grad(slope)))
    assert slopes.min() == pytest.approx(function.min_slope, abs=1e-4)
    assert largest_slope(function) == pytest.approx(LARGEST.get(function.name, 1.0), rel=1e-4)
    pieces = function.negative_slope
    assert (second.max() > 0.05) == (pieces is None)
    assert function.smooth != slope_jumps(function.apply)[0]
    straight = jnp.where(GRID > 0, GRID, (0.5 if pieces is None else pieces) * GRID)
    same = bool(jnp.allclose(function.apply(jnp.asarray(GRID)), straight, rtol=1e-12, atol=0))
    assert same == (pieces is not None)


@pytest.mark.parametrize("function", POINTWISE.values(), ids=POINTWISE)
def test_values_are_those_of_the_function(x64, function):
    """Infimum and supremum on a grid, up to four digits, which the table rounds outward."""
    found = np.asarray(function.apply(jnp.asarray(GRID)))
    lower, upper = function.values
    for bound, extreme in ((lower, found.min()), (-upper, -found.max())):
        if math.isfinite(bound):
            assert bound <= extreme <= bound + 2e-4
        else:
            assert extreme < -80
    assert OUTPUTS["softmax"].values == (0, 1)


def test_softmax_slope_bounds_its_jacobian(x64):
    f = 3 * jax.random.normal(jax.random.key(0), (2_000, 3))
    norms = jnp.linalg.norm(output_jacobian("softmax", f), ord=2, axis=(1, 2))
    slope = largest_slope(OUTPUTS["softmax"])
    assert norms.max() <= slope * (1 + 1e-12)
    assert jnp.linalg.norm(
        output_jacobian("softmax", jnp.zeros((1, 2)))[0], ord=2
    ) == pytest.approx(slope, rel=1e-12)


def test_one_entry_is_all_that_a_new_function_needs(x64, monkeypatch):
    double = Function("double", "double", "2 z", apply=lambda z: 2 * z)
    monkeypatch.setitem(ACTIVATIONS, "double", double)
    monkeypatch.setitem(OUTPUTS, "double", double)
    x = jnp.ones((2, 3))
    net = FullyConnected(
        width=4, num_outputs=1, activation="double", output="double", use_bias=False
    )
    plain = FullyConnected(width=4, num_outputs=1, activation="identity", use_bias=False)
    params = net.init(jax.random.key(0), (3,))
    # 2 (v · 2 (W x + b)), but the biases of the plain network are the same
    np.testing.assert_allclose(net.apply(params, x), 4 * plain.apply(params, x), rtol=1e-12)
    assert Loss("double").curvature == 4.0
    values, slopes = pair_expectations("double", *(jnp.asarray(c) for c in (0.5, 1.0, 1.0)))
    np.testing.assert_allclose((values, slopes), (2.0, 4.0), rtol=1e-10)


def test_the_documentation_lists_every_name():
    page = (Path(__file__).parents[2] / "docs/api/networks.md").read_text(encoding="utf-8")
    assert [name for name in (*ACTIVATIONS, *ALIASES, *KINKED) if f"`{name}`" not in page] == []
