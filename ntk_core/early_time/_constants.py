"""Gaussian moments of an activation: the numbers that decide which linear model a network is at early time."""

import math
from dataclasses import dataclass
from functools import cache

import jax
import numpy as np
from numpy.polynomial.legendre import leggauss

from ntk_core.networks.architectures import Activation, activation_function

NUM_NODES = 256
# Beyond |g| = 14 the normal density is below 1e-43: no activation of ours grows fast enough to be heard from there.
_REACH = 14.0


@dataclass(frozen=True)
class ActivationConstants:
    """Moments of φ under g ~ N(0, 1).

    Attributes:
        zeta: ζ = E[φ'(g)], weight of the inputs.
        theta0: ϑ₀ = E[φ(g)].
        theta1: ϑ₁ = E[g φ'(g)] = E[φ''(g)], weight of s = ‖x‖/√d − 1.
        theta2: ϑ₂ = E[(g³/2 − g) φ'(g)], weight of s².

    Source: Hu, Xiao, Adlam & Pennington 2020, Eqs. 5 and 9.
    """

    zeta: float
    theta0: float
    theta1: float
    theta2: float

    def nu(self, covariance_ratio: float) -> float:
        """ν = E[g φ'(g)] √(Tr[Σ²]/d), weight of the constant feature, for ``covariance_ratio`` = Tr[Σ²]/d."""
        return self.theta1 * math.sqrt(covariance_ratio)


@cache
def activation_constants(activation: Activation) -> ActivationConstants:
    """Return the early-time constants of an activation.

    ζ, ϑ₀, ϑ₁, ϑ₂ of an activation, by name or as a function, in float64.

    ζ = E[φ'(g)], ϑ₀ = E[φ(g)], ϑ₁ = E[g φ'(g)], ϑ₂ = E[(g³/2 − g) φ'(g)] with g ~ N(0, 1).
    By Gauss–Legendre quadrature on each side of 0, where activations with a kink are smooth.

    >>> constants = activation_constants("relu")
    >>> round(constants.zeta, 8), round(constants.theta0, 8), abs(round(constants.theta2, 8))
    (0.5, 0.39894228, 0.0)

    Args:
        activation: a name, or an elementwise JAX function.

    Returns:
        The four constants.

    Raises:
        InvalidInput: for what is neither a name of an activation nor an elementwise function.

    Source: Hu, Xiao, Adlam & Pennington 2020, Eqs. 5 and 9.
    """
    sigma = activation_function(activation)
    nodes, weights = _two_sides()
    with jax.enable_x64(True):
        values = np.asarray(sigma(jax.numpy.asarray(nodes)))
        slopes = np.asarray(jax.vmap(jax.grad(sigma))(jax.numpy.asarray(nodes)))
    return ActivationConstants(
        zeta=float(weights @ slopes),
        theta0=float(weights @ values),
        theta1=float(weights @ (nodes * slopes)),
        theta2=float(weights @ ((nodes**3 / 2 - nodes) * slopes)),
    )


@cache
def _two_sides() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E[·] under N(0, 1), no panel of which crosses 0."""
    nodes, weights = leggauss(NUM_NODES)
    right = (nodes + 1) * (_REACH / 2)
    density = weights * (_REACH / 2) * np.exp(-(right**2) / 2) / math.sqrt(2 * math.pi)
    return np.concatenate([-right[::-1], right]), np.concatenate([density[::-1], density])
