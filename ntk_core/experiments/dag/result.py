"""Results of ``dag``: kernel change, Hessian norms and smallest eigenvalues of networks on graphs."""

import math
from typing import Literal

from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.runs import Outcome, RecordedTraining, ResultValue, Value, WidthPoint, finite_or_none


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


class DAGRun(RecordedTraining):
    """One training run of one graph with one output.

    Attributes:
        graph: ``"drawn"``, or the name of a graph of the gallery.
        output: the output nonlinearity φ.
        seed: of the initialization w₀, removed edges included.
        min_in_degree: smallest number of edges into a neuron outside the first layer (Zhu et al., Eq. 8).
        max_in_degree: the largest one.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        outcome: how it ended, see ``ntk_core.dynamics.outcomes.ended``.
        steps: recorded step indices, starting at 0.
        change: ΔK(t) at those steps.
        loss: the mean training loss at those steps.
        smallest_eigenvalue: λ_min(K(w_t)) at those steps.
        hessian_norm: ‖H‖ of the first output at w₀, mean over inputs; NaN where it was not asked for.
        hessian_converged: whether every Hessian norm reached its tolerance.
        layers: pre-activations of every group, where the spec asks for them.
        ball_eigenvalue: smallest λ_min(K(w)) met for ‖w − w₀‖ ≤ R: an upper bound of the infimum; NaN where not asked.
        gradient_norm: mean over the inputs of ‖∇_w f‖² of the first output at w₀.
        gradient_bound: its lower bound in expectation (Proposition 4.4), NaN beyond its assumptions.
    """

    graph: str
    output: str
    seed: int
    min_in_degree: int
    max_in_degree: int
    learning_rate: float
    outcome: Outcome
    loss: tuple[float, ...]
    smallest_eigenvalue: tuple[float, ...]
    hessian_norm: float = math.nan
    hessian_converged: bool = True
    layers: tuple[LayerLinearity, ...] = ()
    ball_eigenvalue: float = math.nan
    gradient_norm: float = math.nan
    gradient_bound: float = math.nan


class DAGPoint(WidthPoint):
    """All runs of one width: graphs × outputs × seeds.

    Attributes:
        num_params: p of the drawn graph, removed edges counted.
    """

    kind: Literal["dag"] = "dag"
    num_params: int
    runs: tuple[DAGRun, ...]

    def of(self, graph: str, output: str) -> tuple[DAGRun, ...]:
        """The runs of this graph with this output."""
        return tuple(run for run in self.runs if (run.graph, run.output) == (graph, output))


class DAGResult(ResultValue):
    """Everything a ``dag`` run gave; ``points`` are in the order of the widths, some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, ‖∂²f_a/∂w²‖ at w₀ and λ_min(K(w_t)) of every graph, output and seed.

    Source: Zhu, Liu & Belkin 2022, Fig. 2, Theorems 3.6 and 3.8, §4.
    """

    spec: DAGSpec
    points: tuple[DAGPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, graph, output and seed, as in ``points.csv``."""
        return [
            {
                "width": point.width,
                "graph": run.graph,
                "output": run.output,
                "seed": run.seed,
                "min_in_degree": run.min_in_degree,
                "max_in_degree": run.max_in_degree,
                "sup_kernel_change": run.sup_change,
                "hessian_norm": run.hessian_norm,
                "hessian_converged": run.hessian_converged,
                "smallest_eigenvalue": run.smallest_eigenvalue[0],
                "smallest_eigenvalue_on_path": min(run.smallest_eigenvalue),
                "smallest_eigenvalue_in_ball": run.ball_eigenvalue,
                "gradient_norm": run.gradient_norm,
                "gradient_bound": run.gradient_bound,
                "final_loss": run.loss[-1],
                "steps": run.num_steps,
                "learning_rate": finite_or_none(run.learning_rate),
                "outcome": run.outcome,
                **{f"hessian_norm_{layer.group}": layer.hessian_norm for layer in run.layers if run.graph == "drawn"},
                **{f"kernel_change_{layer.group}": layer.change for layer in run.layers if run.graph == "drawn"},
            }
            for point in self.points
            for run in point.runs
        ]
