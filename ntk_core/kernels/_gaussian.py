"""Expectations of an activation over pairs of jointly Gaussian pre-activations, in float64.

For (u, v) ~ N(0, [[q₁, c], [c, q₂]]): E[σ(u)σ(v)] and E[σ'(u)σ'(v)], from closed forms for (leaky) ReLU and erf, else
by Gauss–Hermite quadrature and Mehler's formula (docs/math/infinite_width.md). Everything here runs under
``float64``.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from scipy.special import roots_hermitenorm

from ntk_core.networks.architectures import activation_function
from ntk_core.networks.choices import ACTIVATIONS

NUM_NODES = 256


def pair_expectations(
    name: str, cov: Float[Array, "..."], variance1: Float[Array, "..."], variance2: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """(E[σ(u)σ(v)], E[σ'(u)σ'(v)]) for covariances and variances of shapes that broadcast to that of ``cov``."""
    if (slope := ACTIVATIONS[name].negative_slope) is not None:
        return _leaky_relu(slope, cov, variance1, variance2)
    if name == "erf":
        return _erf(cov, variance1, variance2)
    return _by_quadrature(name, cov, variance1, variance2)


def mean(name: str, variance: Array) -> Array:
    """E[σ(u)] for u ~ N(0, variance)."""
    if (slope := ACTIVATIONS[name].negative_slope) is not None:
        return (1 - slope) * jnp.sqrt(variance / (2 * math.pi))
    return _coefficients(activation_function(name), variance)[..., 0]


def _leaky_relu(slope: float, cov: Array, variance1: Array, variance2: Array) -> tuple[Array, Array]:
    """Arc-cosine kernels of degree 1 and 0 (Cho & Saul 2009) for σ(z) = relu(z) − slope · relu(−z)."""
    norm = jnp.sqrt(variance1 * variance2)
    rho = jnp.clip(cov / jnp.where(norm > 0, norm, 1), -1, 1)
    # The angle by two-argument arctangent, which is as exact near ±1 as elsewhere.
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


def _by_quadrature(name: str, cov: Array, variance1: Array, variance2: Array) -> tuple[Array, Array]:
    """Mehler: E[σ(u)σ(v)] = Σ_k a_k(q₁) a_k(q₂) ρᵏ with a_k(q) = E[σ(√q g) h_k(g)], h_k orthonormal for g ~ N(0, 1)."""
    norm = jnp.sqrt(variance1 * variance2)
    rho = jnp.clip(cov / jnp.where(norm > 0, norm, 1), -1, 1)
    sigma = activation_function(name)
    slope = jax.vmap(jax.grad(sigma))

    def expectation(function) -> Array:  # type: ignore[no-untyped-def]
        left, right = _coefficients(function, variance1), _coefficients(function, variance2)
        start = jnp.zeros(jnp.broadcast_shapes(rho.shape, variance1.shape, variance2.shape))

        def horner(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
            return total * rho + pair[0] * pair[1], None

        terms = (jnp.moveaxis(left, -1, 0)[::-1], jnp.moveaxis(right, -1, 0)[::-1])
        return jax.lax.scan(horner, start, terms)[0]

    return expectation(sigma), expectation(lambda z: slope(z.ravel()).reshape(z.shape))


def _coefficients(function, variance: Array) -> Array:  # type: ignore[no-untyped-def]
    """a_k = E[function(√variance · g) h_k(g)] along a new last axis."""
    nodes, weighted = _hermite()
    return function(jnp.sqrt(variance)[..., None] * nodes) @ weighted


@cache
def _hermite() -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, "N N"]]:
    """Gauss–Hermite nodes x (N,) and weights · h_k(x), (N, N), k = 0 … N−1.

    With the weights' square roots inside the recursion h stays of order one, where h_k alone would overflow.
    """
    nodes, weights = roots_hermitenorm(NUM_NODES)
    roots = np.sqrt(weights / weights.sum())
    functions = [roots, nodes * roots]
    for k in range(1, NUM_NODES - 1):
        functions.append((nodes * functions[k] - math.sqrt(k) * functions[k - 1]) / math.sqrt(k + 1))
    return nodes, roots[:, None] * np.stack(functions, axis=1)
