"""Depth against width: how random the tangent kernel is at the beginning, and how far it moves (Hanin & Nica 2020)."""

from dataclasses import replace

from dashboard.charts.chart import Chart
from dashboard.components.chart import Panel, panels
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.depth_width import figures
from ntk_core.networks.choices import almost_everywhere

PAGE = "depth_width"
TITLE = "Deep against wide: which wins?"
CONTROLS = ("depths", "widths", "num_kernels", "trained_width")
GROUPS = (
    Group("Depth vs. width", ("depths", "widths", "num_kernels", "seed")),
    Group("Trained networks", ("trained_depth", "trained_width", "num_seeds", "draws", "training.")),
    Group("Data", ("dataset.",)),
)


def charts(shown: Shown) -> tuple[Chart, ...]:
    """The scatter of K(x, x) against depth and against β, then what training moved and how curved the networks are."""
    found = [figures.against_depth(shown.points), figures.against_beta(shown.points)]
    if any(point.runs for point in shown.points):
        trained = [figures.trained(shown.points, each) for each in figures.MEASURES]
        found += [replace(each, caption=[*each.caption, almost_everywhere(["relu"])]) for each in trained]
    return tuple(found)


def draw(shown: Shown) -> list[Panel]:
    """Two charts of random networks, two of trained ones."""
    return panels(drawn_once(PAGE, shown.identity, lambda: charts(shown)))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
