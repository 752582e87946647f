"""K(x, x) of random ReLU networks, drawn without their weights, and its scatter; free of JAX."""

import math
from collections.abc import Callable

import numpy as np

from linearity_lab.runs import Value
from ntk_core.stored_numbers import NonNegative

RESAMPLES = 400
LEVEL = 0.95
# Above it one network in thousands dominates the second moment, which resampling
# cannot show. Our choice.
MOST_OF_ONE = 0.1

Noise = Callable[[tuple[int, int]], np.ndarray]


def random_kernels(depth: int, width: int, count: int, noise: Noise) -> np.ndarray:
    """K(x, x) d / |x|² of ``count`` random networks.

    f = v·a_L / √m, a_l = max(z_l, 0), z_l = √(2 / fan_in) W_l a_(l−1).

    All layers are trained, W, v ~ N(0, 1), no biases. K = q_L + 2 Σ_l q_(l−1) |δ_l|² with
    q_l = |a_l|² / m, q_0 = 1 and δ_l = ∂f/∂z_l. Only z_l and δ_l are drawn, 2 L m numbers in place
    of L m² weights: given a_(l−1), z_l is normal with variance 2 q_(l−1). Given z = √(2/m) W a, W
    is random only orthogonal to a: Wᵀδ is |δ| g orthogonal to a, with normal g, and (z·δ) √(m/2) /
    |a|² along a. The distribution is exact (docs/math/depth-and-width.md).

    Args:
        noise: shape → independent standard normal numbers, first for z_1 … z_L, then for v, then
            for Wᵀδ / |δ| of the layers L … 2.

    Returns:
        (count,); 0 for networks with a dead layer.
    """
    before = []
    squares = [np.ones(count)]
    for _ in range(depth):
        z = noise((count, width)) * np.sqrt(2 * squares[-1])[:, None]
        before.append(z)
        squares.append(_norms(np.maximum(z, 0)) / width)
    delta = noise((count, width)) * (before[-1] > 0) / math.sqrt(width)
    norms = _norms(delta)
    kernels: np.ndarray = squares[-1] + 2 * squares[-2] * norms
    for layer in range(depth - 1, 0, -1):
        below = np.maximum(before[layer - 1], 0)
        length = width * np.where(squares[layer] > 0, squares[layer], 1)
        back = noise((count, width)) * np.sqrt(norms)[:, None]
        along = _products(before[layer], delta) * math.sqrt(width / 2) - _products(back, below)
        delta = (
            (back + (along / length)[:, None] * below)
            * (before[layer - 1] > 0)
            * math.sqrt(2 / width)
        )
        norms = _norms(delta)
        kernels = kernels + 2 * squares[layer - 1] * norms
    return kernels


def second_moment(depth: int, width: int) -> float:
    """E[K²] / E[K]² of these networks to leading order in 1/m.

    Exact for one hidden layer, where it is 1 + 3/m.

    (L + 1)⁻² Σ_(l, l') (1 + 5/m)^(L − |l − l'|) (1 + 1/m)^|l − l'|, over pairs of layers in K = Σ_l
    K_l. Two parts share the hidden layers below or above both, but not those between.

    Source: docs/math/depth-and-width.md; the exponent 5 is that of Hanin & Nica 2020, Theorem 1.
    """
    shared = 1 + 5 / width
    between = 1 + 1 / width
    apart = [(1 if gap == 0 else 2) * (depth + 1 - gap) for gap in range(depth + 1)]
    terms = (pairs * shared ** (depth - gap) * between**gap for gap, pairs in enumerate(apart))
    return math.fsum(terms) / (depth + 1) ** 2


def limit_moment(beta: float) -> float:
    """:func:`second_moment` for L, m → ∞ at β = L/m.

    (e^(5β) (4β − 1) + e^β) / (8β²), 1 at β = 0.
    """
    if beta < 1e-4:  # cancellation below; 11/3 is the slope at 0
        return 1 + 11 / 3 * beta
    return (math.exp(5 * beta) * (4 * beta - 1) + math.exp(beta)) / (8 * beta**2)


class Scatter(Value):
    """Scatter of numbers around their mean.

    Attributes:
        mean: their mean.
        cv_squared: squared coefficient of variation, Var / mean².
        low, high: its bootstrap percentile interval, too short for heavy tails.
        largest_share: share of the largest number in the sum of squares.
        log_variance: variance of the logarithms of positive numbers, robust to heavy tails.
    """

    mean: NonNegative
    cv_squared: NonNegative
    low: NonNegative
    high: NonNegative
    largest_share: NonNegative
    log_variance: NonNegative


def scatter(values: np.ndarray, random: np.random.Generator) -> Scatter:
    """Return moments of ``values`` (n,) with a bootstrap interval."""
    values = values.astype(np.float64)
    scaled = values / (values.max() or 1.0)  # powers of huge numbers stay finite
    resampled = [
        _cv_squared(scaled[random.integers(0, len(scaled), len(scaled))]) for _ in range(RESAMPLES)
    ]
    low, high = (np.nanquantile if values.any() else np.quantile)(
        resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    )
    squares = scaled**2
    return Scatter(
        mean=float(values.mean()),
        cv_squared=_cv_squared(scaled),
        low=float(low),
        high=float(high),
        largest_share=float(squares.max() / (squares.sum() or 1.0)),
        log_variance=float(np.log(values[values > 0]).var(ddof=1))
        if (values > 0).sum() > 1
        else math.nan,
    )


def _cv_squared(values: np.ndarray) -> float:
    return float(values.var(ddof=1) / values.mean() ** 2) if values.any() else math.nan


def _norms(rows: np.ndarray) -> np.ndarray:
    return _products(rows, rows)


def _products(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.einsum("ij,ij->i", rows, others)
    return found
