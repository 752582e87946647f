"""Kernel change against width and during training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from functools import partial

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.training import AXIS_TITLES, TimeAxis
from linearity_lab.components.chart import WIDTH, Choice, Panel, choose, seed_choice
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.kernel_change import figures
from ntk_core.numbers import width_label

PAGE = "kernel_change"
TITLE = "When does the tangent kernel stop moving?"
PRESETS = (
    "liu-fig1-left", "liu-fig1-wide", "liu-fig1-right", "liu-fig2", "liu-resnet", "liu-cnn", "liu-mixed",
    "kernel-velocity", "why-one-over-m",
)  # fmt: skip
CONTROLS = ("widths", "architecture.depth", "architecture.activation", "outputs", "num_seeds")
GROUPS = (
    Group("Network", ("architecture.", "outputs")),
    Group("Widths and seeds", ("swept", "hidden_width", "widths", "num_seeds", "seed", "draws")),
    Group("Training", ("measured", "ball_radius", "probes", "training.")),
    Group("Data", ("dataset.",)),
)


def draw(shown: Shown) -> list[Panel]:
    """Draw ΔK against width, during training at a chosen width, and the measurements at w₀."""
    spec, kind = shown.spec, shown.spec.architecture.kind
    points = {point.width: point for point in shown.points}

    def over_widths() -> Chart:
        return figures.change_against_width(shown.points, spec.widths, spec.swept, kind)

    def over_time(width: int, axis: TimeAxis, seed: int | None = None) -> Chart:
        return figures.change_against_time(points[width], axis, spec.training.loss_threshold, kind, seed)

    def along_training() -> Chart:
        widths = Choice("shown_width", "Width m", list(points), width_label, 92, begins=-1, axis=WIDTH)
        axes = Choice("axis", "Horizontal axis", list(AXIS_TITLES), "by {}".format, 102)
        seeds = seed_choice(run for point in shown.points for run in point.runs)
        chosen = choose(PAGE, "Training at width", widths, axes, *seeds)
        return drawn_once(f"{PAGE}.against_time", shown.identity, over_time, *chosen)

    def at_start() -> Chart:
        settings = spec.widths, spec.swept, kind, spec.ball_radius
        return drawn_once(
            f"{PAGE}.at_start", shown.identity, partial(figures.start_against_width, shown.points, *settings)
        )

    found = []
    if spec.trains:
        found += [
            Panel("Against width", lambda: drawn_once(f"{PAGE}.against_width", shown.identity, over_widths)),
            Panel("Along training", along_training),
        ]
    if any(point.at_start for point in shown.points):
        found += [Panel("Before training", at_start)]
    return found


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS, presets=PRESETS)
