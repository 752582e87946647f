"""Features ψ of early-time linear models.

Their Gaussian moments and their distance to the kernel are here, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
from numpy.polynomial.chebyshev import Chebyshev
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from ntk_core.errors import InvalidInput
from ntk_core.kernels import empirical_ntk, infinite_width_ntk
from ntk_core.networks.architectures import (
    Activation,
    FullyConnected,
    Network,
    NetworkParams,
    Pointwise,
    activation_function,
)
from ntk_core.real_numbers import is_finite_number, real_array, real_number, whole_number
from ntk_core.usual_settings import with_usual_settings

NUM_NODES = 256
ROUNDING = 1e-14  # of a sum over the nodes, relative to that of absolute values; seen: 4e-15
# Beyond |g| = 14 the normal density is below 1e-43, negligible for every activation here.
_GAUSSIAN_REACH = 14.0


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
        """Return the weight of the constant feature.

        ν = E[g φ'(g)] √(Tr[Σ²]/d), for ``covariance_ratio`` = Tr[Σ²]/d.
        """
        return self.theta1 * math.sqrt(covariance_ratio)


@with_usual_settings
def activation_constants(activation: Activation) -> ActivationConstants:
    """Return the early-time constants of an activation.

    ζ = E[φ'(g)], ϑ₀ = E[φ(g)], ϑ₁ = E[g φ'(g)], ϑ₂ = E[(g³/2 − g) φ'(g)] with g ~
    N(0, 1). Gauss–Legendre quadrature in float64 on each side of 0, where activations
    with a kink are smooth.

    >>> constants = activation_constants("relu")
    >>> round(constants.zeta, 8), round(constants.theta0, 8), abs(round(constants.theta2, 8))
    (0.5, 0.39894228, 0.0)

    Args:
        activation: a name, or an elementwise JAX function.

    Returns:
        The four constants.

    Raises:
        InvalidInput: unless given the name of an activation or an elementwise function.

    Source: Hu, Xiao, Adlam & Pennington 2020, Eqs. 5 and 9.
    """
    return _constants_of(activation_function(activation))


@cache
def _constants_of(sigma: Pointwise) -> ActivationConstants:
    nodes, weights = _two_sides()
    with jax.enable_x64(True):
        values = np.asarray(sigma(jax.numpy.asarray(nodes)))
        slopes = np.asarray(jax.vmap(jax.grad(sigma))(jax.numpy.asarray(nodes)))

    def mean(terms: np.ndarray) -> float:
        """Return E[terms], with 0 for rounding.

        Moments that vanish by symmetry decide which features there are.
        """
        total = float(weights @ terms)
        return total if abs(total) > ROUNDING * float(weights @ np.abs(terms)) else 0.0

    return ActivationConstants(
        zeta=mean(slopes),
        theta0=mean(values),
        theta1=mean(nodes * slopes),
        theta2=mean((nodes**3 / 2 - nodes) * slopes),
    )


@cache
def _two_sides() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of E[·] under N(0, 1), on panels that do not cross 0."""
    nodes, weights = leggauss(NUM_NODES)
    right = (nodes + 1) * (_GAUSSIAN_REACH / 2)
    density = weights * (_GAUSSIAN_REACH / 2) * np.exp(-(right**2) / 2) / math.sqrt(2 * math.pi)
    return np.concatenate([-right[::-1], right]), np.concatenate([density[::-1], density])


# Derivatives at 0 of analytic functions come from their Chebyshev interpolant on this interval.
_REACH = 0.4
_DEGREE = 24


@dataclass(frozen=True)
class LinearFeatures:
    """ψ(x) = [inputs · x/√d; constant; norm₀ + norm₁ s + norm₂ s²] with s = ‖x‖/√d − 1.

    The weights include the learning rates: descent on ψ has rate 1, and ψ(x)·ψ(x')
    approximates η₁K₁ + η₂K₂.

    Attributes:
        inputs, constant: weights of the first two features.
        norm: (norm₀, norm₁, norm₂) of the norm feature.
    """

    inputs: float
    constant: float
    norm: tuple[float, float, float]

    def __call__(self, x: NDArray) -> NDArray[np.float64]:
        """Return ψ, (n, d + 2), for inputs (n, d) or flattened (n, *input_shape)."""
        inputs = real_array(x, "x")
        if inputs.ndim < 2 or not inputs.size:
            raise InvalidInput("x", f"shape {inputs.shape}", "shape (n, d) with at least one input")
        if not np.isfinite(inputs).all():
            raise InvalidInput("x", "values NaN or infinite", "finite numbers")
        flat = inputs.reshape(len(inputs), -1)
        root = math.sqrt(flat.shape[1])
        excess = np.linalg.norm(flat, axis=1) / root - 1
        by_norm = self.norm[0] + self.norm[1] * excess + self.norm[2] * excess**2
        return np.column_stack(
            [self.inputs / root * flat, np.full(len(flat), self.constant), by_norm]
        )

    def kernel(self, x: NDArray) -> NDArray[np.float64]:
        """ψ(x_i)·ψ(x_j), (n, n)."""
        features = self(x)
        return features @ features.T

    def at_rate(self, rate: float) -> LinearFeatures:
        """Return √rate · ψ: all learning rates multiplied by ``rate``."""
        _check_rates(rate)
        root = math.sqrt(rate)
        norm0, norm1, norm2 = (root * weight for weight in self.norm)
        return LinearFeatures(root * self.inputs, root * self.constant, (norm0, norm1, norm2))

    def naive(self) -> LinearFeatures:
        """Features without the norm: ϑ₁ = ϑ₂ = 0 (Hu, Xiao, Adlam & Pennington 2020, §3.4)."""
        return replace(self, norm=(self.norm[0], 0.0, 0.0))


@with_usual_settings
def two_layer_features(
    constants: ActivationConstants,
    d: int,
    covariance_ratio: float,
    rate_first: float,
    rate_second: float,
) -> LinearFeatures:
    """Return the early-time features of a two-layer network.

    ψ of a two-layer network f = m^(-1/2) vᵀφ(Wx/√d) whose layers are trained at rates η₁ and η₂.

    η₂ = 0: ψ₁(x) = d^(-½)[ζx; ν]. η₁ = 0: ψ₂(x) = [d^(-½)ζx; (2d)^(-½)ν; ϑ₀ + ϑ₁s + ϑ₂s²]. Equal
    rates: ψ(x) = [√(2/d) ζx; √(3/2d) ν; ϑ₀ + ϑ₁s + ϑ₂s²]. Else the kernels of ψ₁ and ψ₂ are summed
    with weights η₁ and η₂.

    >>> from ntk_core.early_time import activation_constants
    >>> features = two_layer_features(activation_constants("relu"), 100, 1.0, 1.0, 1.0)
    >>> features(np.ones((5, 100))).shape[0]
    5

    Args:
        constants: those of the activation, from ``activation_constants``.
        d: dimension of the inputs.
        covariance_ratio: Tr[Σ²]/d for inputs of covariance Σ with Tr Σ = d.
        rate_first, rate_second: η₁ and η₂.

    Returns:
        The weights of ψ.

    Source: Hu, Xiao, Adlam & Pennington 2020, Eqs. 5, 9 and 11, and the remark after Eq. 11.
    """
    _check_dimension(d, covariance_ratio)
    _check_rates(rate_first, rate_second)
    nu = constants.nu(covariance_ratio)
    second = math.sqrt(rate_second)
    return LinearFeatures(
        inputs=constants.zeta * math.sqrt(rate_first + rate_second),
        constant=nu * math.sqrt((rate_first + rate_second / 2) / d),
        norm=(second * constants.theta0, second * constants.theta1, second * constants.theta2),
    )


@with_usual_settings
def deep_features(
    activation: str,
    depth: int,
    d: int,
    covariance_ratio: float,
    rate_hidden: float,
    rate_output: float,
) -> LinearFeatures:
    """Return the early-time features of a deep network.

    ψ of a fully connected network with ``depth`` hidden layers, from its infinite-width kernel.

    That kernel is h(s, ρ, s') with ρ = x·x'/d and s = ‖x‖/√d − 1. For almost orthogonal inputs
    of almost equal norms

        h ≈ t(s) t(s') + h_ρ ρ + ½ h_ρρ Tr[Σ²]/d²,   t(s) = h(s, 0, 0) / √h(0, 0, 0),

    with derivatives at s = s' = ρ = 0 and t up to s². With one hidden layer this is
    :func:`two_layer_features`.

    >>> from ntk_core.early_time import activation_constants
    >>> deep = deep_features("tanh", 1, 100, 1.0, 1.0, 1.0)
    >>> two = two_layer_features(activation_constants("tanh"), 100, 1.0, 1.0, 1.0)
    >>> round(deep.inputs, 6) == round(two.inputs, 6)
    True

    Args:
        activation: its name.
        depth: number of hidden layers.
        d: dimension of the inputs.
        covariance_ratio: Tr[Σ²]/d for inputs of covariance Σ with Tr Σ = d.
        rate_hidden, rate_output: learning rates of hidden and output layers.

    Returns:
        The weights of ψ.

    Source: expansion of Hu, Xiao, Adlam & Pennington 2020, §4.1, evaluated here.
    """
    _check_dimension(d, covariance_ratio)
    _check_rates(rate_hidden, rate_output)
    parts = []
    for part, rate in (("hidden", rate_hidden), ("last", rate_output)):
        net = FullyConnected(
            width=1, depth=depth, activation=activation, trained=part, use_bias=False
        )
        parts.append(rate * _expansion(net))
    at_origin, slope, curvature, norm1, norm2 = map(float, parts[0] + parts[1])
    root = math.sqrt(max(at_origin, 0.0))
    # For odd activations h(0, 0, 0) is rounding only.
    norm = (root, norm1 / root, norm2 / root) if at_origin > 1e-12 * slope else (0.0, 0.0, 0.0)
    return LinearFeatures(
        inputs=math.sqrt(max(slope, 0.0)),
        constant=math.sqrt(max(curvature, 0.0) / 2 * covariance_ratio / d),
        norm=norm,
    )


def _expansion(net: FullyConnected) -> NDArray[np.float64]:
    """(h, ∂h/∂ρ, ∂²h/∂ρ², ∂h/∂s, ½ ∂²h/∂s²) of the infinite-width kernel at s = s' = ρ = 0."""
    grid = _REACH * np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    ones = np.ones_like(grid)
    zeros = np.zeros_like(grid)
    turned = np.stack([grid, np.sqrt(1 - grid**2)], axis=1)
    stretched = np.stack([zeros, ones + grid], axis=1)
    reference = np.array([[1.0, 0.0]])
    with jax.enable_x64(True):
        values = np.asarray(
            infinite_width_ntk(
                net, math.sqrt(2) * reference, math.sqrt(2) * np.r_[turned, stretched]
            )
        )
    by_angle, by_norm = (
        Chebyshev.fit(grid, part, _DEGREE, domain=[-_REACH, _REACH])
        for part in np.split(values[0], 2)
    )
    derivatives = [by_angle.deriv(order)(0.0) for order in (1, 2)]
    return np.array(
        [by_angle(0.0), *derivatives, *(by_norm.deriv(order)(0.0) / order for order in (1, 2))]
    )


def _check_dimension(d: int, covariance_ratio: float) -> None:
    whole_number(d, "d", 1)
    real_number(covariance_ratio, "covariance_ratio", 0)


def _check_rates(*rates: float) -> None:
    are_rates = all(is_finite_number(rate) and rate >= 0 for rate in rates)
    if not (are_rates and max(rates) > 0):
        raise InvalidInput(
            "learning_rate", rates, "finite rates, none below 0 and at least one above it"
        )


_OUTPUT_LAYER = "output"


class KernelNorms(NamedTuple):
    """Spectral norms of K, ψψᵀ, K − ψψᵀ, and that without the norm feature; ‖K − ψψᵀ‖_F."""

    kernel: float
    linear: float
    difference: float
    naive_difference: float
    frobenius_difference: float


def kernel_norms(kernel: NDArray, features: LinearFeatures, x: NDArray) -> KernelNorms:
    """Compare a kernel (n, n) at these inputs with the linear model's.

    Largest eigenvalues come from Lanczos iterations, which avoid cubic cost in n.

    Source: Hu, Xiao, Adlam & Pennington 2020, Props. 3.4, D.8 and 4.1, Fig. 5.
    """
    kernel = np.asarray(kernel, np.float64)
    linear = features.kernel(x)
    difference = kernel - linear
    compared = (kernel, linear, difference, kernel - features.naive().kernel(x))
    return KernelNorms._make([*map(spectral_norm, compared), float(np.linalg.norm(difference))])


def weighted_kernel(
    net: Network, params: NetworkParams, x: NDArray, rate_hidden: float, rate_output: float
) -> NDArray[np.float64]:
    """Return η₁K₁ + η₂K₂ at w₀, (n, n).

    Kernels of hidden and output layers, weighted by their rates.
    """
    total = np.zeros((len(x), len(x)))
    for name, part in empirical_ntk(net, params, x, per_layer=True).items():
        total += (rate_output if name.endswith(_OUTPUT_LAYER) else rate_hidden) * np.asarray(part)[
            :, :, 0, 0
        ]
    return total


def spectral_norm(matrix: NDArray[np.float64]) -> float:
    """Return ‖A‖ of a symmetric matrix; NaN unless finite."""
    if not np.isfinite(matrix).all():
        return math.nan
    if len(matrix) < 3 or not matrix.any():  # Lanczos iterations need a starting direction
        return float(np.linalg.norm(matrix, 2))
    start = np.random.default_rng(0).standard_normal(len(matrix))  # reproducible
    return float(abs(eigsh(matrix, k=1, which="LM", v0=start, return_eigenvectors=False)[0]))
