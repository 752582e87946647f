"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from functools import partial

from dashboard.charts.chart import Chart, led_by, occurring
from dashboard.components.chart import Choice, choose, output_choice, seed_choice, show_in_pairs, width_choice
from dashboard.components.drawn_once import drawn_once
from dashboard.components.experiment_page import experiment_page
from dashboard.components.forms import Group
from dashboard.components.run_panel import Shown
from dashboard.views.optimization import figures

PAGE = "optimization"
TITLE = "Does training need a constant kernel?"
GROUPS = (
    Group("Network", ("outputs", "architecture.")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws")),
    Group("Training", ("rates", "training.")),
    Group("Data", ("dataset.",), expanded=False),
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


def draw(shown: Shown) -> None:
    """Four charts."""
    chosen = choose(
        PAGE,
        output_choice(occurring(shown.points, "output"), 230),
        width_choice(shown.points),
        Choice("axis", "Steps", figures.STEP_AXES, "{} axis".format),
        *seed_choice(run for point in shown.points for run in point.runs),
    )
    show_in_pairs(PAGE, drawn_once(PAGE, shown.identity, partial(charts, shown), *chosen))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw)
