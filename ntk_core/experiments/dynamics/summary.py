"""``dynamics`` as text: how far networks and their linear models part, and when."""

import math
from collections.abc import Sequence

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.result import DEPARTURE_LEVEL, DynamicsPoint
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import aligned, law_words, marks, outcome_notes, with_error


def dynamics_summary(spec: DynamicsSpec, points: Sequence[DynamicsPoint]) -> str:
    """A table of means over the seeds, then the fitted exponent of the difference for each output and method."""
    pairs = [(output, method) for output in spec.outputs for method in spec.methods]
    lines = aligned(
        [("width", "output", "method", "sup relative difference", "departed at step", "sup ΔK", "sup ‖w−w₀‖", "")]
        + [_row(point, *pair) for point in points for pair in pairs]
    )
    level = (
        f"Parted: the relative mean-squared difference stays above {DEPARTURE_LEVEL:.0%} from this step on (median)."
    )
    return "\n".join([*lines, "", level, *outcome_notes(points), "", *(exponent(pair, points) for pair in pairs)])


def exponent(pair: tuple[str, str], points: Sequence[DynamicsPoint]) -> str:
    """The exponent of the root of the difference against width, with its interval; not of diverged or dead runs."""
    law = difference_law(points, *pair)
    title = f"{OUTPUTS[pair[0]].title}, {METHODS[pair[1]].title}"
    if law is None:
        return f"{title}: no exponent fitted (three runs at two widths are needed)"
    return f"{title}: ‖F − F_lin‖ / ‖F_lin‖ ∝ {law_words(law, 'm')}"


def difference_law(points: Sequence[DynamicsPoint], output: str, method: str) -> PowerLaw | None:
    """The power law of ‖F − F_lin‖ / ‖F_lin‖, its sup over time, against width; not of diverged or dead runs."""
    return fit_runs(
        [(point.width, run) for point in points for run in point.of(output, method)],
        lambda run: math.sqrt(run.sup_difference) if run.sup_difference >= 0 else math.nan,
        lambda run: run.outcome not in ("diverged", "dead"),
    )


def _row(point: DynamicsPoint, output: str, method: str) -> tuple[str, ...]:
    runs = point.of(output, method)
    difference = with_error([run.sup_difference for run in runs if run.outcome != "dead"])
    change, distance = (
        with_error([run.sup_change for run in runs]),
        with_error([run.sup_distance for run in runs if run.outcome != "dead"]),
    )
    steps = sorted(math.inf if run.departure_step is None else run.departure_step for run in runs)
    middle = steps[len(steps) // 2] if steps else math.inf
    parted = f"{middle:,.0f}" if math.isfinite(middle) else "–"
    return (f"{point.width:,}", output, method, difference, parted, change, distance, marks(runs))
