"""What other pages show of this one: its card on the overview, and how its runs are compared."""

from typing import Any

from dashboard.charts.comparison import WIDTH, Comparison
from dashboard.charts.vector import cells
from dashboard.views.kernel_change.elsewhere import MEASURES
from ntk_core.experiments.architectures.spec import ArchitecturesSpec

CARD = "bottleneck"
CELLS = 10


def card(result: Any) -> str:
    """The kernel of the first network."""
    kernel = [point for point in result.points if point.network == "A"][-1].snapshots[0].initial
    step = max(1, len(kernel) // CELLS)
    return cells([row[: CELLS * step : step] for row in kernel[: CELLS * step : step]])


def compared(_: ArchitecturesSpec) -> Comparison:
    """Columns of the rows, by what they show."""
    return Comparison((WIDTH,), MEASURES, ("network", "output"))
