"""Kernel change against width and during training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from functools import partial

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.training import AXIS_TITLES, TimeAxis
from linearity_lab.dashboard.chart import WIDTH, Choice, Panel, seed_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.kernel_change import figures
from linearity_lab.experiments.kernel_change.point import KernelChangePoint
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.numbers import width_label

Runs = Shown[KernelChangeSpec, KernelChangePoint]


def draw(shown: Runs) -> list[Panel]:
    """Draw ΔK against width, during training at a chosen width, and the measurements at w₀."""
    spec, kind = shown.spec, shown.spec.architecture.kind
    points = {point.width: point for point in shown.points}

    def over_time(width: int, axis: TimeAxis, seed: int | None = None) -> Chart:
        return figures.change_against_time(
            points[width], axis, spec.training.loss_threshold, kind, seed
        )

    def along_training() -> Chart:
        widths = Choice(
            "shown_width", "Width m", list(points), width_label, 92, begins=-1, axis=WIDTH
        )
        axes = Choice("axis", "Horizontal axis", list(AXIS_TITLES), "by {}".format, 102)
        seeds = seed_choice(shown.points)
        chosen = shown.choose("Training at width", widths, axes, *seeds)
        return shown.drawn("against_time", over_time, *chosen)

    settings = shown.points, spec.widths, spec.swept, kind
    change = partial(figures.change_against_width, *settings)
    start = partial(figures.start_against_width, *settings, spec.ball_radius)
    over_widths = Panel("Against width", lambda: shown.drawn("against_width", change))
    at_start = Panel("Before training", lambda: shown.drawn("at_start", start))
    trained = [over_widths, Panel("Along training", along_training)] if spec.trains else []
    return [*trained, *([at_start] if any(point.at_start for point in shown.points) else [])]


PRESETS = (
    "liu-fig1-left", "liu-fig1-wide", "liu-fig1-right", "liu-fig2", "liu-resnet", "liu-cnn", "liu-mixed",
    "kernel-velocity", "why-one-over-m",
)  # fmt: skip
PAGE = ExperimentPage(
    "kernel_change",
    draw,
    controls=("widths", "architecture.depth", "architecture.activation", "outputs", "num_seeds"),
    groups={"Widths and seeds": ("swept", "hidden_width")},
    title="When does the tangent kernel stop moving?",
    presets=PRESETS,
)
show = PAGE.show
