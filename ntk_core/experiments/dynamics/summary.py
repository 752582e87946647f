"""``dynamics`` as text: how far networks and their linear models part, and when."""

import math
from collections.abc import Sequence

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.result import COLUMNS, DEPARTURE_LEVEL, DynamicsPoint
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.numbers import percent
from ntk_core.runs import exponent_line, outcome_notes
from ntk_core.runs.columns import text_table


def dynamics_summary(spec: DynamicsSpec, points: Sequence[DynamicsPoint]) -> str:
    """A table of means over the seeds, then the fitted exponent of the difference for each output and method."""
    pairs = [(output, method) for output in spec.outputs for method in spec.methods]
    level = f"Departed: the relative mean-squared difference stays above {percent(DEPARTURE_LEVEL)} from this step on."
    return "\n".join(
        [
            *text_table(COLUMNS, points),
            "",
            level,
            *outcome_notes(points),
            "",
            *(exponent(pair, points) for pair in pairs),
        ]
    )


def exponent(pair: tuple[str, str], points: Sequence[DynamicsPoint]) -> str:
    """The exponent of the root of the difference against width, with its interval; not of diverged or dead runs."""
    title = f"{OUTPUTS[pair[0]].title}, {METHODS[pair[1]].title}"
    return exponent_line(f"{title}: ‖F − F_lin‖ / ‖F_lin‖", difference_law(points, *pair))


def difference_law(points: Sequence[DynamicsPoint], output: str, method: str) -> PowerLaw | None:
    """The power law of ‖F − F_lin‖ / ‖F_lin‖, its sup over time, against width; not of diverged or dead runs."""
    return fit_runs(
        [(point.width, run) for point in points for run in point.of(output, method)],
        lambda run: math.sqrt(run.sup_difference) if run.sup_difference >= 0 else math.nan,
        lambda run: run.outcome not in ("diverged", "dead"),
    )
