"""Power laws fitted to seeds, always with their interval, and what follows from them; free of JAX."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from scipy.special import stdtrit

Verdict = Literal["yes", "no", "undecided"]
Run = TypeVar("Run")
LINEARITY_LIMIT = -0.25  # halfway between the exponents −1/2 and 0


@dataclass(frozen=True)
class PowerLaw:
    """value ≈ prefactor · width^exponent.

    Attributes:
        exponent: slope of log value against log width by least squares.
        interval: half-width of its confidence interval, from Student's t with num_values − 2 degrees of freedom.
        confidence: level of the interval.
        num_values: values used (one per width and seed).
        num_excluded: values left out because they were not finite, not positive, or marked unusable.
    """

    exponent: float
    interval: float
    prefactor: float
    confidence: float
    num_values: int
    num_excluded: int

    def __call__(self, width: float) -> float:
        return self.prefactor * width**self.exponent


def fit_power_law(
    widths: Sequence[float], values: Sequence[float], *, usable: Sequence[bool] | None = None, confidence: float = 0.95
) -> PowerLaw | None:
    """Fit one exponent to values that may share widths; None for fewer than two different widths or three values.

    ``usable`` marks the values that count (converged runs); the others are excluded and counted.
    """
    x, y = np.asarray(widths, float), np.asarray(values, float)
    keep = np.isfinite(x) & np.isfinite(y) & (y > 0) & (x > 0)
    if usable is not None:
        keep &= np.asarray(usable, bool)
    num, excluded = int(keep.sum()), int((~keep).sum())
    if num < 3 or np.unique(x[keep]).size < 2:
        return None
    log_x, log_y = np.log(x[keep]), np.log(y[keep])
    centered = log_x - log_x.mean()
    spread = float(centered @ centered)
    exponent = float(centered @ log_y) / spread
    offset = float(log_y.mean() - exponent * log_x.mean())
    residual = log_y - offset - exponent * log_x
    standard_error = math.sqrt(float(residual @ residual) / (num - 2) / spread)
    quantile = float(stdtrit(num - 2, 0.5 + confidence / 2))
    return PowerLaw(exponent, quantile * standard_error, math.exp(offset), confidence, num, excluded)


def fit_runs(
    runs: Sequence[tuple[float, Run]], value: Callable[[Run], float], usable: Callable[[Run], bool]
) -> PowerLaw | None:
    """:func:`fit_power_law` to the ``value`` of each run, given with its width."""
    widths, found = [width for width, _ in runs], [run for _, run in runs]
    return fit_power_law(widths, list(map(value, found)), usable=list(map(usable, found)))


def becomes_linear(law: PowerLaw | None) -> Verdict:
    """``yes`` where the whole interval of the exponent of ‖H‖ / ‖∇f‖² lies below −1/4, ``no`` where it lies above.

    A network becomes linear when its Hessian vanishes against its tangent kernel; the exponents of the theory are −1/2,
    up to logarithms, and 0 (Liu, Zhu & Belkin 2020, Table 1). The limit halfway between them is our choice.
    """
    if law is None or not math.isfinite(law.interval):
        return "undecided"
    if law.exponent + law.interval < LINEARITY_LIMIT:
        return "yes"
    return "no" if law.exponent - law.interval > LINEARITY_LIMIT else "undecided"
