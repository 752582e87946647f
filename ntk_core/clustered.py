"""Least squares with errors correlated within clusters: intervals for few clusters."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit


@dataclass(frozen=True)
class Estimate:
    """One coefficient of a least-squares fit.

    Attributes:
        value: the coefficient.
        standard_error: square root of its CR2 variance.
        degrees: of freedom of Student's t, by Bell & McCaffrey.
    """

    value: float
    standard_error: float
    degrees: float

    def half_width(self, confidence: float = 0.95) -> float:
        """Return the half-width of the confidence interval."""
        return float(stdtrit(self.degrees, 0.5 + confidence / 2)) * self.standard_error


def least_squares(
    design: np.ndarray, y: np.ndarray, clusters: Sequence[Hashable], index: int
) -> tuple[np.ndarray, Estimate | None]:
    """Return all coefficients of y ≈ design · b, and the ``index``-th with its cluster-robust error.

    V = Σ_g (w_gᵀ e_g)², w_g = A_g X_g (XᵀX)⁻¹ c, A_g = (I − H_gg)^{−1/2}, which is unbiased for independent errors
    of one size; the degrees of freedom are (Σ λ)² / Σ λ² over the eigenvalues λ of V as a quadratic form in such
    errors. If every cluster identifies the coefficient, it is the t-interval of the clusters' coefficients; with
    clusters of one it is HC2.

    Args:
        design: X (n, p) of full column rank.
        y: (n,).
        clusters: of each row; errors of different clusters are independent.

    Returns:
        b (p,) and the estimate; None with fewer than two clusters or without degrees of freedom.

    Source: Bell & McCaffrey 2002, §3; Imbens & Kolesár 2016, §II; Pustejovsky & Tipton 2018, §3.
    """
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ y)
    residual, direction = y - design @ coefficients, inverse[index]
    numbers: dict[Hashable, int] = {}
    labels = np.array([numbers.setdefault(each, len(numbers)) for each in clusters])
    weights, products, variance = [], [], 0.0
    for label in range(len(numbers)):
        rows = labels == label
        own = design[rows]
        weight = _adjusted(np.eye(len(own)) - own @ inverse @ own.T, own @ direction)
        variance += float(weight @ residual[rows]) ** 2
        weights.append(float(weight @ weight))
        products.append(own.T @ weight)
    stacked = np.array(products)
    form = np.diag(weights) - stacked @ inverse @ stacked.T
    total, squares = float(np.trace(form)), float((form**2).sum())
    if len(weights) < 2 or not total > 1e-12 * sum(weights):
        return coefficients, None
    return coefficients, Estimate(float(coefficients[index]), float(np.sqrt(variance)), total**2 / squares)


def _adjusted(kept: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """kept^{−1/2} · vector, without directions determined by one cluster, which have no residual."""
    values, vectors = np.linalg.eigh(kept)
    scale = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
    return vectors @ (scale * (vectors.T @ vector))
