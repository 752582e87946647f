"""``kernel_change`` as text: a table of means with their errors, and the fitted exponents."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ntk_core.experiments.kernel_change.result import COLUMNS, KernelChanges
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.fits import PowerLaw, fit_power_law, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.numbers import percent
from ntk_core.runs import columns, exponent_line, outcome_notes

StartMeasure = Literal["velocity", "ball_change"]
START_TITLES: dict[StartMeasure, str] = {"velocity": "kernel velocity", "ball_change": "largest ΔK in the ball"}


def kernel_change_summary(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> str:
    """The table of the means over converged runs, and the fitted exponents with their intervals."""
    swept = replace(columns.WIDTH, title=spec.swept.replace("_", " "))
    lines = columns.text_table([swept, *COLUMNS[1:]], points)
    notes = [*outcome_notes(points, then="; not in the mean"), *_estimate_notes(spec, points)]
    outputs = [output for output in spec.outputs if any(point.of(output) for point in points)]
    exponents = [exponent(output, points) for output in outputs]
    return "\n".join([*lines, *([""] if notes else []), *notes, "", *exponents, *_start_laws(spec, points)])


def _estimate_notes(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> list[str]:
    """How far the random vectors alone may have moved ΔK of one run."""
    runs = [run for point in points for run in point.runs if run.error and run.sup_change > 0]
    if not runs:
        return []
    worst = max(run.sup_error / run.sup_change for run in runs)
    return [f"ΔK is estimated by {spec.probes} random vectors, with a standard error of at most {percent(worst)} of it"]


def exponent(output: str, points: Sequence[KernelChanges]) -> str:
    """The exponent of ΔK against width over the converged runs, with its interval and the runs left out."""
    runs = [(point.width, run) for point in points for run in point.of(output)]
    law = fit_runs(runs, lambda run: run.sup_change, lambda run: run.outcome == "converged")
    return exponent_line(f"{OUTPUTS[output].title}: ΔK", law)


def start_law(points: Sequence[KernelChanges], output: str, measure: StartMeasure) -> PowerLaw | None:
    """The power law of the kernel velocity, or of the largest change in the ball, against width."""
    found = [(point.width, each) for point in points for each in point.at_start if each.output == output]
    numbers = [(width, value) for width, each in found if (value := getattr(each, measure)) is not None]
    return fit_power_law([width for width, _ in numbers], [value for _, value in numbers])


def _start_laws(spec: KernelChangeSpec, points: Sequence[KernelChanges]) -> list[str]:
    """The exponents of what is measured before training."""
    lines: list[str] = []
    for measure, title in START_TITLES.items():
        for output in spec.outputs if any(getattr(each, measure) for p in points for each in p.at_start) else ():
            lines.append(exponent_line(f"{OUTPUTS[output].title}: {title}", start_law(points, output, measure)))
    return lines
