"""Results of ``dag``: kernel change, Hessian norms and smallest eigenvalues of networks on graphs."""

import math
from collections.abc import Sequence
from typing import Literal

from ntk_core.experiments._trained_sweep import TrainedPoint, TrainedRun
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.fits import fit_power_law
from ntk_core.networks.graphs import GRAPH_TITLES, graph_verdict
from ntk_core.runs import ResultValue, Value, columns, exponent_line, outcome_notes
from ntk_core.runs.columns import Column, runs_of, text_table


class LayerLinearity(Value):
    """Pre-activations of one group as functions of the weights below them (Zhu, Liu & Belkin 2022, Theorem 3.8).

    Attributes:
        group: its name, ``"output"`` for the outputs.
        depth: its layer, the longest path from the input.
        hessian_norm: ‖H‖ at w₀, mean over the inputs, of one neuron.
        change: sup over the recorded times of the kernel change of two neurons.
    """

    group: str
    depth: int
    hessian_norm: float
    change: float


class DAGRun(TrainedRun):
    """One training run of one graph with one output.

    Attributes:
        graph: ``"drawn"``, or the name of a graph of the gallery.
        min_in_degree: smallest number of edges into a neuron outside the first layer (Zhu et al., Eq. 8).
        max_in_degree: the largest one.
        smallest_eigenvalue: λ_min(K(w_t)) at those steps.
        hessian_norm: ‖H‖ of the first output at w₀, mean over inputs; NaN where it was not asked for.
        hessian_converged: whether every Hessian norm reached its tolerance.
        layers: pre-activations of every group, where the spec asks for them.
        ball_eigenvalue: smallest λ_min(K(w)) met for ‖w − w₀‖ ≤ R: an upper bound of the infimum; NaN where not asked.
        gradient_norm: mean over the inputs of ‖∇_w f‖² of the first output at w₀.
        gradient_bound: its lower bound in expectation (Proposition 4.4), NaN beyond its assumptions.
    """

    graph: str
    min_in_degree: int
    max_in_degree: int
    smallest_eigenvalue: tuple[float, ...]
    hessian_norm: float = math.nan
    hessian_converged: bool = True
    layers: tuple[LayerLinearity, ...] = ()
    ball_eigenvalue: float = math.nan
    gradient_norm: float = math.nan
    gradient_bound: float = math.nan


class DAGPoint(TrainedPoint):
    """All runs of one width, graphs × outputs × seeds; ``num_params`` is that of the drawn graph."""

    line = ("graph", "output")

    kind: Literal["dag"] = "dag"
    runs: tuple[DAGRun, ...]


COLUMNS = (
    columns.WIDTH,
    Column("graph", "graph", format=lambda name: GRAPH_TITLES.get(name, "drawn graph"), role="line"),
    columns.OUTPUT,
    columns.SEED,
    Column("min_in_degree", "smallest in-degree", format=columns.counted),
    Column("max_in_degree", "largest in-degree"),
    columns.CHANGE,
    Column("hessian_norm", "Hessian norm ‖H‖", format=columns.precise, counts=lambda run: run.hessian_converged),
    Column("hessian_converged", ""),
    Column("smallest_eigenvalue", "λ_min of the kernel", lambda _, run: run.smallest_eigenvalue[0]),
    Column("smallest_eigenvalue_on_path", "λ_min on the path", lambda _, run: min(run.smallest_eigenvalue)),
    Column("smallest_eigenvalue_in_ball", "λ_min in the ball", lambda _, run: run.ball_eigenvalue),
    Column("gradient_norm", "‖∇f‖²"),
    Column("gradient_bound", "lower bound of ‖∇f‖²"),
    columns.FINAL_LOSS,
    columns.STEPS,
    columns.LEARNING_RATE,
    columns.OUTCOME,
)


class DAGResult(ResultValue):
    """Result of a ``dag`` run.

    ``points`` are in the order of the widths; some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, ‖∂²f_a/∂w²‖ at w₀ and λ_min(K(w_t)) of every graph, output and seed.

    Source: Zhu, Liu & Belkin 2022, Fig. 2, Theorems 3.6 and 3.8, §4.

    >>> from ntk_core.runs.gallery import GALLERY
    >>> result = DAGResult.model_validate_json((GALLERY / "zhu-fig2.json").read_bytes())
    >>> result.points[0].width, result.points[0].runs[0].min_in_degree
    (32, 93)
    """

    columns = COLUMNS
    spec: DAGSpec
    points: tuple[DAGPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per run, with the norms and changes of every group of the drawn graph."""
        found = super().rows()
        for row, (_, run) in zip(found, runs_of(self.points), strict=True):
            for layer in run.layers if run.graph == "drawn" else ():
                row[f"hessian_norm_{layer.group}"] = layer.hessian_norm
                row[f"kernel_change_{layer.group}"] = layer.change
        return found


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
