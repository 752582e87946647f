"""Coverage of 95% intervals of an exponent: four methods, five regimes.

Runs are simulated: log value = exponent · log width + error, over two decades of
widths. Nothing is timed.
"""

import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from benchmarks.measure import Row, Settings
from ntk_core.fits import PowerLaw, fit_power_law

EXPONENT = -0.7
DECADES = 2.0
SCATTER = 0.2
NUM_SEEDS = (3, 5, 10)
NUM_WIDTHS = (4, 10)
TRIALS = 1000
RESAMPLES = 400
PROCESSES = 4
CHOSEN = "clustered by seed, CR2"


@dataclass(frozen=True)
class Sample:
    """Converged runs: log width x, log value y, and seed of each."""

    x: np.ndarray
    y: np.ndarray
    seed: np.ndarray

    @cached_property
    def weights(self) -> np.ndarray:
        """Least-squares weights: the exponent is their product with y."""
        centered = self.x - self.x.mean()
        return centered / (centered @ centered)

    @property
    def exponent(self) -> float:
        return float(self.weights @ self.y)

    @cached_property
    def residuals(self) -> np.ndarray:
        return self.y - self.y.mean() - self.exponent * (self.x - self.x.mean())

    @cached_property
    def law(self) -> PowerLaw | None:
        """Fit of the lab."""
        return fit_power_law(np.exp(self.x), np.exp(self.y), seeds=self.seed.tolist())

    def sums(self) -> np.ndarray:
        """Sums of 1, x, y, x², xy, y², one row per seed."""
        columns = np.stack(
            [np.ones_like(self.x), self.x, self.y, self.x**2, self.x * self.y, self.y**2], 1
        )
        return np.array([columns[self.seed == seed].sum(0) for seed in np.unique(self.seed)])


Interval = tuple[float, float]


def ordinary(sample: Sample, _: np.random.Generator) -> Interval:
    """Independent errors of one size: Student's t, n − 2 degrees."""
    degrees = sample.x.size - 2
    error = np.linalg.norm(sample.residuals) * np.linalg.norm(sample.weights) / math.sqrt(degrees)
    return _around(sample.exponent, float(error), degrees)


def cr2(sample: Sample, _: np.random.Generator) -> Interval:
    """Result of :func:`ntk_core.fits.fit_power_law`."""
    law = sample.law
    return (
        (math.nan, math.nan)
        if law is None
        else (law.exponent - law.interval, law.exponent + law.interval)
    )


def cr3(sample: Sample, _: np.random.Generator) -> Interval:
    """Jackknife over seeds, Student's t."""
    sums = sample.sums()
    slopes = _slopes(sums.sum(0) - sums)
    whole = float(_slopes(sums.sum(0)))
    degrees = len(sums) - 1
    return _around(whole, math.sqrt(degrees / len(sums) * ((slopes - whole) ** 2).sum()), degrees)


def bootstrap(sample: Sample, rng: np.random.Generator) -> Interval:
    """Percentiles of the exponent over seeds drawn with replacement."""
    sums = sample.sums()
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES) @ sums
    low, high = np.nanquantile(_slopes(drawn), [0.025, 0.975])
    return float(low), float(high)


METHODS: dict[str, Callable[[Sample, np.random.Generator], Interval]] = {
    "independent, one size (OLS)": ordinary,
    CHOSEN: cr2,
    "clustered by seed, CR3": cr3,
    "bootstrap of seeds": bootstrap,
}


def independent(rng: np.random.Generator, x: np.ndarray, seeds: int) -> np.ndarray:
    """Errors of one size."""
    return rng.normal(0, SCATTER, (seeds, x.size))


def heteroscedastic(rng: np.random.Generator, x: np.ndarray, seeds: int) -> np.ndarray:
    """Errors that decrease as width^−0.4, sixfold over the sweep."""
    return rng.normal(0, 2 * SCATTER, (seeds, x.size)) * np.exp(-0.4 * (x - x[0]))


def correlated(rng: np.random.Generator, x: np.ndarray, seeds: int) -> np.ndarray:
    """A random offset and slope for every seed."""
    offset = rng.normal(0, SCATTER, (seeds, 1))
    slope = rng.normal(0, SCATTER / 4, (seeds, 1))
    return offset + slope * (x - x.mean()) + rng.normal(0, SCATTER / 2, (seeds, x.size))


# Regime → errors, and the chance by which a run at the narrower half of the widths is
# dropped, given its error.
REGIMES: dict[str, tuple[Callable[..., np.ndarray], Callable[[np.ndarray], np.ndarray] | None]] = {
    "independent": (independent, None),
    "scatter shrinks with width": (heteroscedastic, None),
    "correlated within seeds": (correlated, None),
    "dropped by chance at one end": (independent, lambda error: np.full_like(error, 0.4)),
    "dropped by value at one end": (independent, lambda error: np.where(error > 0, 0.6, 0.2)),
}


def draw(regime: str, rng: np.random.Generator, seeds: int, widths: int) -> Sample:
    """Draw one sweep with at least 3 seeds and 4 widths."""
    errors, chance = REGIMES[regime]
    x = np.linspace(0, DECADES * math.log(10), widths)
    while True:
        error = errors(rng, x, seeds)
        kept = np.ones_like(error, bool)
        if chance is not None:
            kept = rng.random(error.shape) >= np.where(
                np.arange(widths) < widths / 2, chance(error), 0.0
            )
        row, column = np.nonzero(kept)
        if np.unique(row).size >= 3 and np.unique(column).size >= 4:
            return Sample(x[column], EXPONENT * x[column] + error[kept], row)


def covered(regime: str, seeds: int, widths: int, trials: int) -> Row:
    """Return coverage and half-width of every method in one regime."""
    rng = np.random.default_rng([sum(map(ord, regime)), seeds, widths])
    samples = [draw(regime, rng, seeds, widths) for _ in range(trials)]
    # Dropping runs by their value biases the exponent: the mean fit to kept runs.
    of_kept = EXPONENT
    if REGIMES[regime][1] is not None:
        of_kept = float(
            np.mean([draw(regime, rng, seeds, widths).exponent for _ in range(2 * trials)])
        )
    methods: Row = {}
    for name, method in METHODS.items():
        low, high = np.array([method(sample, rng) for sample in samples]).T
        shares = [float(np.mean((low <= each) & (each <= high))) for each in (EXPONENT, of_kept)]
        methods[name] = {
            "covers": shares[0],
            "covers_of_kept": shares[1],
            "half_width": float(np.mean(high - low) / 2),
        }
    bends = sum(each.law is not None and each.law.bends for each in samples) / trials
    sizes = {"regime": regime, "seeds": seeds, "widths": widths}
    return {**sizes, "exponent_of_kept": of_kept, "methods": methods, "bends": bends}


def measure(settings: Settings) -> Row:
    """Every method in every regime, for few and many seeds and widths."""
    sizes = [(s, w) for s in NUM_SEEDS for w in NUM_WIDTHS] if not settings.quick else [(3, 4)]
    trials = 20 if settings.quick else TRIALS
    with ProcessPoolExecutor(PROCESSES) as pool:
        begun = [
            pool.submit(covered, regime, *size, trials) for regime in REGIMES for size in sizes
        ]
        rows = [each.result() for each in begun]
    return {"trials": trials, "chosen": CHOSEN, "rows": rows}


def _slopes(sums: np.ndarray) -> np.ndarray:
    n, x, y, xx, xy, _ = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (n * xy - x * y) / (n * xx - x**2)


def _around(center: float, error: float, degrees: float) -> Interval:
    half = float(stdtrit(degrees, 0.975)) * float(error)
    return float(center) - half, float(center) + half
