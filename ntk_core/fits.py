"""Power laws fitted to runs, with intervals; without JAX."""

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ntk_core.errors import InvalidInput
from ntk_core.numbers import num_runs, percent, signed
from ntk_core.real_numbers import real_array, real_number

Verdict = Literal["yes", "no", "undecided"]
LINEARITY_LIMIT = -0.25  # halfway between the exponents −1/2 and 0
# For an interval.
LEAST_SEEDS = 3
LEAST_WIDTHS = 4
NO_POWER_LAW = ("diverged", "dead")  # outcomes excluded from exponents
LEAST_BEND = 0.01  # smallest visible change of slope over the sweep


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


class Seeded(Protocol):
    """A run with a seed."""

    @property
    def seed(self) -> int: ...


Run = TypeVar("Run", bound=Seeded)


@dataclass(frozen=True)
class LocalSlope:
    """Slope between mean logarithms at two widths, or fitted between them."""

    low: float
    high: float
    slope: float


@dataclass(frozen=True)
class PowerLaw:
    """value ≈ prefactor · width^exponent.

    Attributes:
        exponent: slope of log value against log width by least squares.
        interval: half-width of its confidence interval, robust to scatter that differs between
            widths and is shared by the runs of a seed (:func:`least_squares`); NaN for fewer than 3
            seeds or 4 widths. It is conditional on the runs used.
        confidence: level of the interval.
        num_values: values used (one per width and seed).
        num_excluded: values excluded as not finite, not positive, or marked unusable.
        num_seeds, num_widths: among the values used.
        local: slopes between neighbouring widths, ascending.
        last: slope over the last decade of widths, or between the last two in shorter sweeps; None
            if that is the whole sweep.
        bends: whether the interval of the coefficient of squared log width excludes 0, by the same
            errors.
        with_all: exponent including unusable values except those of diverged runs; NaN for none.
    """

    exponent: float
    interval: float
    prefactor: float
    confidence: float
    num_values: int
    num_excluded: int
    num_seeds: int = 0
    num_widths: int = 0
    local: tuple[LocalSlope, ...] = ()
    last: LocalSlope | None = None
    bends: bool = False
    with_all: float = math.nan

    def __call__(self, width: float) -> float:
        return self.prefactor * width**self.exponent


def fit_power_law(
    widths: Sequence[float],
    values: Sequence[float],
    *,
    seeds: Sequence[Hashable] | None = None,
    usable: Sequence[bool] | None = None,
    diverged: Sequence[bool] | None = None,
    swept: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> PowerLaw | None:
    """Fit one exponent; None for fewer than two different widths or three values.

    Args:
        seeds: of the values; those of one seed may be correlated. None for independent values,
            such as repeated times.
        usable: values to fit (converged runs); others are excluded and counted.
        diverged: values also excluded from ``with_all``.
        swept: abscissas of local slopes if ``widths`` differ between runs; ``widths`` by default.

    Raises:
        InvalidInput: for values that are no numbers, and lists of different lengths.
    """
    x, y = _checked_points(widths, values, confidence)
    _check_lengths(len(x), seeds=seeds, usable=usable, diverged=diverged, swept=swept)
    finite = np.isfinite(x) & np.isfinite(y) & (y > 0) & (x > 0)
    keep = finite if usable is None else finite & np.asarray(usable, bool)
    num = int(keep.sum())
    excluded = int((~keep).sum())
    if num < 3 or np.unique(x[keep]).size < 2:
        return None
    log_x = np.log(x[keep])
    log_y = np.log(y[keep])
    center = log_x.mean()
    labels = list(range(x.size)) if seeds is None else list(seeds)
    clusters = [label for label, kept in zip(labels, keep, strict=True) if kept]
    at = x if swept is None else np.asarray(swept, float)
    found = np.unique(at[keep])
    powers = np.stack([np.ones(num), log_x - center, (log_x - center) ** 2], axis=1)
    (offset, exponent), estimate = least_squares(powers[:, :2], log_y, clusters, 1)
    num_seeds = len(set(clusters))
    half = math.nan
    bends = False
    if num_seeds >= LEAST_SEEDS and found.size >= LEAST_WIDTHS and estimate is not None:
        half = estimate.half_width(confidence)
        square = least_squares(powers, log_y, clusters, 2)[1]
        bends = _is_visible_bend(square, float(np.ptp(log_x)), confidence)
    # Of all finite values that did not diverge, if those are more.
    with_all = math.nan
    others = finite if diverged is None else finite & (keep | ~np.asarray(diverged, bool))
    if others.sum() > num:
        with_all = _slope(np.log(x[others]), np.log(y[others]))
    return PowerLaw(
        exponent=float(exponent),
        interval=half,
        prefactor=math.exp(offset - exponent * center),
        confidence=confidence,
        num_values=num,
        num_excluded=excluded,
        num_seeds=num_seeds,
        num_widths=int(found.size),
        local=_local(at[keep], log_x, log_y),
        last=_last(at[keep], log_x, log_y),
        bends=bends,
        with_all=with_all,
    )


def _checked_points(
    widths: Sequence[float], values: Sequence[float], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return widths and values as arrays of one length, and refuse other confidences."""
    x = real_array(widths, "widths")
    if x.ndim != 1:
        raise InvalidInput("widths", f"shape {x.shape}", "a list of numbers")
    y = real_array(values, "values", x.shape)
    if not 0 < real_number(confidence, "confidence") < 1:
        raise InvalidInput("confidence", confidence, "a number between 0 and 1")
    return x, y


def _check_lengths(num_widths: int, **lists: Sequence[object] | None) -> None:
    for name, given in lists.items():
        if given is not None and len(given) != num_widths:
            allowed = f"{num_widths}, one for each width"
            raise InvalidInput(name, f"{len(given)} entries", allowed)


def _is_visible_bend(square: Estimate | None, length: float, confidence: float) -> bool:
    """Whether the slope changes over the sweep by more than its error and by a visible amount.

    Args:
        square: the coefficient of (ln m)².
        length: of the sweep, in ln m.
    """
    if square is None or 2 * abs(square.value) * length < LEAST_BEND:
        return False
    return abs(square.value) > square.half_width(confidence)


def fit_runs(
    runs: Sequence[tuple[float, Run]], value: Callable[[Run], float], usable: Callable[[Run], bool]
) -> PowerLaw | None:
    """Apply :func:`fit_power_law` to the ``value`` of each (width, run)."""
    widths = [width for width, _ in runs]
    found = [run for _, run in runs]
    return fit_power_law(
        widths,
        list(map(value, found)),
        seeds=[run.seed for run in found],
        usable=list(map(usable, found)),
        diverged=[getattr(run, "outcome", "") in NO_POWER_LAW for run in found],
    )


def exponent_words(law: PowerLaw, digits: int = 2) -> str:
    """Format a fitted exponent with its interval: ``−0.52 ± 0.04``."""
    return signed(law.exponent, digits) + (
        f" ± {law.interval:.{digits}f}" if math.isfinite(law.interval) else ""
    )


def remarks(law: PowerLaw, swept: str = "widths", *, brief: bool = False) -> list[str]:
    """Return remarks on an exponent.

    Why it has no interval, its slope at the end, and whether it bends.

    ``swept`` names the swept values; ``brief`` omits what an interval needs.
    """
    found = []
    if not math.isfinite(law.interval):
        few = [f"{LEAST_SEEDS} seeds"] if law.num_seeds < LEAST_SEEDS else []
        few += [f"{LEAST_WIDTHS} {swept}"] if law.num_widths < LEAST_WIDTHS else []
        found.append(
            "no interval" if brief else f"no interval (needs {' and '.join(few) or 'more runs'})"
        )
    if law.last is not None and signed(law.last.slope) != signed(law.exponent):
        where = "last decade" if law.last.high >= 5 * law.last.low else f"last two {swept}"
        found.append(f"{where} {signed(law.last.slope)}")
    if law.bends:
        found.append("not yet settled")
    return found


def condition(law: PowerLaw) -> str:
    """Describe the runs of an exponent, and its value with excluded ones; empty if all are used."""
    if not law.num_excluded:
        return ""
    words = f"over {law.num_values} converged runs"
    if math.isfinite(law.with_all) and signed(law.with_all) != signed(law.exponent):
        words += f", {signed(law.with_all)} with the excluded ones"
    return words


def law_words(law: PowerLaw, name: str) -> str:
    """Return an exponent in words, with ``name`` for m.

    ``m^(−0.500 ± 0.030), 95% interval, 12 runs, 1 excluded; last decade −0.45; not yet settled``.
    """
    level = f", {percent(law.confidence)} interval" if math.isfinite(law.interval) else ""
    words = (
        f"{name}^({exponent_words(law, 3)}){level}, {num_runs(law.num_values)}, "
        f"{law.num_excluded} excluded"
    )
    return "; ".join(
        [
            words,
            *filter(None, [*remarks(law, "widths" if name == "m" else "values"), condition(law)]),
        ]
    )


def exponent_line(title: str, law: PowerLaw | None, name: str = "m") -> str:
    """``linear output: ΔK ∝ m^(−0.500 ± 0.030), …``, or that no exponent was fitted."""
    if law is None:
        return f"{title}: no exponent in {name} fitted (three runs at two values are needed)"
    return f"{title} ∝ {law_words(law, name)}"


def becomes_linear(law: PowerLaw | None) -> Verdict:
    """Return ``yes`` if the interval of the exponent of ‖H‖ / ‖∇f‖² is below −1/4, ``no`` if above.

    A network becomes linear if its Hessian vanishes relative to its tangent kernel. Theory gives
    exponents −1/2, up to logarithms, and 0 (Liu, Zhu & Belkin 2020, Table 1); the limit halfway
    between them is our choice.
    """
    if law is None or not math.isfinite(law.interval):
        return "undecided"
    if law.exponent + law.interval < LINEARITY_LIMIT:
        return "yes"
    return "no" if law.exponent - law.interval > LINEARITY_LIMIT else "undecided"


def _local(at: np.ndarray, log_x: np.ndarray, log_y: np.ndarray) -> tuple[LocalSlope, ...]:
    means = [
        (width, log_x[at == width].mean(), log_y[at == width].mean()) for width in np.unique(at)
    ]
    return tuple(
        LocalSlope(float(low), float(high), float((up - down) / (right - left)))
        for (low, left, down), (high, right, up) in itertools.pairwise(means)
        if right > left
    )


def _last(at: np.ndarray, log_x: np.ndarray, log_y: np.ndarray) -> LocalSlope | None:
    found = np.unique(at)
    is_long = found[-1] > 10.001 * found[0]
    within = found[found >= found[-1] / 10.001] if is_long else found[-2:]
    within = within if within.size > 1 else found[-2:]
    if within.size == found.size:
        return None
    rows = at >= within[0]
    slope = _slope(log_x[rows], log_y[rows])
    return LocalSlope(float(within[0]), float(within[-1]), slope) if math.isfinite(slope) else None


def _slope(log_x: np.ndarray, log_y: np.ndarray) -> float:
    centered = log_x - log_x.mean()
    spread = float(centered @ centered)
    return float(centered @ log_y) / spread if spread > 0 else math.nan


def least_squares(
    design: np.ndarray, y: np.ndarray, clusters: Sequence[Hashable], index: int
) -> tuple[np.ndarray, Estimate | None]:
    """Return all coefficients of y ≈ design · b.

    The ``index``-th comes with its cluster-robust error.

    V = Σ_g (w_gᵀ e_g)², w_g = A_g X_g (XᵀX)⁻¹ c, A_g = (I − H_gg)^{−1/2}, which is unbiased for
    independent errors of one size; the degrees of freedom are (Σ λ)² / Σ λ² over the eigenvalues λ
    of V as a quadratic form in such errors. If every cluster identifies the coefficient, it is the
    t-interval of the clusters' coefficients; with clusters of one it is HC2.

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
    residual = y - design @ coefficients
    direction = inverse[index]
    numbers: dict[Hashable, int] = {}
    labels = np.array([numbers.setdefault(each, len(numbers)) for each in clusters])
    weights = []
    products = []
    variance = 0.0
    for label in range(len(numbers)):
        rows = labels == label
        own = design[rows]
        # (I − H_gg)^{−1/2} · X_g (XᵀX)⁻¹ c, without directions determined by one cluster, which
        # have no residual
        values, vectors = np.linalg.eigh(np.eye(len(own)) - own @ inverse @ own.T)
        scale = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
        weight = vectors @ (scale * (vectors.T @ (own @ direction)))
        variance += float(weight @ residual[rows]) ** 2
        weights.append(float(weight @ weight))
        products.append(own.T @ weight)
    stacked = np.array(products)
    form = np.diag(weights) - stacked @ inverse @ stacked.T
    total = float(np.trace(form))
    squares = float((form**2).sum())
    if len(weights) < 2 or not total > 1e-12 * sum(weights):
        return coefficients, None
    return coefficients, Estimate(
        float(coefficients[index]), float(np.sqrt(variance)), total**2 / squares
    )
