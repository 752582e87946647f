"""``early_time`` as text: when networks leave their linear models, how far apart both are, and kernels."""

from collections.abc import Sequence

from ntk_core.experiments.early_time.result import EARLY_OUTCOME_WORDS, KERNELS, RUNS, EarlyPoint, EarlyRun
from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.fits import PowerLaw, fit_power_law, fit_runs
from ntk_core.runs import law_words, outcome_notes
from ntk_core.runs.columns import text_table


def early_summary(spec: EarlyTimeSpec, points: Sequence[EarlyPoint]) -> str:
    """One line per point and activation of the trained networks, then the compared kernels, each with its exponents."""
    swept = spec.swept.replace("_", " ")
    lines: list[str] = []
    if any(point.runs for point in points):
        lines += text_table(RUNS, points, _departed)
        lines += outcome_notes(points, EARLY_OUTCOME_WORDS, "completed", "; not in the means")
        lines += [discrepancy_exponent(activation, points, swept) for activation in spec.network.activations]
    if any(point.kernels for point in points):
        kernels = [point.model_copy(update={"runs": point.kernels}) for point in points]
        lines += text_table(KERNELS, kernels, lambda runs: "")
        for activation in spec.network.activations:
            lines += [kernel_exponent(activation, points, norm, swept) for norm in ("spectral", "Frobenius")]
    return "\n".join(lines)


def discrepancy_exponent(activation: str, points: Sequence[EarlyPoint], swept: str) -> str:
    """The exponent of the discrepancy against what is swept, with its interval and the runs left out."""
    law = fit_discrepancy(activation, points)
    if law is None:
        return f"{activation}: no exponent of the discrepancy fitted (three runs of two values are needed)"
    return f"{activation}: discrepancy ∝ {law_words(law, f'({swept})')}"


def kernel_exponent(activation: str, points: Sequence[EarlyPoint], norm: str, swept: str) -> str:
    """The exponent of the distance of the kernels in this norm (``spectral`` or ``Frobenius``)."""
    law = fit_kernel_distance(activation, points, norm)
    if law is None:
        return f"{activation}: no exponent of the {norm} norm fitted (three values are needed)"
    return f"{activation}: {norm} norm of the distance ∝ {law_words(law, f'({swept})')}"


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
