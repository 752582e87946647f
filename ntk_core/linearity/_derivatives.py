"""Outputs of a model at two checkpoints, and their derivatives along the way between them."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ntk_core import traced
from ntk_core.dynamics import derivatives_along
from ntk_core.kernels import ScaledNorm, scaled, scaled_norm, widened

Function = Callable[[list[Array], Array], Array]  # (w, x) ↦ outputs, (n, C)
MOST_SEEDS = 16  # backward passes per input; with more outputs, random signs of them


class Derivatives(NamedTuple):
    """Values f(w₀), f(w₁), J₀δ, δᵀH(w₀)δ, J₁δ; by leaf ⟨J₀δ_l, J₀δ⟩ / ‖J₀δ‖ and (‖δ_l‖, ‖w₀_l‖)."""

    values: tuple[Float[Array, "n C"], ...]
    parts: list[Array]
    sizes: list[tuple[ScaledNorm, ScaledNorm]]


def derivatives(function: Function, w0: list[Array], w1: list[Array], x: Array) -> Derivatives:
    """Return values and derivatives of the outputs along δ = w₁ − w₀, at both ends."""
    return _by(derivatives_along, function, w0, w1, x)


def first_derivatives(
    function: Function, w0: list[Array], w1: list[Array], x: Array
) -> Derivatives:
    """Return :func:`derivatives` with NaN as second ones, for functions without a Hessian."""

    def along(
        outputs: Callable[[list[Array]], Array], w: list[Array], delta: list[Array]
    ) -> tuple[Array, Array, Array]:
        value, slope = traced.value_and_slope(outputs, w, delta)
        return value, slope, jnp.full_like(value, jnp.nan)

    return _by(along, function, w0, w1, x)


def _by(
    derivatives: Callable[..., tuple[Array, Array, Array]],
    function: Function,
    w0: list[Array],
    w1: list[Array],
    x: Array,
) -> Derivatives:
    with jax.default_matmul_precision("highest"):
        delta = [after - before for before, after in zip(w0, w1, strict=True)]

        def outputs(w: list[Array]) -> Array:
            return function(w, x)

        f0, linear, curvature = derivatives(outputs, w0, delta)
        # The unit vector along J₀δ, without squares that overflow.
        norm = scaled_norm(linear)
        unit = scaled(widened(linear), norm.exponent) / jnp.where(norm.size, norm.size, 1)
        pulled = jax.vjp(outputs, w0)[1](unit.astype(linear.dtype))[0]
        parts = [
            jnp.sum(gradient.astype(float) * step.astype(float))
            for gradient, step in zip(pulled, delta, strict=True)
        ]
        sizes = [(scaled_norm(step), scaled_norm(w)) for step, w in zip(delta, w0, strict=True)]
        f1, later = traced.value_and_slope(outputs, w1, delta)
        return Derivatives((f0, f1, linear, curvature, later), parts, sizes)


def gradient_norms(function: Function, w0: list[Array], x: Array, key: Array) -> ScaledNorm:
    """Return ‖∂f_c(x_i)/∂w_l‖, (n, C, leaves).

    They are of each input and output, or of random signs of the outputs.

    The sum of their squares over inputs and outputs is tr K_l, in double precision.
    """

    def row(given: tuple[Array, Array]) -> ScaledNorm:
        one, key = given
        outputs, pull = jax.vjp(lambda w: function(w, one[None])[0], w0)
        seeds = jnp.eye(outputs.size)
        if outputs.size > MOST_SEEDS:
            signs = jax.random.rademacher(key, (MOST_SEEDS, outputs.size), outputs.dtype)
            seeds = signs / math.sqrt(MOST_SEEDS)

        def norms(seed: Array) -> ScaledNorm:
            found = [scaled_norm(leaf) for leaf in pull(seed.astype(outputs.dtype))[0]]
            sizes = jnp.stack([each.size for each in found])
            exponents = jnp.stack([each.exponent for each in found])
            return ScaledNorm(sizes, exponents)

        return jax.lax.map(norms, seeds)

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(row, (x, jax.random.split(key, len(x))))
