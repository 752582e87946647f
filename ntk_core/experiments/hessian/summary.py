"""``hessian`` as text: a table of means with their errors, and the fitted exponents with their verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ntk_core.experiments.hessian.result import HessianPoint
from ntk_core.experiments.hessian.spec import HessianSpec, Series
from ntk_core.fits import PowerLaw, becomes_linear, fit_power_law
from ntk_core.networks.choices import PARAMETERIZATIONS
from ntk_core.runs import Mean, aligned, mean
from ntk_core.settings.vocabulary import HESSIAN_NETWORKS


def hessian_summary(spec: HessianSpec, points: Sequence[HessianPoint]) -> str:
    """A table of ‖H‖, K(x, x) and ΔK, mean ± standard error over the seeds, and the exponents with their intervals."""
    lines = aligned(
        [("network", "width", "‖H‖ (mean ± s.e.)", "K(x, x)", "ΔK", "seeds", ""), *map(_row, points)],
    )
    if any(not run.converged for point in points for run in point.runs):
        lines += ["", "! unconverged: the residual stayed above its tolerance, the norm may be larger; not in the mean"]
    series = [each for each in spec.series() if any(point.series == each for point in points)]
    return "\n".join([*lines, "", *(_exponent(each, points) for each in series)])


def norm_law(points: Sequence[HessianPoint], series: Series, *, relative: bool = False) -> PowerLaw | None:
    """The power law of ‖H‖, or of ‖H‖ / ‖∇f‖², against width through every converged seed."""
    runs = [(point.wide_width, run) for point in points if point.series == series for run in point.runs]
    return fit_power_law(
        [width for width, _ in runs],
        [run.relative_norm if relative else run.norm for _, run in runs],
        usable=[run.converged for _, run in runs],
    )


def series_title(series: Series) -> str:
    """``ResNet``; with its parameterization where that is not the NTK one."""
    title = HESSIAN_NETWORKS[series.network].title
    known = series.parameterization
    return title if known == "ntk" else f"{title}, {PARAMETERIZATIONS[known].title}"


def _row(point: HessianPoint) -> tuple[str, ...]:
    converged = [run for run in point.runs if run.converged]
    trained = [run.trained for run in point.runs if run.trained is not None]
    changes = mean([each.sup_change for each in trained if each.outcome == "converged"])
    marks = [f"! {len(point.runs) - len(converged)} unconverged"] if len(converged) < len(point.runs) else []
    marks += [f"! {lost} not trained to the threshold" for lost in [len(trained) - changes.count] if lost]
    return (
        series_title(point.series),
        str(point.wide_width),
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


def _exponent(series: Series, points: Sequence[HessianPoint]) -> str:
    law, title = norm_law(points, series), series_title(series)
    if law is None:
        return f"{title}: no exponent fitted (three converged seeds at two widths are needed)"
    interval = f" ± {law.interval:.3f}" if math.isfinite(law.interval) else ""
    verdict = becomes_linear(norm_law(points, series, relative=True))
    return (
        f"{title}: ‖H‖ ∝ m^({law.exponent:.3f}{interval}), {law.confidence:.0%} interval, {law.num_values} values, "
        f"{law.num_excluded} excluded; becomes linear: {verdict}"
    )
