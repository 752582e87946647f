"""Figures of Hessian norms.

Against width, beside the kernel change, in balls, and of one network in detail.
"""

from collections.abc import Sequence
from dataclasses import replace

from linearity_lab.charts.chart import WIDTH, Chart, ComparedAxis, Comparison, compared_by
from linearity_lab.charts.choices import Choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.experiments.hessian import part_figures as parts
from linearity_lab.experiments.hessian.network import titles
from linearity_lab.experiments.hessian.norm_figures import (
    KERNEL,
    VIEWS,
    against_width,
    change_against_width,
    networks_of,
    of_line,
    place_name,
    trained_lines,
)
from linearity_lab.experiments.hessian.point import COLUMNS, HessianPoint
from linearity_lab.experiments.hessian.spec import HessianSpec

Runs = Shown[HessianSpec, HessianPoint]


def _views(shown: Runs) -> list[str | Choice]:
    place = place_name(shown.points).rpartition(" ")[0]
    return [Choice("view", "Vertical axis", list(VIEWS), pixels=150), f"against {place}"]


def _radii(shown: Runs) -> list[str | Choice]:
    radii = parts.radii_of(shown.points)
    return [
        "In the whole ball of radius R around w₀",
        Choice(
            "radius",
            "Radius R",
            radii,
            "R = {:g}".format,
            260,
            begins=len(radii) // 2,
            is_slider=True,
        ),
    ]


def _balls(shown: Runs, radius: float) -> list[Chart]:
    """Draw the suprema of ‖H‖ and of the kernel change over a ball."""
    num_starts = shown.spec.num_starts
    return [
        parts.ball(shown.points, radius, quantity, num_starts)
        for quantity in ("hessian", "kernel_change")
    ]


def _detailed_lines(shown: Runs) -> list[str]:
    """Return the lines of networks with bounds, layer quantities, shares or blocks."""
    return [line for line in networks_of(shown.points) if _has_detail(shown.points, line)]


def _has_detail(points: Sequence[HessianPoint], line: str) -> bool:
    runs = [run for point in of_line(points, line) for run in point.runs]
    measured = any(
        run.bound or run.parts or run.vector or run.shares or run.exact is not None for run in runs
    )
    return measured or parts.blocks_of(points, line) is not None


def _networks(shown: Runs) -> list[str | Choice]:
    known = titles(networks_of(shown.points))
    return [
        "One network",
        Choice("one", "Network", _detailed_lines(shown), known.__getitem__, 260),
    ]


def _one_network(shown: Runs, line: str) -> list[Chart]:
    """Draw what was measured of one network.

    Shares, the norm between its bounds, layer quantities and blocks are possible.
    """
    found = (
        parts.shares(shown.points, line),
        parts.bounded(shown.points, line),
        parts.quantities(shown.points, line),
        parts.blocks(shown.points, line),
    )
    return [chart for chart in found if chart is not None]


FIGURES = (
    Figure(
        "norm",
        "Norms",
        choices=[_views],
        draw=lambda shown, view: against_width(shown.points, view),
    ),
    Figure(
        "kernel",
        "Kernel K(x, x)",
        draw=lambda shown: against_width(shown.points, KERNEL),
    ),
    Figure(
        "change",
        "ΔK of the same weights",
        draw=lambda shown: change_against_width(shown.points),
        has_data=lambda shown: bool(trained_lines(shown.points)),
    ),
    Figure(
        "balls",
        "In a ball",
        choices=[_radii],
        draw=_balls,
        has_data=lambda shown: bool(parts.radii_of(shown.points)),
    ),
    Figure(
        "one",
        "One network",
        choices=[_networks],
        draw=_one_network,
        has_data=lambda shown: bool(_detailed_lines(shown)),
    ),
)


def compared(spec: HessianSpec) -> Comparison:
    """Return how runs are compared."""
    if spec.swept == "num_tokens":
        return compared_by(COLUMNS, ComparedAxis("m", "tokens T"))
    return compared_by(COLUMNS, replace(WIDTH, column="m"))
