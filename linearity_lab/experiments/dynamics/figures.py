"""Figures of a network and its linear model, trained side by side."""

from collections.abc import Sequence

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.charts.choices import Choice, Cursor, output_choice, seed_choice, width_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.training import AXIS_TITLES, TimeAxis
from linearity_lab.experiments.dynamics.frames import ball, moving
from linearity_lab.experiments.dynamics.path_figures import (
    PointSet,
    difference_against_time,
    trajectories,
)
from linearity_lab.experiments.dynamics.point import DynamicsPoint, DynamicsSpec
from ntk_core.dynamics.choices import METHODS

Runs = Shown[DynamicsSpec, DynamicsPoint]


def _choices(shown: Runs) -> list[Choice]:
    methods = occurring(shown.points, "method")
    return [
        width_choice(shown.points),
        output_choice(occurring(shown.points, "output")),
        Choice(
            "method", "Method", methods, lambda method: METHODS[method].title, 210, is_rare=True
        ),
        Choice("axis", "Axis", list(AXIS_TITLES), "by {}".format, 110, is_rare=True),
        Choice("points", "Points", list(PointSet), pixels=160, is_rare=True),
        *seed_choice(shown.points, is_rare=True),
    ]


def _step(
    shown: Runs,
    width: int,
    output: str,
    method: str,
    axis: TimeAxis,
    of: PointSet,
    seed: int | None = None,
) -> list[Cursor]:
    """Return the step or time clicked in any figure along training."""
    return [Cursor(AXIS_TITLES[axis])]


def _outputs(
    shown: Runs,
    width: int,
    output: str,
    method: str,
    axis: TimeAxis,
    of: PointSet,
    seed: int | None = None,
) -> Chart:
    """Draw outputs, which are recorded for the first seed only."""
    return trajectories(shown.point(width), output, method, axis, of)


def _difference(
    shown: Runs,
    width: int,
    output: str,
    method: str,
    axis: TimeAxis,
    of: PointSet,
    seed: int | None = None,
) -> Chart:
    """Draw the difference of all widths and outputs, ``seed`` strong."""
    return difference_against_time(
        led_by(shown.points, seed), method, axis, shown.spec.architecture.kind
    )


def _motion(
    shown: Runs, width: int, output: str, method: str, axis: TimeAxis, of: PointSet, *rest: float
) -> Chart:
    """Draw outputs from the clicked step, which follows an optional seed."""
    *_, at = rest
    return moving(shown.point(width), output, method, axis, at)


def _ball(
    shown: Runs,
    width: int,
    output: str,
    method: str,
    axis: TimeAxis,
    of: PointSet,
    seed: int | None = None,
) -> Chart:
    """Draw all methods of one width and output, ``seed`` strong."""
    led: Sequence[DynamicsPoint] = led_by(shown.points, seed)
    point = next(each for each in led if each.width == width)
    return ball(led, point, output, axis, shown.spec.num_kernel_rows)


FIGURES = (
    Figure("figure.outputs", "Outputs along training", choices=[_choices], draw=_outputs),
    Figure(
        "figure.difference",
        "How far they diverge",
        choices=[_choices],
        draw=_difference,
        is_main=True,
    ),
    Figure("figure.motion", "In motion", choices=[_choices, _step], draw=_motion),
    Figure("figure.ball", "How far weights and kernel move", choices=[_choices], draw=_ball),
)
