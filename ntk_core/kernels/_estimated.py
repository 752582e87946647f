"""Frobenius norms of two kernels and of their difference from products with random vectors.

The span of a sketch of both is summed exactly, the rest estimated
(docs/math/kernel_without_jacobians.md).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from ntk_core.kernels._products import Flat
from ntk_core.progress import Progress

SKETCHED = 4  # probes per vector of the sketch; our choice
MIN_PROBES = 4
Sums = list[float]  # ‖K₀‖², ⟨D, K₀⟩, ‖D‖², yᵀK₀y, yᵀDy


class EstimatedSums(NamedTuple):
    """Estimates of the sums, and the error of √(‖D‖² / ‖K₀‖²).

    The error is a standard error and the half-width of the 95% interval.
    """

    sums: Sums
    error: float
    interval: float


def estimated_sums(
    product0: Callable[[Flat], Flat],
    product1: Callable[[Flat], Flat],
    size: int,
    y: np.ndarray | None,
    probes: int,
    seed: int,
    progress: Progress | None = None,
) -> EstimatedSums:
    """Estimate ‖A‖² for K₀ and D.

    ‖A‖² = ‖A Q‖² + E ‖A (1 − QQᵀ) v‖², Q an orthonormal basis of K₀ g and D g for a few random g.
    """
    progress = progress or Progress()
    rng = np.random.default_rng(seed)
    num_sketched = probes // SKETCHED
    num_products = 3 * num_sketched + probes + (y is not None)
    done = 0

    def both(v: Flat) -> tuple[Flat, Flat]:
        """(K₀ v, D v)."""
        nonlocal done
        first = product0(v)
        moved = product1(v) - first
        done += 1
        progress.report(done / num_products, f"product {done:,} of {num_products:,}")
        return first, moved

    def inner(v: Flat) -> Float[np.ndarray, "3"]:
        """‖K₀ v‖², ⟨D v, K₀ v⟩ and ‖D v‖²."""
        first, moved = both(v)
        return np.array([first @ first, moved @ first, moved @ moved])

    def signs() -> Flat:
        return rng.choice((-1.0, 1.0), size)

    sketch: list[Flat] = []
    for _ in range(num_sketched):
        sketch += both(signs())
    basis = np.linalg.qr(np.stack(sketch, axis=1))[0]
    of_basis = np.zeros(3)
    for q in basis.T:
        of_basis += inner(q)
    rows = []  # of the rest, one per probe
    for _ in range(probes):
        v = signs()
        rows.append(inner(v - basis @ (basis.T @ v)))
    square, cross, moved = of_basis + np.mean(rows, axis=0)
    seen = (math.nan, math.nan)
    if y is not None:
        first, change = both(y.ravel())
        seen = (float(y.ravel() @ first), float(y.ravel() @ change))
    error = 0.0
    if moved > 0 and square > 0:
        ratio = moved / square
        apart = np.array([row[2] - ratio * row[0] for row in rows])
        error = float(np.std(apart, ddof=1) / math.sqrt(probes) / square / (2 * math.sqrt(ratio)))
    sums = [float(square), float(cross), float(moved), *seen]
    return EstimatedSums(sums, error, float(stdtrit(probes - 1, 0.975)) * error)
