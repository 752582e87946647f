"""``dag`` as text: verdicts, a table of means with their errors, and the fitted exponents."""

from collections.abc import Sequence

from ntk_core.experiments.dag.result import COLUMNS, DAGPoint
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.fits import fit_power_law
from ntk_core.networks.graphs import GRAPH_TITLES, graph_verdict
from ntk_core.runs import exponent_line, outcome_notes
from ntk_core.runs.columns import text_table


def dag_summary(spec: DAGSpec, points: Sequence[DAGPoint]) -> str:
    """Realized in-degree, ΔK and ‖H‖ of each graph and output, the verdicts, and exponents with their intervals."""
    series = [(graph, output) for graph in spec.graphs() for output in spec.outputs]
    notes = outcome_notes(points, then="; not in the mean")
    laws = [exponent(points, *each) for each in series]
    missed = [spec.almost_everywhere] if spec.almost_everywhere else []
    return "\n".join([*text_table(COLUMNS, points), "", *missed, *notes, *_verdicts(spec), *laws])


def exponent(points: Sequence[DAGPoint], graph: str, output: str) -> str:
    """The exponents of ΔK in the realized smallest in-degree, or in the width where that stays the same."""
    runs = [(point.width, run) for point in points for run in point.of(graph, output)]
    constant = len({run.min_in_degree for _, run in runs if run.outcome == "converged"}) < 2
    name, places = ("m", [m for m, _ in runs]) if constant else ("in-degree", [run.min_in_degree for _, run in runs])
    law = fit_power_law(
        places,
        [run.sup_change for _, run in runs],
        seeds=[run.seed for _, run in runs],
        usable=[run.outcome == "converged" for _, run in runs],
        diverged=[run.outcome == "diverged" for _, run in runs],
        swept=[width for width, _ in runs],
    )
    return exponent_line(f"{title_of(graph)}, {output} output: ΔK", law, name)


def title_of(graph: str) -> str:
    """A graph as people read it."""
    return GRAPH_TITLES.get(graph, "drawn graph")


def _verdicts(spec: DAGSpec) -> list[str]:
    shapes = spec.dataset.known_shapes()
    if shapes is None:  # uploaded data that are not stored here
        return []
    lines = []
    for name, graph in spec.graphs().items():
        found = graph_verdict(graph, spec.widths[-1], shapes.input_shape)
        lines += [f"{title_of(name)}: {found.outcome}. " + " ".join(reason.words for reason in found.reasons)]
    return lines
