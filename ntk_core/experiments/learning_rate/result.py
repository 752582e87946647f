"""Results of ``learning_rate``: how each model ended at each rate, for each width and seed."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

from ntk_core.experiments._trained_sweep import TrainedPoint
from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.runs import ResultValue, Value, between, columns, finite_sup, law_words
from ntk_core.runs.columns import Column, text_table

RateOutcome = Literal["monotone", "catapult", "dead", "diverged"]
RATE_OUTCOMES: dict[str, str] = {
    "monotone": "the loss never rose above its start",
    "catapult": "the loss rose above its start and came down below it",
    "dead": "the kernel ended at zero: no weight changes an output",
    "diverged": "the loss ended above its start, or became infinite or not a number",
}
MODEL_TITLES = {"linear": "linear model", "quadratic": "quadratic model", "network": "network"}
RISE = 1.05  # our choice: a loss this many times its start has risen
DEAD_SHARE = 1e-6  # our choice: a kernel of at most this share of its start counts as zero


class RatePath(Value):
    """One run at its recorded steps; entries after a divergence are not finite.

    Attributes:
        steps: recorded steps, starting at 0.
        loss: mean loss L.
        curvature: η β λ_max(K(w_t))/n: the rate in units of the curvature there; 2 is the edge of stability.
        distance: ‖w_t − w₀‖₂.
        change: ΔK(t) of the model's own kernel.
    """

    steps: tuple[int, ...]
    loss: tuple[float, ...]
    curvature: tuple[float, ...]
    distance: tuple[float, ...]
    change: tuple[float, ...]


class RateRun(Value):
    """One model trained at one rate.

    Attributes:
        model: ``linear``, ``quadratic`` or ``network``.
        rate: c = η β λ_max(K(w₀))/n.
        seed: seed of the initialization w₀.
        learning_rate: η, as used.
        outcome: one of :data:`RATE_OUTCOMES`.
        converged: whether the loss came down to the threshold.
        num_steps: steps taken until the run ended.
        first_loss, peak_loss, last_loss: at w₀, the largest finite one recorded, and at the end.
        curvature: η β λ_max(K(w_T))/n at the end; NaN after a divergence.
        path: along the run, where it is kept.
    """

    model: str
    rate: float
    seed: int
    learning_rate: float
    outcome: RateOutcome
    converged: bool
    num_steps: int
    first_loss: float
    peak_loss: float
    last_loss: float
    curvature: float
    path: RatePath | None = None

    @property
    def peak(self) -> float:
        """Largest loss over that at w₀."""
        return self.peak_loss / self.first_loss if self.first_loss > 0 else math.nan


def rate_outcome(losses: Sequence[float], dead: bool) -> RateOutcome:
    """How a run ended, by its recorded losses and whether its kernel ended at zero."""
    first, last = losses[0], losses[-1]
    if not (math.isfinite(last) and last <= first):
        return "diverged"
    if dead:
        return "dead"
    return "catapult" if finite_sup(losses) > RISE * first else "monotone"


def _stays(run: RateRun) -> bool:
    return run.outcome != "diverged"


class RatePoint(TrainedPoint):
    """All runs of one width: models, seeds and rates."""

    line = ("model", "rate")

    kind: Literal["learning_rate"] = "learning_rate"
    runs: tuple[RateRun, ...]

    def of_rate(self, rate: float) -> tuple[RateRun, ...]:
        """The runs of all models at this rate."""
        return tuple(run for run in self.runs if run.rate == rate)


COLUMNS = (
    columns.WIDTH,
    columns.NUM_PARAMS,
    Column("model", "model", format=MODEL_TITLES.__getitem__, role="line"),
    Column("rate", "c", format="c = {:g}".format, role="line"),
    columns.SEED,
    Column("learning_rate", "learning rate η"),
    Column("outcome", "outcome", role="label"),
    Column("converged", ""),
    Column("num_steps", "steps"),
    Column("first_loss", ""),
    Column("peak_loss", ""),
    Column("last_loss", "last loss"),
    Column("curvature", "c at the end", format=partial(between, spec=".2f"), counts=_stays),
    Column("peak", "largest loss / loss at w₀", format=partial(between, spec=".3g"), counts=_stays),
)


class LearningRateResult(ResultValue):
    """Result of a ``learning_rate`` run.

    Outcomes of models at c = η β λ_max(K(w₀)) / n, and max L / L₀.

    Source: Lewkowycz, Bahri, Dyer, Sohl-Dickstein & Gur-Ari 2020, §2; docs/math/learning-rate.md.

    >>> from ntk_core.runs.gallery import GALLERY
    >>> result = LearningRateResult.model_validate_json((GALLERY / "catapult-map.json").read_bytes())
    >>> result.points[0].runs[0].outcome
    'monotone'
    """

    columns = COLUMNS
    spec: LearningRateSpec
    points: tuple[RatePoint, ...]


def learning_rate_summary(spec: LearningRateSpec, points: Sequence[RatePoint]) -> str:
    """A table over the seeds for each width, model and rate, then the exponent of the peak at each rate above 2."""
    laws = [
        f"{model} at c = {rate:g}: peak / start {law_words(law, 'm')}"
        for model in spec.models
        for rate in spec.rates
        if (law := peak_law(points, model, rate)) is not None
    ]
    return "\n".join(
        [*text_table(COLUMNS, points, _counted), "", *(f"{k}: {v}" for k, v in RATE_OUTCOMES.items()), *laws]
    )


def _counted(runs: Sequence[RateRun]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(run.outcome for run in runs).items())


def peak_law(points: Sequence[RatePoint], model: str, rate: float) -> PowerLaw | None:
    """The power law in m of the largest loss over its start, over the runs that catapulted and recovered."""
    runs = [(float(point.width), run) for point in points for run in point.of(model, rate)]
    if not any(run.outcome == "catapult" for _, run in runs):
        return None
    return fit_runs(runs, lambda run: run.peak, lambda run: run.outcome == "catapult")
