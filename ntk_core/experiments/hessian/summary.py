"""``hessian`` as text: a table of means with their errors, and the fitted exponents with their verdicts."""

from collections.abc import Sequence
from dataclasses import replace

from ntk_core.experiments.hessian.network import titles
from ntk_core.experiments.hessian.result import COLUMNS, HessianPoint, HessianRun
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.fits import PowerLaw, becomes_linear, fit_runs
from ntk_core.runs import OUTCOME_WORDS, columns, exponent_line, marks


def hessian_summary(spec: HessianSpec, points: Sequence[HessianPoint]) -> str:
    """A table of ‖H‖, K(x, x) and ΔK, mean ± standard error over the seeds, and the exponents with their intervals."""
    known = titles(spec.lines())
    swept = replace(columns.WIDTH, title="tokens" if spec.swept == "num_tokens" else "width", of=_place)
    network = replace(COLUMNS[1], format=known.__getitem__)
    lines = columns.text_table([network, swept, *COLUMNS[2:]], points, _lost)
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


def _place(point: HessianPoint, _: HessianRun) -> int:
    return point.place


def _lost(runs: Sequence[HessianRun]) -> str:
    """How many runs are in no mean, and why."""
    unconverged = sum(not run.converged for run in runs)
    trained = marks(run.trained for run in runs if run.trained is not None)
    return ", ".join(filter(None, [f"! {unconverged} unconverged" if unconverged else "", trained]))


def _exponent(line: str, title: str, points: Sequence[HessianPoint]) -> str:
    law, name = norm_law(points, line), "T" if points[0].num_tokens else "m"
    verdict = f"; becomes linear: {becomes_linear(norm_law(points, line, relative=True))}" if law else ""
    return exponent_line(f"{title}: ‖H‖", law, name) + verdict
