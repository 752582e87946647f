"""Depth and width: randomness of the tangent kernel at w₀, and its change in training (Hanin & Nica 2020)."""

from dataclasses import replace

from linearity_lab.charts.chart import Chart
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.depth_width import figures
from linearity_lab.experiments.depth_width.point import DepthWidthPoint, DepthWidthSpec
from ntk_core.networks.choices import almost_everywhere


def charts(shown: Shown[DepthWidthSpec, DepthWidthPoint]) -> tuple[Chart, ...]:
    """Draw the scatter of K(x, x) against depth and β, then kernel change and curvature of trained networks."""
    points = shown.points
    measured = figures.measured(points)
    misses = [almost_everywhere(["relu"])] if figures.CURVATURE in measured else []
    trained = [figures.trained(points, each) for each in measured]
    trained = [replace(each, caption=[*each.caption, *misses]) for each in trained]
    return figures.against_depth(points), figures.against_beta(points), *trained


PAGE = ExperimentPage[DepthWidthSpec, DepthWidthPoint](
    "depth_width",
    charts=charts,
    controls=("depths", "widths", "num_kernels", "trained_width"),
    groups={
        "Depth vs. width": ("depths", "widths", "num_kernels", "seed"),
        "Trained networks": (
            "trained_depth",
            "trained_width",
            "hessian_depth",
            "num_seeds",
            "draws",
            "training.",
        ),
    },
)
show = PAGE.show
