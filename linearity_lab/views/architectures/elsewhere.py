"""Parts of this page elsewhere: overview card, first figure, comparison of runs."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import Comparison, compared_by
from linearity_lab.charts.style import compared_styles
from linearity_lab.charts.vector import cells
from linearity_lab.views.architectures.figures import against_width
from ntk_core.experiments.architectures.result import COLUMNS
from ntk_core.experiments.architectures.spec import ArchitecturesSpec

CARD = "bottleneck"
CELLS = 10


def card(result: Any) -> str:
    """The kernel of the first network."""
    kernel = [point for point in result.points if point.network == "A"][-1].snapshots[0].initial
    step = max(1, len(kernel) // CELLS)
    return cells([row[: CELLS * step : step] for row in kernel[: CELLS * step : step]])


def first_chart(result: Any) -> Chart:
    """ΔK of every network against width, with the first output."""
    spec = result.spec
    points: dict[str, list[Any]] = {}
    for point in result.points:
        points.setdefault(point.network, []).append(point)
    styles = compared_styles({letter: network.kind for letter, network in spec.networks.items()}, spec.outputs[0])
    return against_width(points, spec.outputs[0], spec.widths, styles)


def compared(_: ArchitecturesSpec) -> Comparison:
    """Return how runs are compared."""
    return compared_by(COLUMNS)
