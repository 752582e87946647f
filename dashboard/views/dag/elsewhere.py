"""What other pages show of this one: its card on the overview, and how its runs are compared."""

from typing import Any

from dashboard.charts.comparison import CHANGE, WIDTH, Axis, Comparison
from dashboard.charts.sweep import sketch
from dashboard.views.dag.figures import change_lines
from ntk_core.experiments.dag.spec import DAGSpec

CARD = "zhu-bottleneck-neurons"
MEASURES = {**CHANGE, "hessian_norm": "Hessian norm ‖H‖", "smallest_eigenvalue": "λ_min of the kernel"}


def card(result: Any) -> str:
    """ΔK of the graphs against width."""
    return sketch(change_lines(result.points).values())


def compared(_: DAGSpec) -> Comparison:
    """Columns of the rows, by what they show."""
    return Comparison((WIDTH, Axis("min_in_degree", "smallest in-degree")), MEASURES, ("graph", "output"))
