"""``optimization`` as text: convergence, the bound, and how far the kernel moved."""

from collections.abc import Sequence

from ntk_core.experiments.optimization.result import OptimizationPoint
from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import aligned, between, outcome_notes, with_error


def optimization_summary(spec: OptimizationSpec, points: Sequence[OptimizationPoint]) -> str:
    """A table of means over the seeds for each width, output and rate, then what the theorem needs of each output."""
    head = ("width", "output", "rate", "ΔK", "min λ_min(K of f)", "final loss", "bound", "")
    rows = [_row(point, output, rate) for point in points for output in spec.outputs for rate in spec.rates]
    notes = [
        f"{OUTPUTS[output].title}: "
        + (f"|φ'| ≥ ρ = {rho:g}, the theorem holds at small rates" if rho else "ρ = 0, the theorem says nothing")
        for output in spec.outputs
        for rho in [OUTPUTS[output].min_slope]
    ]
    return "\n".join([*aligned([head, *rows]), "", *notes, *outcome_notes(points)])


def _row(point: OptimizationPoint, output: str, rate: float) -> tuple[str, ...]:
    runs = point.of(output, rate)
    bounds = [bound[-1] for run in runs if (bound := run.bound(point.num_samples)) is not None]
    marks = []
    for run in runs:
        if run.outcome == "diverged":
            marks.append(
                f"! diverged (seed {run.seed}), last finite step {run.last_finite_step:,}, "
                f"η = {run.learning_rate:.3g}, stable below {run.stable_rate:.3g}"
            )
        elif run.outcome != "converged":
            marks.append(f"! {run.outcome} (seed {run.seed})")
    return (
        f"{point.width:,}",
        output,
        f"{rate:g} η",
        with_error([run.sup_change for run in runs if run.outcome not in ("diverged", "dead")]),
        between([run.min_eigenvalue for run in runs], ".2g"),
        between([run.loss[-1] for run in runs], ".2g"),
        between(bounds, ".2g"),
        "; ".join(marks),
    )
