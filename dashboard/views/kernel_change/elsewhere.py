"""What other pages show of this one: its card on the overview, and how its runs are compared."""

from typing import Any

from dashboard.charts.comparison import CHANGE, WIDTH, Comparison
from dashboard.charts.sweep import sketch
from dashboard.views.kernel_change.figures import change_lines
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec

CARD = "liu-fig1-left"
MEASURES = {**CHANGE, "kernel_velocity": "kernel velocity at w₀", "final_loss": "final loss", "steps": "steps"}


def card(result: Any) -> str:
    """ΔK against width."""
    return sketch(change_lines(result.points).values())


def compared(_: KernelChangeSpec) -> Comparison:
    """Columns of the rows, by what they show."""
    return Comparison((WIDTH,), MEASURES, ("output",))
