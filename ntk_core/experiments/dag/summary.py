"""``dag`` as text: verdicts, a table of means with their errors, and the fitted exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ntk_core.experiments.dag.result import DAGPoint, DAGRun
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.fits import fit_power_law
from ntk_core.networks.graphs import EXAMPLE_TITLES, verdict
from ntk_core.runs import OUTCOME_WORDS, aligned, mean, num_runs


def dag_summary(spec: DAGSpec, points: Sequence[DAGPoint]) -> str:
    """Realized in-degree, ΔK and ‖H‖ of each graph and output, the verdicts, and exponents with their intervals."""
    series = [(graph, output) for graph in spec.graphs() for output in spec.outputs]
    rows: list[tuple[str, ...]] = [
        ("width", "graph", "output", "smallest in-degree", "ΔK (mean ± s.e.)", "‖H‖ (mean ± s.e.)", "seeds")
    ]
    rows += [_row(point, *each) for point in points for each in series]
    seen = {run.outcome for point in points for run in point.runs} - {"converged"}
    marks = [f"! {outcome}: {OUTCOME_WORDS[outcome]}; not in the mean" for outcome in sorted(seen)]
    laws = [exponent(points, *each) for each in series]
    return "\n".join([*aligned(rows), "", *marks, *_verdicts(spec), *laws])


def exponent(points: Sequence[DAGPoint], graph: str, output: str) -> str:
    """The exponents of ΔK in the realized smallest in-degree, or in the width where that stays the same."""
    runs = [(point.width, run) for point in points for run in point.of(graph, output) if run.outcome == "converged"]
    total = sum(len(point.of(graph, output)) for point in points)
    constant = len({run.min_in_degree for _, run in runs}) < 2
    name, places = ("m", [m for m, _ in runs]) if constant else ("in-degree", [run.min_in_degree for _, run in runs])
    law = fit_power_law(places, [run.sup_change for _, run in runs])
    title = f"{title_of(graph)}, {output} output"
    excluded = total - len(runs)
    if law is None:
        return f"{title}: no exponent fitted ({num_runs(len(runs))} converged, {excluded} excluded)"
    return (
        f"{title}: ΔK ∝ {name}^({law.exponent:.3f} ± {law.interval:.3f}), {law.confidence:.0%} interval, "
        f"{num_runs(law.num_values)}, {excluded} excluded"
    )


def title_of(graph: str) -> str:
    """A graph as people read it."""
    return EXAMPLE_TITLES.get(graph, "drawn graph")


def _verdicts(spec: DAGSpec) -> list[str]:
    shapes = spec.dataset.known_shapes()
    if shapes is None:  # somebody's own data, which are not kept here
        return []
    lines = []
    for name, graph in spec.graphs().items():
        found = verdict(graph, spec.widths[-1], shapes.input_shape)
        lines += [f"{title_of(name)}: {found.outcome}. " + " ".join(reason.words for reason in found.reasons)]
    return lines


def _row(point: DAGPoint, graph: str, output: str) -> tuple[str, ...]:
    runs = point.of(graph, output)
    done = [run for run in runs if run.outcome == "converged"]
    return (
        str(point.width),
        title_of(graph),
        output,
        _range([run.min_in_degree for run in runs]),
        _mean([run.sup_change for run in done]),
        _mean([run.hessian_norm for run in runs if _known(run)]),
        f"{len(done)} of {len(runs)}",
    )


def _known(run: DAGRun) -> bool:
    return math.isfinite(run.hessian_norm) and run.hessian_converged


def _mean(values: Sequence[float]) -> str:
    found = mean(values)
    if not found.count:
        return "–"
    error = f" ± {found.standard_error:.1g}" if math.isfinite(found.standard_error) else ""
    return f"{found.value:.4g}{error}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values, default=0), max(values, default=0)
    return str(low) if low == high else f"{low}–{high}"
