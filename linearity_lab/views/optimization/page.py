"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from functools import partial

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.components.chart import Choice, Panel, choose, output_choice, panels, seed_choice, width_choice
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.optimization import figures

PAGE = "optimization"
TITLE = "Does training need a constant kernel?"
CONTROLS = ("outputs", "widths", "rates")
GROUPS = (
    Group("Network", ("outputs", "architecture.")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws")),
    Group("Training", ("rates", "training.")),
    Group("Data", ("dataset.",)),
)


def charts(shown: Shown, output: str, width: int, axis: figures.StepAxis, seed: int | None = None) -> tuple[Chart, ...]:
    """Of one width and output, this or the first seed drawn strong; the second one of all."""
    (point,) = led_by([shown.point(width)], seed)
    return (
        figures.loss_against_step(point, output, axis),
        figures.change_against_width(shown.points, shown.spec.widths, shown.spec.architecture.kind),
        figures.spectrum_against_step(point, output),
        figures.pl_against_step(point, output),
    )


def draw(shown: Shown) -> list[Panel]:
    """The loss of one width and output, then what moves meanwhile."""
    chosen = choose(
        PAGE,
        output_choice(occurring(shown.points, "output"), 230),
        width_choice(shown.points),
        more=[
            Choice("axis", "Steps", figures.STEP_AXES, "{} axis".format),
            *seed_choice(run for point in shown.points for run in point.runs),
        ],
    )
    return panels(drawn_once(PAGE, shown.identity, partial(charts, shown), *chosen))


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
