"""``hessian`` as text: a table of means with their errors, and the fitted exponents with their verdicts."""

import math
from collections.abc import Sequence

from ntk_core.experiments.hessian.network import titles
from ntk_core.experiments.hessian.result import HessianPoint
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.fits import PowerLaw, becomes_linear, fit_runs
from ntk_core.runs import OUTCOME_WORDS, Mean, aligned, counted_marks, law_words, mean


def hessian_summary(spec: HessianSpec, points: Sequence[HessianPoint]) -> str:
    """A table of ‖H‖, K(x, x) and ΔK, mean ± standard error over the seeds, and the exponents with their intervals."""
    known = titles(spec.lines())
    rows = [_row(point, known[point.line]) for point in points]
    swept = "tokens" if spec.swept == "num_tokens" else "width"
    lines = aligned([("network", swept, "‖H‖ (mean ± s.e.)", "K(x, x)", "ΔK", "seeds", ""), *rows])
    if any(not run.converged for point in points for run in point.runs):
        lines += ["", "! unconverged: the residual stayed above its tolerance, the norm may be larger; not in the mean"]
    ends = {run.trained.outcome for point in points for run in point.runs if run.trained is not None} - {"converged"}
    lines += [f"! {outcome}: {OUTCOME_WORDS[outcome]}; not in the mean of ΔK" for outcome in sorted(ends)]
    missed = [network.almost_everywhere for network in spec.lines().values() if network.almost_everywhere]
    lines += ["", *dict.fromkeys(missed)] if missed else []
    found = [line for line in known if any(point.line == line for point in points)]
    return "\n".join([*lines, "", *(_exponent(line, known[line], points) for line in found)])


def norm_law(points: Sequence[HessianPoint], line: str, *, relative: bool = False) -> PowerLaw | None:
    """The power law of ‖H‖, or of ‖H‖ / ‖∇f‖², against width through every converged seed."""
    runs = [(point.place, run) for point in points if point.line == line for run in point.runs]
    return fit_runs(runs, lambda run: run.relative_norm if relative else run.norm, lambda run: run.converged)


def _row(point: HessianPoint, title: str) -> tuple[str, ...]:
    converged = [run for run in point.runs if run.converged]
    trained = [run.trained for run in point.runs if run.trained is not None]
    changes = mean([each.sup_change for each in trained if each.outcome == "converged"])
    marks = [f"! {len(point.runs) - len(converged)} unconverged"] if len(converged) < len(point.runs) else []
    marks += filter(None, [counted_marks(each.outcome for each in trained)])
    return (
        title,
        str(point.place),
        _amount(mean([run.norm for run in converged])),
        _amount(mean([run.kernel for run in point.runs])),
        _amount(changes),
        f"{len(converged)} of {len(point.runs)}",
        ", ".join(marks),
    )


def _amount(average: Mean) -> str:
    if not average.count:
        return "–"
    error = f" ± {average.standard_error:.1g}" if math.isfinite(average.standard_error) else ""
    return f"{average.value:.4g}{error}"


def _exponent(line: str, title: str, points: Sequence[HessianPoint]) -> str:
    law = norm_law(points, line)
    if law is None:
        return f"{title}: no exponent fitted (three converged seeds at two widths are needed)"
    verdict = becomes_linear(norm_law(points, line, relative=True))
    return f"{title}: ‖H‖ ∝ {law_words(law, 'T' if points[0].num_tokens else 'm')}; becomes linear: {verdict}"
