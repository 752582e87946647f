"""``kernel_change`` as text: a table of means with their errors, and the fitted exponents."""

from collections.abc import Sequence

from ntk_core.experiments.kernel_change.result import KernelChanges
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.fits import fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import aligned, counted_marks, law_words, num_runs, outcome_notes, with_error


def kernel_change_summary(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> str:
    """A table of ΔK, mean ± standard error over the converged seeds, and the fitted exponents with their intervals."""
    outputs = [output for output in spec.outputs if any(point.of(output) for point in points)]
    lines = aligned(
        [(spec.swept.replace("_", " "), "output", "ΔK (mean ± s.e.)", "seeds", "")]
        + [_row(p, o) for p in points for o in outputs]
    )
    notes = outcome_notes(points, then="; not in the mean")
    lines += ["", *notes] if notes else []
    return "\n".join([*lines, "", *(exponent(output, points) for output in outputs)])


def exponent(output: str, points: Sequence[KernelChanges]) -> str:
    """The exponent of ΔK against width over the converged runs, with its interval and the runs left out."""
    runs = [(point.width, run) for point in points for run in point.of(output)]
    law = fit_runs(runs, lambda run: run.sup_change, lambda run: run.outcome == "converged")
    title = OUTPUTS[output].title
    if law is None:
        usable = sum(run.outcome == "converged" for _, run in runs)
        excluded = len(runs) - usable
        return f"{title}: no exponent fitted ({num_runs(usable)} converged, {excluded} excluded; three are needed)"
    return f"{title}: ΔK ∝ {law_words(law, 'm')}"


def _row(point: KernelChanges, output: str) -> tuple[str, ...]:
    runs = point.of(output)
    changes = [run.sup_change for run in runs if run.outcome == "converged"]
    lost = counted_marks(run.outcome for run in runs)
    return (str(point.width), output, with_error(changes, 4), f"{len(changes)} of {len(runs)}", lost)
