"""Outputs of a model at two checkpoints, and their derivatives along the way between them."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from ntk_core import traced
from ntk_core.dynamics import derivatives_along
from ntk_core.errors import InvalidInput
from ntk_core.kernels import ScaledNorm, scaled, scaled_norm, widened

Function = Callable[[list[Array], Array], Array]  # (w, x) ↦ outputs, (n, C)
Result = TypeVar("Result")
ROUNDINGS = 16  # between results of two scales
MOST_POWER = 20  # of two between scales, where the type has it; our choice
MOST_SEEDS = 16  # backward passes per input; with more outputs, random signs of them


class Derivatives(NamedTuple):
    """Values f(w₀), f(w₁), J₀δ, δᵀH(w₀)δ, J₁δ; by leaf ⟨J₀δ_l, J₀δ⟩ / ‖J₀δ‖ and (‖δ_l‖, ‖w₀_l‖)."""

    values: tuple[Float[Array, "n C"], ...]
    parts: list[Array]
    sizes: list[tuple[ScaledNorm, ScaledNorm]]


def derivatives(
    function: Function, w0: list[Array], w1: list[Array], x: Array, factor: ArrayLike = 1.0
) -> Derivatives:
    """Return values and derivatives of the outputs along δ = w₁ − w₀, at both ends.

    Those along ``factor`` · δ; see :func:`with_all_digits`.
    """
    return _by(derivatives_along, function, w0, w1, x, factor)


def first_derivatives(
    function: Function, w0: list[Array], w1: list[Array], x: Array, factor: ArrayLike = 1.0
) -> Derivatives:
    """Return :func:`derivatives` with NaN as second ones, for functions without a Hessian."""

    def along(
        outputs: Callable[[list[Array]], Array], w: list[Array], delta: list[Array]
    ) -> tuple[Array, Array, Array]:
        value, slope = traced.value_and_slope(outputs, w, delta)
        return value, slope, jnp.full_like(value, jnp.nan)

    return _by(along, function, w0, w1, x, factor)


def _by(
    derivatives: Callable[..., tuple[Array, Array, Array]],
    function: Function,
    w0: list[Array],
    w1: list[Array],
    x: Array,
    factor: ArrayLike,
) -> Derivatives:
    with jax.default_matmul_precision("highest"):
        steps = [after - before for before, after in zip(w0, w1, strict=True)]
        delta = [step * jnp.asarray(factor, step.dtype) for step in steps]

        def outputs(w: list[Array]) -> Array:
            return function(w, x)

        f0, linear, curvature = derivatives(outputs, w0, delta)
        # The unit vector along J₀δ, without squares that overflow.
        norm = scaled_norm(linear)
        unit = scaled(widened(linear), norm.exponent) / jnp.where(norm.size, norm.size, 1)
        seed = unit.astype(linear.dtype) * jnp.asarray(factor, linear.dtype)
        pulled = jax.vjp(outputs, w0)[1](seed)[0]
        parts = [
            jnp.sum(gradient.astype(float) * step.astype(float))
            for gradient, step in zip(pulled, delta, strict=True)
        ]
        sizes = [(scaled_norm(step), scaled_norm(w)) for step, w in zip(steps, w0, strict=True)]
        f1, later = traced.value_and_slope(outputs, w1, delta)
        return Derivatives((f0, f1, linear, curvature, later), parts, sizes)


def with_all_digits(
    run: Callable[[float], Result],
    numbers: Callable[[Result], list[np.ndarray]],
    dtype: np.dtype,
) -> tuple[Result, float]:
    """Return run(c) and a power of two c at which no derivative leaves the range of its type.

    Powers of two are exact, so results that depend on c have overflowed, or have lost digits below
    the normal numbers of their type.

    Args:
        run: computes derivatives along c·δ.
        numbers: of a result, divided by their powers of c.
        dtype: of the outputs.

    Raises:
        InvalidInput: if results depend on c at all scales.
    """
    limits = jnp.finfo(dtype)
    tolerance = ROUNDINGS * float(limits.eps)
    step = 2.0 ** min(MOST_POWER, int(limits.maxexp) // 3)
    found = {factor: run(factor) for factor in (1.0, step)}
    if not _are_finite(numbers(found[step])):
        # Smaller numbers lose more digits than these, if any.
        found[1 / step] = run(1 / step)
        pairs = [(1.0, 1 / step)]
    else:
        pairs = [(1.0, step)]
        if not _agree(numbers(found[1.0]), numbers(found[step]), tolerance):
            found[step**2] = run(step**2)
            pairs = [(step, step**2)]
    for chosen, other in pairs:
        if _agree(numbers(found[chosen]), numbers(found[other]), tolerance):
            return found[chosen], chosen
    raise InvalidInput(
        "apply",
        f"outputs whose derivatives lose digits in {np.dtype(dtype).name}",
        f"outputs in other units or a wider type, since {np.dtype(dtype).name} has all digits from "
        f"{float(limits.tiny):.0e} to {float(limits.max):.0e} only",
    )


def _are_finite(arrays: list[np.ndarray]) -> bool:
    return all(not np.isinf(each).any() for each in arrays)


def _agree(ones: list[np.ndarray], others: list[np.ndarray], tolerance: float) -> bool:
    """Whether arrays agree relative to their norms; NaN stands for no second derivatives."""
    for one, other in zip(ones, others, strict=True):
        if not np.array_equal(np.isnan(one), np.isnan(other)):
            return False
        gap = np.linalg.norm(np.nan_to_num(one - other))
        if not gap <= tolerance * np.linalg.norm(np.nan_to_num(other)):
            return False
    return True


def gradient_norms(
    function: Function, w0: list[Array], x: Array, key: Array, factor: ArrayLike = 1.0
) -> ScaledNorm:
    """Return ‖∂f_c(x_i)/∂w_l‖ times ``factor``, (n, C, leaves).

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
            cotangent = seed.astype(outputs.dtype) * jnp.asarray(factor, outputs.dtype)
            found = [scaled_norm(leaf) for leaf in pull(cotangent)[0]]
            sizes = jnp.stack([each.size for each in found])
            exponents = jnp.stack([each.exponent for each in found])
            return ScaledNorm(sizes, exponents)

        return jax.lax.map(norms, seeds)

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(row, (x, jax.random.split(key, len(x))))
