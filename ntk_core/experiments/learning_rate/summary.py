"""``learning_rate`` as text: outcomes by model, width and rate, and how the peak grows with the width."""

from collections import Counter
from collections.abc import Sequence

from ntk_core.experiments.learning_rate.result import COLUMNS, RATE_OUTCOMES, RatePoint, RateRun
from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.runs import law_words
from ntk_core.runs.columns import text_table


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
    """The power law in m of the largest loss over its start, over the runs that were thrown and came down."""
    runs = [(float(point.width), run) for point in points for run in point.of(model, rate)]
    if not any(run.outcome == "catapult" for _, run in runs):
        return None
    return fit_runs(runs, lambda run: run.peak, lambda run: run.outcome == "catapult")
