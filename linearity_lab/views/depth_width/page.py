"""Depth and width: randomness of the tangent kernel at w₀, and its change in training (Hanin & Nica 2020)."""

from dataclasses import replace

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Panel, panels
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.depth_width import figures
from ntk_core.networks.choices import almost_everywhere

PAGE = "depth_width"
TITLE = "Deep against wide: which wins?"
CONTROLS = ("depths", "widths", "num_kernels", "trained_width")
GROUPS = (
    Group("Depth vs. width", ("depths", "widths", "num_kernels", "seed")),
    Group("Trained networks", ("trained_depth", "trained_width", "hessian_depth", "num_seeds", "draws", "training.")),
    Group("Data", ("dataset.",)),
)


def charts(shown: Shown) -> tuple[Chart, ...]:
    """Draw the scatter of K(x, x) against depth and β, then kernel change and curvature of trained networks."""
    points = shown.points
    measured = figures.measured(points)
    misses = [almost_everywhere(["relu"])] if figures.CURVATURE in measured else []
    trained = [figures.trained(points, each) for each in measured]
    trained = [replace(each, caption=[*each.caption, *misses]) for each in trained]
    return figures.against_depth(points), figures.against_beta(points), *trained


def draw(shown: Shown) -> list[Panel]:
    """Return two charts of random networks and two of trained ones."""
    return panels(drawn_once(PAGE, shown.identity, lambda: charts(shown)))


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
