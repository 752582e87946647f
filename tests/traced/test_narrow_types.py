"""Kernels in float16, whose derivatives lose digits below 6e-5 and overflow above 65504.

The size of a kernel does not show that: inputs around 1,000 have products of order one with
derivatives around 1e-6. The oracle is plain reverse mode in float64.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import KernelOperator, diagonal_ntk, empirical_ntk, kernel_change_between
from tests.plain_derivatives import normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

ROWS = np.random.default_rng(1).standard_normal((4, 3))
OTHERS = np.random.default_rng(2).standard_normal((5, 3))
TOLERANCE = 0.01  # about ten roundings of float16
# Sizes of inputs and outputs, and of the outputs' other factor.
SIZES = [(1, 1e-4), (1, 1e-6), (30, 1e-5), (1000, 1e-6), (1000, 1.0)]
FORMS: dict[str, dict[str, Any]] = {
    "all pairs": {},
    "plain": {"route": "plain"},
    "parts": {"per_layer": True},
    "equal outputs": {"equal_outputs": True},
    "mean": {"trace_outputs": True},
    "plain mean": {"trace_outputs": True, "route": "plain"},
    "plain blocks": {"route": "plain", "memory_limit": 2000},
}


class Scaled:
    """Two layers with a branch, whose outputs have a fixed size."""

    def __init__(self, size):
        self.size = size

    def __call__(self, p, x):
        h = jnp.tanh(x @ p["w"] + p["b"])
        h = h + jnp.tanh(h @ p["u"])
        return (h @ p["out"]) * jnp.asarray(self.size, x.dtype)


def params(of_inputs, dtype="float16"):
    found = normal(w=(3, 8), b=(8,), u=(8, 8), out=(8, 4))
    found["w"] = found["w"] / of_inputs
    return {name: jnp.asarray(leaf, dtype) for name, leaf in found.items()}


def expected(model, of_inputs, others=None):
    """K in float64, of the numbers that float16 holds."""
    wide = {name: leaf.astype(jnp.float64) for name, leaf in params(of_inputs).items()}
    held = Scaled(float(np.float16(model.size)))
    x = jnp.asarray(np.float16(ROWS * of_inputs), jnp.float64)
    if others is not None:
        others = jnp.asarray(np.float16(others * of_inputs), jnp.float64)
    return np.asarray(plain_kernel(held, wide, x, others))


def error(found, kernel, form):
    """The largest difference, in units of the norms of both gradients where these are known."""
    if form == "parts":
        found = sum(np.asarray(part, np.float64) for part in found.values())
    if form == "equal outputs":
        kernel = np.einsum("ijcc->ijc", kernel)
    elif "mean" in form:
        kernel = np.einsum("ijcc->ij", kernel) / 4
    return np.abs(np.asarray(found, np.float64) - kernel).max() / np.abs(kernel).max()


@pytest.mark.slow  # compiles several kernels
@pytest.mark.sampled(8)  # one form at one size among many
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_kernels_in_float16_keep_their_digits(sizes, form, x64):
    of_inputs, of_outputs = sizes
    model = Scaled(of_outputs)
    x = jnp.asarray(ROWS * of_inputs, jnp.float16)
    found = empirical_ntk(model, params(of_inputs), x, **FORMS[form])
    assert error(found, expected(model, of_inputs), form) <= TOLERANCE


@pytest.mark.slow  # compiles several kernels
@pytest.mark.parametrize("form", ["all pairs", "plain"])
def test_kernels_of_two_batches_keep_their_digits(form, x64):
    model = Scaled(1e-6)
    x, others = (jnp.asarray(rows * 1000, jnp.float16) for rows in (ROWS, OTHERS))
    found = empirical_ntk(model, params(1000), x, others, **FORMS[form])
    assert error(found, expected(model, 1000, OTHERS), form) <= TOLERANCE


@pytest.mark.slow  # compiles several kernels
@pytest.mark.parametrize("route", ["auto", "plain"])
def test_diagonals_in_float16_keep_their_digits(route, x64):
    model = Scaled(1e-6)
    found = diagonal_ntk(model, params(1000), jnp.asarray(ROWS * 1000, jnp.float16), route=route)
    kernel = np.einsum("iicd->icd", expected(model, 1000))
    assert np.abs(np.asarray(found, np.float64) - kernel).max() <= TOLERANCE * kernel.max()


@pytest.mark.slow  # compiles several kernels
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-6])
def test_products_and_changes_in_float16_keep_their_digits(size, x64):
    model = Scaled(size)
    x = jnp.asarray(ROWS, jnp.float16)
    v = np.random.default_rng(3).standard_normal((4, 4))
    kernel = expected(model, 1)
    product = KernelOperator(model, params(1), x).flat_product(v.ravel()).reshape(4, 4)
    right = np.einsum("ijab,jb->ia", kernel, v)
    assert np.abs(product - right).max() <= TOLERANCE * np.abs(right).max()
    change = kernel_change_between(
        model, params(1), jax.tree.map(lambda leaf: 2 * leaf, params(1)), x
    )
    first = kernel_change_between(
        Scaled(1.0), params(1), jax.tree.map(lambda leaf: 2 * leaf, params(1)), x
    )
    assert change.change == pytest.approx(first.change, rel=TOLERANCE)


def test_derivatives_without_digits_are_refused():
    """No factor of float16 lifts the derivatives around 1e-10 of this branch above 6e-5."""

    def model(p, x):
        h = jnp.tanh(x @ p["w"])
        h = h + jnp.tanh(h @ p["u"]) * jnp.float16(1e-6)
        return (h @ p["out"]) * jnp.float16(1e-4)

    own = {name: leaf for name, leaf in params(1).items() if name != "b"}
    x = jnp.asarray(ROWS, jnp.float16)
    with pytest.raises(InvalidInput, match="net: derivatives that lose digits in float16"):
        empirical_ntk(model, own, x, per_layer=True)
    assert np.isfinite(empirical_ntk(model, own, x)).all()  # of which the branch is no part


def test_plain_kernel_of_a_small_output_is_right(x64):
    """Its sum is inside of float32, where most products of its Jacobian vanish."""
    scales = jnp.asarray([1.0, 3e-18], jnp.float32)

    def model(p, x):
        return (jnp.tanh(x @ p["w"]) @ p["out"]) * scales.astype(x.dtype)

    drawn = normal(w=(3, 64), out=(64, 2))
    own = {name: jnp.asarray(leaf, jnp.float32) for name, leaf in drawn.items()}
    x = jnp.asarray(ROWS, jnp.float32)
    found = np.asarray(empirical_ntk(model, own, x, route="plain"), np.float64)
    wide = {name: leaf.astype(jnp.float64) for name, leaf in own.items()}
    kernel = np.asarray(plain_kernel(model, wide, x.astype(jnp.float64)))
    sizes = np.sqrt(np.einsum("iicc->ic", kernel).max(0))
    least = float(np.finfo(np.float32).tiny)
    assert (np.abs(found - kernel) <= 1e-3 * np.outer(sizes, sizes) + least).all()
