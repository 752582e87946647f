"""``early_time`` as text: when networks leave their linear models, how far apart both are, and kernels."""

from collections.abc import Sequence

from ntk_core.experiments.early_time.result import EARLY_OUTCOME_WORDS, KERNELS, RUNS, EarlyPoint, EarlyRun
from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.fits import PowerLaw, fit_power_law, fit_runs
from ntk_core.runs import exponent_line, outcome_notes
from ntk_core.runs.columns import text_table


def early_summary(spec: EarlyTimeSpec, points: Sequence[EarlyPoint]) -> str:
    """One line per point and activation of the trained networks, then the compared kernels, each with its exponents."""
    swept = f"({spec.swept.replace('_', ' ')})"
    lines: list[str] = []
    if any(point.runs for point in points):
        lines += text_table(RUNS, points, _departed)
        lines += outcome_notes(points, EARLY_OUTCOME_WORDS, "completed", "; not in the means")
        lines += [
            exponent_line(f"{activation}: discrepancy", fit_discrepancy(activation, points), swept)
            for activation in spec.network.activations
        ]
    if any(point.kernels for point in points):
        kernels = [point.model_copy(update={"runs": point.kernels}) for point in points]
        lines += text_table(KERNELS, kernels, lambda runs: "")
        lines += [
            exponent_line(f"{activation}: {norm} norm of the distance", law, swept)
            for activation in spec.network.activations
            for norm in ("spectral", "Frobenius")
            for law in [fit_kernel_distance(activation, points, norm)]
        ]
    return "\n".join(lines)


def fit_discrepancy(activation: str, points: Sequence[EarlyPoint]) -> PowerLaw | None:
    """The power law of the discrepancy against the swept values, over the runs that took all steps."""
    runs = [(point.value, run) for point in points for run in point.of(activation)]
    return fit_runs(runs, lambda run: run.discrepancy, lambda run: run.outcome == "completed")


def fit_kernel_distance(activation: str, points: Sequence[EarlyPoint], norm: str) -> PowerLaw | None:
    """The power law of ‖K − ψψᵀ‖ in this norm against the swept values."""
    found = [(point.value, each) for point in points for each in point.kernels if each.activation == activation]
    values = [each.difference if norm == "spectral" else each.frobenius_difference for _, each in found]
    return fit_power_law([value for value, _ in found], values, seeds=[each.seed for _, each in found])


def _departed(runs: Sequence[EarlyRun]) -> str:
    return f"{sum(run.departure_step is not None for run in runs)} depart"
