"""The four figures of a network beside its linear model, each with its words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from dashboard.views.dynamics import ball as dynamics_ball
from dashboard.views.dynamics import figures as figures
from dashboard.views.dynamics.frames import moving, moving_takeaway
from dashboard.views.kernel_change.figures import TimeAxis
from ntk_core.experiments.dynamics.result import DynamicsPoint


class Panel(NamedTuple):
    """A figure as a page shows it.

    Attributes:
        name: of the chart, for keys and files.
        alt: what the figure shows, as a sentence.
        rows: its numbers.
        caption: sentences below it.
    """

    name: str
    title: str
    figure: go.Figure
    alt: str
    rows: Sequence[dict[str, object]]
    caption: Sequence[str] = ()


def panels(
    points: Sequence[DynamicsPoint],
    point: DynamicsPoint,
    output: str,
    method: str,
    axis: TimeAxis,
    of: figures.Points,
    kind: str = "fully-connected",
) -> tuple[Panel, ...]:
    """Of one width, output and method; the second one of all widths and outputs, the fourth one of all methods."""
    return (
        Panel(
            "outputs",
            "Outputs along training",
            figures.trajectories(point, output, method, axis, of),
            figures.trajectory_takeaway(point, output, method, of),
            figures.trajectory_rows(point, output, method, of),
        ),
        Panel(
            "difference",
            "How far they drift apart",
            figures.difference_against_time(points, method, axis, kind),
            figures.takeaway(points, method),
            figures.difference_rows(points, method),
            figures.caption(points, method),
        ),
        Panel(
            "motion",
            "In motion",
            moving(point, output, method),
            moving_takeaway(point, output, method),
            figures.trajectory_rows(point, output, method, "test points"),
        ),
        Panel(
            "ball",
            "How far weights and kernel move",
            dynamics_ball.ball(point, output, axis),
            dynamics_ball.ball_takeaway(point, output),
            dynamics_ball.ball_rows(point, output),
            [*dynamics_ball.leaving_caption(point, output), *dynamics_ball.divergence_caption(points)],
        ),
    )
