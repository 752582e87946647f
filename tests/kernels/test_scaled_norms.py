"""Norms as pairs of a number and an exponent, against NumPy's ``frexp`` and float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.kernels._scale import exponent_of, relative_change, scaled, scaled_norm

RNG = np.random.default_rng(0)
FLOAT32 = np.finfo(np.float32)


def numbers(power: float, spread: float, size: int = 40) -> np.ndarray:
    """Normal float32 numbers around 2^power, of both signs, with zeros and non-finite ones."""
    exponents = np.clip(power + spread * RNG.standard_normal(size), -125, 126)
    found = RNG.choice([-1, 1], size) * RNG.uniform(1, 1.9, size) * 2.0**exponents
    found[:3] = 0, np.inf, np.nan
    return found.astype(np.float32)


@pytest.mark.parametrize("spread", [0, 1, 30, 100])
@pytest.mark.parametrize("power", [-120, -60, 0, 60, 125])
def test_scaled_numbers_are_those_of_numpy(power: int, spread: int) -> None:
    x = numbers(power, spread)
    mantissas, exponents = np.frexp(x)
    expected = exponents[np.isfinite(x) & (x != 0)].max()
    assert int(exponent_of(jnp.asarray(x))) == expected
    exact = np.ldexp(mantissas.astype(np.float64), exponents - expected)
    is_normal = ~(np.abs(exact) < FLOAT32.tiny)
    for function in (scaled, jax.jit(scaled)):
        found = np.asarray(function(jnp.asarray(x), exponent_of(jnp.asarray(x))))
        np.testing.assert_array_equal(found[is_normal], exact[is_normal])


def test_zeros_beside_small_numbers_do_not_set_the_scale() -> None:
    small = jnp.full(5, 2.0**-100, jnp.float32)
    zero = jnp.zeros(3, jnp.float32)
    assert int(exponent_of(zero)) == 0
    assert int(exponent_of(zero, small)) == -99
    assert int(exponent_of(zero, small.astype(jnp.bfloat16))) == -99


@pytest.mark.parametrize("size", [float(FLOAT32.tiny), 2e-38, 1e-20, 1.0, 1e20, 2.0**127])
def test_a_kernel_that_vanishes_has_changed_by_one(size: float) -> None:
    kernel = jnp.full((3, 3), size, jnp.float32)
    for change, now in ((1.0, 0 * kernel), (2.0, -kernel), (0.5, kernel / 2), (0.0, kernel)):
        if change == 0.5 and size < 2 * FLOAT32.tiny:
            continue  # half of it is denormal
        assert float(relative_change(now, kernel)) == pytest.approx(change, rel=1e-6)


@pytest.mark.parametrize("power", [-120, -60, 0, 60, 120])
def test_gradients_of_norms_at_every_scale(power: int) -> None:
    x = RNG.standard_normal(6).astype(np.float32)
    at_scale = jnp.asarray(np.ldexp(x, power))

    def norm(x: jax.Array) -> jax.Array:
        size, exponent = scaled_norm(x)
        return jnp.ldexp(size, exponent)

    np.testing.assert_allclose(jax.grad(norm)(at_scale), x / np.linalg.norm(x), rtol=1e-5)
