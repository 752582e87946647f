"""Kernels of outputs so small that products of their derivatives vanish in float32.

The comparison of a kernel with plain derivatives sees two rows and eight outputs. Others have to be
right all the same; the oracle is plain reverse mode in float64.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import diagonal_ntk, empirical_ntk
from tests.plain_derivatives import normal, plain_kernel
from tests.traced.test_random_blocks import Block, outcome

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

NUM_OUTPUTS = 20
GAIN = 1e4  # of one weight, whose part of the kernel is large although its cotangents are small
SMALL = 3e-19
X = np.random.default_rng(1).standard_normal((3, 3))
OTHERS = np.random.default_rng(2).standard_normal((4, 3))
# One of the outputs that the comparison does not choose.
CHOSEN = np.random.default_rng(0).permutation(NUM_OUTPUTS)[:8]
WEAK = next(c for c in range(NUM_OUTPUTS) if c not in CHOSEN)


def with_weak_output(p, x):
    scales = jnp.ones(NUM_OUTPUTS, x.dtype).at[WEAK].set(SMALL)
    z = x @ p["w"]
    h = jnp.tanh(z + z @ (GAIN * p["u"]))
    return (h @ p["out"]) * scales


def params(dtype):
    found = normal(w=(3, 4), u=(4, 4), out=(4, NUM_OUTPUTS))
    found["u"] = found["u"] / GAIN
    return {name: jnp.asarray(leaf, dtype) for name, leaf in found.items()}


def expected(others=None):
    """K in float64, of the numbers that float32 holds; and √K[c, c] of each output, (C,)."""
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params("float32"))
    x = jnp.asarray(X.astype(np.float32), jnp.float64)
    if others is not None:
        others = jnp.asarray(others.astype(np.float32), jnp.float64)
    kernel = np.asarray(plain_kernel(with_weak_output, wide, x, others))
    own = np.asarray(plain_kernel(with_weak_output, wide, x))
    return kernel, np.sqrt(np.einsum("iicc->ic", own).max(0))


FORMS: dict[str, Any] = {
    "all pairs": {},
    "blocks of rows": {"memory_limit": 2000},
    "equal outputs": {"equal_outputs": True},
    "parts": {"per_layer": True},
    "plain": {"route": "plain"},
}


@pytest.mark.slow  # compiles several kernels
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("others", [None, OTHERS], ids=["one batch", "two batches"])
def test_small_output_that_no_check_sees_is_right(form, others, x64):
    x = jnp.asarray(X, jnp.float32)
    x2 = None if others is None else jnp.asarray(others, jnp.float32)
    found: Any = empirical_ntk(with_weak_output, params("float32"), x, x2, **FORMS[form])
    if form == "parts":
        found = sum(found.values())
    kernel, sizes = expected(others)
    scales = np.outer(sizes, sizes)
    if form == "equal outputs":
        kernel = np.einsum("ijcc->ijc", kernel)
        scales = sizes**2
    error = np.abs(np.asarray(found, np.float64) - kernel) / scales
    assert error.max() <= 1e-5


@pytest.mark.slow  # compiles several kernels
def test_diagonal_of_small_output_is_right(x64):
    found = diagonal_ntk(with_weak_output, params("float32"), jnp.asarray(X, jnp.float32))
    kernel, sizes = expected()
    error = np.abs(np.asarray(found, np.float64) - np.einsum("iicd->icd", kernel))
    assert (error / np.outer(sizes, sizes)).max() <= 1e-5


def test_other_outputs_keep_every_bit():
    """Without the weak output nothing is computed again."""
    x = jnp.asarray(X, jnp.float32)
    own = params("float32")
    others = np.arange(NUM_OUTPUTS) != WEAK

    def without_weak_output(p, x):
        z = x @ p["w"]
        return jnp.tanh(z + z @ (GAIN * p["u"])) @ p["out"]

    found = np.asarray(empirical_ntk(with_weak_output, own, x))[:, :, others][..., others]
    usual = np.asarray(empirical_ntk(without_weak_output, own, x))[:, :, others][..., others]
    np.testing.assert_array_equal(found, usual)


@pytest.mark.slow  # compiles in several precisions
def test_one_row_whose_products_vanish_is_right(x64):
    """One entry of the second output was 3% too small: its row is not one that is compared."""
    sizes = (("u", 1e-3), ("b", 1e-3))
    block = Block("branch", "tanh", "repeated", "float32", sizes, (1e-15, 1e-18))
    assert outcome(block, 36) == "right by structure"


@pytest.mark.slow  # compiles in several precisions
def test_later_overflow_is_refused_as_such(x64):
    """The first kernel is inside of float32; when the gate opens, the part of u is around 1e60."""
    sizes = (("u", 1e-15), ("w", 1e-3))
    block = Block("residual", "silu", "ones", "float32", sizes, (1e15, 1e12))
    rows = jnp.asarray(X, jnp.float32)
    assert np.isfinite(np.asarray(empirical_ntk(block, block.params(47, False), rows))).all()
    with pytest.raises(InvalidInput, match="outputs with kernel entries"):
        empirical_ntk(block, block.params(48, True), rows)
