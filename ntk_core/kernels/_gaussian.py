"""Expectations of an activation over pairs of jointly Gaussian pre-activations, in float64.

For (u, v) ~ N(0, [[q₁, c], [c, q₂]]): E[σ(u)σ(v)] and E[σ'(u)σ'(v)], from closed forms for
(leaky) ReLU and erf, for functions with a kink at 0 by quadrature between the kinks, else by
Gauss–Hermite quadrature and Mehler's formula (docs/math/infinite_width.md). Everything here
runs under ``float64``.
"""

import itertools
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.polynomial.legendre import leggauss
from scipy.special import roots_hermitenorm

from ntk_core.networks.architectures import Activation, Pointwise, activation_of, slope_jumps

NUM_NODES = 256
SAME_DIRECTION = 16 * np.finfo(np.float64).eps  # of 1 − |ρ|
REACH = 10.0  # in standard deviations: beyond, the normal density is below 1e-22


def pair_expectations(
    activation: Activation,
    cov: Float[Array, "..."],
    variance1: Float[Array, "..."],
    variance2: Float[Array, "..."],
    num_nodes: int = NUM_NODES,
    other: Activation | None = None,
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return (E[σ(u)τ(v)], E[σ'(u)τ'(v)]) for covariances and variances.

    Their shapes broadcast to that of ``cov``.

    τ is σ, or ``other``.
    """
    sigma = activation_of(activation)
    if other is not None:
        tau = activation_of(other)
        kinks = [*slope_jumps(sigma.apply), *slope_jumps(tau.apply)]
        integral = _by_angles if any(kinks) else _by_quadrature
        return integral(sigma.apply, cov, variance1, variance2, num_nodes, tau.apply)
    if (slope := sigma.negative_slope) is not None:
        return _leaky_relu(slope, cov, variance1, variance2)
    if sigma.name == "erf":
        return _erf(cov, variance1, variance2)
    if any(slope_jumps(sigma.apply)):
        return _by_angles(sigma.apply, cov, variance1, variance2, num_nodes)
    return _by_quadrature(sigma.apply, cov, variance1, variance2, num_nodes)


def mean(activation: Activation, variance: Array, num_nodes: int = NUM_NODES) -> Array:
    """E[σ(u)] for u ~ N(0, variance)."""
    sigma = activation_of(activation)
    if sigma.negative_slope is not None:
        return (1 - sigma.negative_slope) * jnp.sqrt(variance / (2 * math.pi))
    nodes, weights = _half_line(num_nodes // 2)
    normal_weights = weights * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi)
    scaled = jnp.sqrt(variance)[..., None] * nodes
    return (sigma.apply(scaled) + sigma.apply(-scaled)) @ normal_weights


def mean_slope(activation: Activation, variance: Array, num_nodes: int = NUM_NODES) -> Array:
    """E[σ'(u)] for u ~ N(0, variance)."""
    sigma = activation_of(activation)
    if (slope := sigma.negative_slope) is not None:
        return jnp.full(variance.shape, (1 + slope) / 2)
    slopes = jax.vmap(jax.grad(sigma.apply))
    nodes, weights = _half_line(num_nodes // 2)
    scaled = (jnp.sqrt(variance)[..., None] * nodes).ravel()
    both = (slopes(scaled) + slopes(-scaled)).reshape(*variance.shape, len(nodes))
    return both @ (weights * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi))


def has_closed_form(activation: Activation) -> bool:
    """Whether the expectations are exact."""
    sigma = activation_of(activation)
    return sigma.negative_slope is not None or sigma.name == "erf"


def _leaky_relu(
    slope: float, cov: Array, variance1: Array, variance2: Array
) -> tuple[Array, Array]:
    """Arc-cosine kernels of degree 1 and 0 of a leaky ReLU.

    σ(z) = relu(z) − slope · relu(−z). Source: Cho & Saul 2009.
    """
    norm = jnp.sqrt(variance1 * variance2)
    rho = _correlation(cov, variance1, variance2)
    # The two-argument arctangent stays exact near ±1.
    angle = 2 * jnp.arctan2(jnp.sqrt(1 - rho), jnp.sqrt(1 + rho))
    degree1 = (jnp.sqrt((1 - rho) * (1 + rho)) + rho * (math.pi - angle)) / (2 * math.pi)
    opposite1 = (jnp.sqrt((1 - rho) * (1 + rho)) - rho * angle) / (2 * math.pi)
    degree0 = (math.pi - angle) / (2 * math.pi)
    values = norm * ((1 + slope**2) * degree1 - 2 * slope * opposite1)
    return values, (1 + slope**2) * degree0 + 2 * slope * (0.5 - degree0)


def _erf(cov: Array, variance1: Array, variance2: Array) -> tuple[Array, Array]:
    """Arcsine kernel and its derivative with respect to the covariance (Williams 1997)."""
    product = (1 + 2 * variance1) * (1 + 2 * variance2)
    values = 2 / math.pi * jnp.arcsin(2 * cov / jnp.sqrt(product))
    return values, 4 / math.pi / jnp.sqrt(product - 4 * cov**2)


def _correlation(cov: Array, variance1: Array, variance2: Array) -> Array:
    """Correlations; ±1 within rounding, whose root would be an angle of 1e-8 between x and x."""
    norm = jnp.sqrt(variance1 * variance2)
    rho = jnp.clip(cov / jnp.where(norm > 0, norm, 1), -1, 1)
    return jnp.where(1 - jnp.abs(rho) <= SAME_DIRECTION, jnp.sign(rho), rho)


def _by_quadrature(
    sigma: Pointwise,
    cov: Array,
    variance1: Array,
    variance2: Array,
    num_nodes: int,
    tau: Pointwise | None = None,
) -> tuple[Array, Array]:
    """Mehler: E[σ(u)τ(v)] = Σ_k a_k(q₁) b_k(q₂) ρᵏ, τ = σ by default.

    a_k(q) = E[σ(√q g) h_k(g)] and b_k(q) = E[τ(√q g) h_k(g)], with h_k orthonormal for g ~ N(0, 1).
    """
    rho = _correlation(cov, variance1, variance2)
    tau = tau or sigma
    nodes, weighted = _hermite(num_nodes)

    def coefficients(function: Pointwise, variance: Array) -> Array:
        return function(jnp.sqrt(variance)[..., None] * nodes) @ weighted

    def expectation(first: Pointwise, second: Pointwise) -> Array:
        left = coefficients(first, variance1)
        right = coefficients(second, variance2)
        start = jnp.zeros(jnp.broadcast_shapes(rho.shape, variance1.shape, variance2.shape))

        def horner(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
            return total * rho + pair[0] * pair[1], None

        terms = (jnp.moveaxis(left, -1, 0)[::-1], jnp.moveaxis(right, -1, 0)[::-1])
        return jax.lax.scan(horner, start, terms)[0]

    return expectation(sigma, tau), expectation(_slope_of(sigma), _slope_of(tau))


def _slope_of(function: Pointwise) -> Pointwise:
    """Return σ' for arrays of any shape."""
    slope = jax.vmap(jax.grad(function))
    return lambda z: slope(z.ravel()).reshape(z.shape)


def _by_angles(
    sigma: Pointwise,
    cov: Array,
    variance1: Array,
    variance2: Array,
    num_nodes: int,
    tau: Pointwise | None = None,
) -> tuple[Array, Array]:
    """u = √q₁ r cos θ and v = √q₂ r cos(θ − φ) with ρ = cos φ.

    Gauss–Legendre in r, and in θ between signs of u and v.

    A function with a kink only at 0 is smooth in each of the four parts of the circle.
    E[σ(u)τ(v)], τ = σ by default.
    """
    tau = tau or sigma
    rho = _correlation(cov, variance1, variance2)
    angle = 2 * jnp.arctan2(jnp.sqrt(1 - rho), jnp.sqrt(1 + rho))
    shape = jnp.broadcast_shapes(rho.shape, variance1.shape, variance2.shape)
    scales = [jnp.broadcast_to(jnp.sqrt(each), shape).ravel() for each in (variance1, variance2)]
    phi = jnp.broadcast_to(angle, shape).ravel()
    slope1 = jax.vmap(jax.grad(sigma))
    slope2 = jax.vmap(jax.grad(tau))
    radii, of_radii = _half_line(num_nodes // 4)
    of_radii = of_radii * radii * np.exp(-(radii**2) / 2)
    places, of_places = leggauss(num_nodes // 10)

    def add(sums: tuple[Array, Array], node: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        half, wide, place, r, weight = node
        length = jnp.where(wide == 0, phi, math.pi - phi)
        theta = -math.pi / 2 + math.pi * half + jnp.where(wide == 0, 0.0, phi) + length * place
        u = r * scales[0] * jnp.cos(theta)
        v = r * scales[1] * jnp.cos(theta - phi)
        share = weight * length
        values = sums[0] + share * sigma(u) * tau(v)
        slopes = sums[1] + share * slope1(u) * slope2(v)
        return (values, slopes), None

    grid = []  # rows (half, wide, place, r, weight)
    # Four parts of the circle: half turns, narrow and wide.
    for half, wide in itertools.product((0, 1), (0, 1)):
        for place, of_place in zip(places, of_places, strict=True):
            for r, of_r in zip(radii, of_radii, strict=True):
                weight = of_place / 2 * of_r / (2 * math.pi)
                grid.append((half, wide, (place + 1) / 2, r, weight))
    nodes = tuple(jnp.asarray(each) for each in np.transpose(grid))
    zeros = jnp.zeros(phi.shape)
    found, _ = jax.lax.scan(add, (zeros, zeros), nodes)
    return found[0].reshape(shape), found[1].reshape(shape)


@cache
def _half_line(num_nodes: int) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Gauss–Legendre nodes and weights on [0, REACH]."""
    nodes, weights = leggauss(num_nodes)
    return (nodes + 1) * (REACH / 2), weights * (REACH / 2)


@cache
def _hermite(num_nodes: int) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "N N"]]:
    """Gauss–Hermite nodes x (N,) and weights · h_k(x), (N, N), k = 0 … N−1.

    The recursion includes square roots of the weights, since h_k alone would overflow.
    """
    nodes, weights = roots_hermitenorm(num_nodes)
    roots = np.sqrt(weights / weights.sum())
    functions = [roots, nodes * roots]
    for k in range(1, num_nodes - 1):
        functions.append(
            (nodes * functions[k] - math.sqrt(k) * functions[k - 1]) / math.sqrt(k + 1)
        )
    return nodes, roots[:, None] * np.stack(functions, axis=1)
