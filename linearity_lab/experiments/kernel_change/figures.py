"""Kernel change ΔK against width and during training.

The first figures are those of Liu, Zhu & Belkin (2020), Fig. 1 left and right.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from linearity_lab.charts.axes import add_level, rate_words
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.choices import WIDTH, Choice, seed_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Dot, Line, trained_dot, width_axis
from linearity_lab.charts.style import network_style, nth_style, output_title
from linearity_lab.charts.sweep import left_out, sweep
from linearity_lab.charts.training import AXIS_TITLES, Curve, Row, TimeAxis, along_training, times
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.experiments.kernel_change.point import (
    KernelChangePoint,
    KernelChangeRun,
    KernelChanges,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.numbers import number, percent, width_label

Runs = Shown[KernelChangeSpec, KernelChangePoint]

SWEPT_TITLES = {"width": "width m", "bottleneck_width": "bottleneck width m<sub>b</sub>"}


def change_lines(points: Sequence[KernelChanges], kind: str = "fully-connected") -> dict[str, Line]:
    """Map outputs to ΔK = sup over t of ‖K(t) − K(0)‖ / ‖K(0)‖ of runs of this architecture."""
    lines = {}
    for output in occurring(points, "output"):
        dots = []
        more: dict[float, dict[str, object]] = {}
        for point in points:
            runs = point.of(output)
            for run in runs:
                rate = f"η = {rate_words([run.learning_rate])}"
                dot = trained_dot(point.width, run.sup_change, run, rate)
                dots.append(replace(dot, error=run.sup_error))
            rates = rate_words(run.learning_rate for run in runs)
            more[point.width] = {"learning rate η": rates}
        lines[output] = Line(network_style(kind, output), dots, more=more)
    return lines


def linear_model_line(points: Sequence[KernelChanges], kind: str) -> list[Line]:
    """Return ΔK of softmax(f_lin), whose own kernel is constant.

    Nothing where it was not trained.
    """
    dots = []
    for point in points:
        for run in point.of("softmax"):
            if run.linear_model_change:
                dots.append(trained_dot(point.width, run.linear_model_sup, run, ""))
    if not dots:
        return []
    return [Line(network_style(kind, "softmax", LINEAR_MODEL_TITLE, 1), dots)]


def change_against_width(
    points: Sequence[KernelChangePoint],
    widths: Sequence[int] = (),
    swept: str = "width",
    kind: str = "fully-connected",
    *,
    with_rates: bool = True,
) -> Chart:
    """Draw ΔK of every output against width, log–log.

    All ``widths`` fix the axis while points arrive.
    """
    return sweep(
        [*change_lines(points, kind).values(), *linear_model_line(points, kind)],
        width_axis(widths, SWEPT_TITLES[swept]),
        "kernel change ΔK",
        "ΔK",
        slopes=(-0.5, -1.0),
        of="output",
        heading="Against width",
        caption=[
            *(_rates(points) if with_rates else ()),
            *_estimated(points, ", the bar at a mark"),
        ],
    )


def start_against_width(
    points: Sequence[KernelChangePoint],
    widths: Sequence[int] = (),
    swept: str = "width",
    kind: str = "fully-connected",
    radius: float = 0.0,
) -> Chart:
    """Draw the kernel velocity at w₀ and the ball's largest ΔK.

    If networks were trained, ΔK in training is drawn too.
    """
    outputs = occurring(points, "output") or list(
        dict.fromkeys(s.output for point in points for s in point.at_start)
    )
    changes = change_lines(points, kind)
    lines = []
    for output in outputs:
        of = f", {output_title(output)}" if len(outputs) > 1 else ""
        titles = {
            "ball_change": f"largest ΔK for R = {number(radius)}{of}",
            "velocity": f"velocity at w₀{of}",
        }
        for variant, (measure, title) in enumerate(titles.items(), start=1):
            dots = []
            for point in points:
                for start in point.at_start:
                    value = getattr(start, measure)
                    if start.output == output and value is not None:
                        dots.append(Dot(point.width, value, start.seed))
            if dots:
                # Beside ΔK in training, in the color of the network.
                alone = nth_style(5 + variant, title)
                several = network_style(kind, output, title, variant if changes else 0)
                lines.append(Line(alone if changes and len(outputs) == 1 else several, dots))
        if output in changes:
            style = network_style(kind, output, f"ΔK in training{of}")
            lines.append(Line(style, changes[output].dots, more=changes[output].more))
    return sweep(
        lines,
        width_axis(widths, SWEPT_TITLES[swept]),
        "kernel change ΔK, or velocity"
        if changes or radius
        else "kernel velocity ‖K̇<sub>0</sub>‖ / ‖K<sub>0</sub>‖",
        "value" if changes or radius else "velocity",
        names_quantities=bool(changes or radius),
        slopes=(-0.5, -1.0),
        of="measured",
        heading="Before training",
    )


def change_against_time(
    point: KernelChangePoint,
    axis: TimeAxis = "step",
    loss_threshold: float | None = None,
    kind: str = "fully-connected",
    seed: int | None = None,
) -> Chart:
    """Draw ΔK(t) of every run of one width above its training loss.

    Filled ends mark converged runs.

    Other seeds than ``seed``, by default the first, are faint. Below are its outputs at a
    few training points.
    """
    seeds = {run.seed for run in point.runs}
    strong_seed = seed if seed in seeds else min(seeds, default=0)
    followed = [run for run in point.runs if run.seed == strong_seed and run.followed]
    curves = [
        *_network_curves(point, axis, kind, seed if seed in seeds else None),
        *_linear_model_curves(point, axis, kind, strong_seed),
        *_output_curves(followed, axis, kind),
    ]
    rows = [Row("kernel change ΔK(t)", "from 0", 0.62), Row("loss", share=0.38)]
    if followed:
        rows = [
            Row("kernel change ΔK(t)", "from 0", 0.44),
            Row("loss", share=0.26),
            Row("outputs", "linear", 0.3),
        ]
    figure = along_training(curves, rows, AXIS_TITLES[axis])
    if followed:
        figure.update_layout(height=figure.layout.height * 1.3)
    if loss_threshold is not None:
        add_level(figure, loss_threshold, "threshold", row=2)
    label = f"Kernel change and loss along training at width {point.width:,}"
    words = f"{label}. Mean kernel change at the end: {', '.join(_last_changes(point))}."
    of_class = f"Outputs of seed {strong_seed} at a few training points, of the point's own class."
    caption = [
        *([of_class] if followed else []),
        *_rates([point]),
        *_estimated([point]),
        *left_out(list(change_lines([point], kind).values()), width_axis()),
    ]
    return Chart(figure, words, time_rows(point), caption, label=label)


def _network_curves(
    point: KernelChangePoint, axis: TimeAxis, kind: str, seed: int | None
) -> list[Curve]:
    """Draw ΔK(t) and the loss of every run.

    Strong are those of ``seed``, or the first of each output.
    """
    curves = []
    drawn: set[str] = set()  # outputs with a run
    for run in point.runs:
        style = network_style(kind, run.output)
        is_first = run.output not in drawn if seed is None else run.seed == seed
        drawn.add(run.output)
        x = times(run.steps, run.learning_rate, axis)
        for row, what, values in ((1, "ΔK(t)", run.change), (2, "loss", run.loss)):
            curve = Curve(
                style,
                x,
                values,
                what,
                run.seed,
                row,
                width=2,
                marked=-1,
                symbol=style.mark(run.outcome),
                unit=axis,
                is_first=is_first,
            )
            curves.append(curve)
    return curves


def _linear_model_curves(
    point: KernelChangePoint, axis: TimeAxis, kind: str, strong_seed: int
) -> list[Curve]:
    """Draw ΔK(t) of softmax(f_lin), where it was trained."""
    style = network_style(kind, "softmax", LINEAR_MODEL_TITLE, 1)
    what = "ΔK(t) of the softmax of the linear model"
    curves = []
    for run in point.of("softmax"):
        if not run.linear_model_change:
            continue
        x = times(run.steps, run.learning_rate, axis)
        is_first = run.seed == strong_seed
        values = run.linear_model_change
        curves.append(
            Curve(style, x, values, what, run.seed, 1, width=2, unit=axis, is_first=is_first)
        )
    return curves


def _output_curves(runs: Sequence[KernelChangeRun], axis: TimeAxis, kind: str) -> list[Curve]:
    """Draw the outputs of runs at their followed points."""
    curves = []
    for run in runs:
        style = network_style(kind, run.output)
        x = times(run.steps, run.learning_rate, axis)
        for number_of, values in enumerate(zip(*run.followed, strict=True), start=1):
            what = f"output at training point {number_of}"
            curves.append(
                Curve(style, x, values, what, run.seed, 3, width=1.5, unit=axis, in_legend=False)
            )
    return curves


def _last_changes(point: KernelChangePoint) -> list[str]:
    """Return the mean ΔK of each output at the end of training, in words."""
    found = []
    for output in occurring([point], "output"):
        last = [run.change[-1] for run in point.of(output)]
        finite = [change for change in last if math.isfinite(change)]
        if finite:
            found.append(f"{output_title(output)} {number(sum(finite) / len(finite))}")
    return found


def time_rows(point: KernelChangePoint) -> list[dict[str, object]]:
    """Return one row per run and recorded step of one width."""
    rows = []
    for run in point.runs:
        for index, step in enumerate(run.steps):
            row: dict[str, object] = {
                "output": output_title(run.output),
                "seed": run.seed,
                "step": step,
                "time": run.learning_rate * step,
                "ΔK(t)": run.change[index],
            }
            if run.error:
                row["standard error of ΔK(t)"] = run.error[index]
            row["loss"] = run.loss[index]
            if run.followed:
                for place, f in enumerate(run.followed[index], start=1):
                    row[f"output at training point {place}"] = f
            rows.append(row)
    return rows


def _estimated(points: Sequence[KernelChangePoint], shown: str = "") -> list[str]:
    runs = [run for point in points for run in point.runs if run.sup_error]
    worst = max((run.sup_error / run.sup_change for run in runs), default=0.0)
    words = (
        f"ΔK is estimated by random vectors, with a standard error of at most {percent(worst)} "
        f"of it{shown}."
    )
    return [words] if runs else []


def _rates(points: Sequence[KernelChangePoint]) -> list[str]:
    """Return the learning rates, once for outputs that share them."""
    sharing: dict[str, list[str]] = {}
    for output in occurring(points, "output"):
        rates = rate_words(run.learning_rate for point in points for run in point.of(output))
        sharing.setdefault(rates, []).append(output_title(output))
    listed = "; ".join(f"{' and '.join(titles)} {rates}" for rates, titles in sharing.items())
    return [f"Learning rate η used: {listed}."] if listed else []


def _against_width(shown: Runs) -> Chart:
    spec = shown.spec
    return change_against_width(shown.points, spec.widths, spec.swept, spec.architecture.kind)


def _along_choices(shown: Runs) -> list[str | Choice]:
    widths = [point.width for point in shown.points]
    return [
        "Training at width",
        Choice("shown_width", "Width m", widths, width_label, 92, begins=-1, axis=WIDTH),
        Choice("axis", "Horizontal axis", list(AXIS_TITLES), "by {}".format, 102),
        *seed_choice(shown.points),
    ]


def _along_training(shown: Runs, width: int, axis: TimeAxis, seed: int | None = None) -> Chart:
    spec = shown.spec
    threshold = spec.training.loss_threshold
    return change_against_time(shown.point(width), axis, threshold, spec.architecture.kind, seed)


def _before_training(shown: Runs) -> Chart:
    spec = shown.spec
    return start_against_width(
        shown.points, spec.widths, spec.swept, spec.architecture.kind, spec.ball_radius
    )


def _is_trained(shown: Runs) -> bool:
    return shown.spec.trains


FIGURES = (
    Figure("against_width", "Against width", draw=_against_width, has_data=_is_trained),
    Figure(
        "against_time",
        "Along training",
        choices=[_along_choices],
        draw=_along_training,
        has_data=_is_trained,
    ),
    Figure(
        "at_start",
        "Before training",
        draw=_before_training,
        has_data=lambda shown: any(point.at_start for point in shown.points),
    ),
)
