"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from linearity_lab.charts.chart import Chart, led_by, occurring
from linearity_lab.dashboard.chart import Choice, output_choice, seed_choice, width_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.optimization import figures
from linearity_lab.experiments.optimization.point import OptimizationPoint, OptimizationSpec

Runs = Shown[OptimizationSpec, OptimizationPoint]


def charts(
    shown: Runs, output: str, width: int, axis: figures.StepAxis, seed: int | None = None
) -> tuple[Chart, ...]:
    """Draw charts of one width and output, this or the first seed strong; the second one of all."""
    (point,) = led_by([shown.point(width)], seed)
    return (
        figures.loss_against_step(point, output, axis),
        figures.change_against_width(shown.points, shown.spec.widths, shown.spec.architecture.kind),
        figures.spectrum_against_step(point, output, shown.spec.num_kernel_rows),
        figures.pl_against_step(point, output),
    )


PAGE = ExperimentPage[OptimizationSpec, OptimizationPoint](
    "optimization",
    charts=charts,
    choices=lambda shown: [
        output_choice(occurring(shown.points, "output"), 230),
        width_choice(shown.points),
    ],
    more=lambda shown: [
        Choice("axis", "Steps", figures.STEP_AXES, "{} axis".format),
        *seed_choice(shown.points),
    ],
    controls=("outputs", "widths", "rates"),
)
show = PAGE.show
