"""A network and its linear model trained side by side: agreement and separation."""

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.charts.training import AXIS_TITLES, TimeAxis
from linearity_lab.dashboard.chart import (
    Choice,
    Panel,
    cursor_at,
    output_choice,
    seed_choice,
    width_choice,
)
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.dynamics import figures
from linearity_lab.experiments.dynamics.frames import ball, moving
from linearity_lab.experiments.dynamics.point import DynamicsPoint, DynamicsSpec
from ntk_core.dynamics.choices import METHODS

Runs = Shown[DynamicsSpec, DynamicsPoint]


def charts(
    shown: Runs,
    at: float | None,
    width: int,
    output: str,
    method: str,
    axis: TimeAxis,
    of: figures.Points,
    seed: int | None = None,
) -> tuple[Chart, ...]:
    """Draw charts of one width, output and method; the second of all widths and outputs, the fourth of all methods.

    The second and fourth draw ``seed`` strong; outputs are recorded for the first seed only.
    """
    point, led = shown.point(width), led_by(shown.points, seed)
    return (
        figures.trajectories(point, output, method, axis, of),
        figures.difference_against_time(led, method, axis, shown.spec.architecture.kind),
        moving(point, output, method, axis, at),
        ball(
            led,
            next(each for each in led if each.width == width),
            output,
            axis,
            shown.spec.num_kernel_rows,
        ),
    )


def draw(shown: Runs) -> list[Panel]:
    """Draw both outputs of one width, then the difference of network and linear model."""
    chosen = shown.choose(
        width_choice(shown.points),
        output_choice(occurring(shown.points, "output")),
        more=[
            Choice(
                "method",
                "Method",
                occurring(shown.points, "method"),
                lambda method: METHODS[method].title,
                210,
            ),
            Choice("axis", "Axis", list(AXIS_TITLES), "by {}".format, 110),
            Choice("points", "Points", figures.POINT_SETS, pixels=160),
            *seed_choice(shown.points),
        ],
    )
    at = cursor_at(PAGE.name, AXIS_TITLES[chosen[3]])
    return shown.panels(charts, at, *chosen)


PAGE = ExperimentPage(
    "dynamics",
    draw,
    controls=("widths", "methods", "training.learning_rate"),
    groups={"Data": ("dataset.", "num_test", "num_followed")},
)
show = PAGE.show
