"""Distance of weights and kernel under each method, and when training leaves the ball of gradient descent."""

import math
from collections.abc import Sequence
from dataclasses import replace

from linearity_lab.charts.axes import add_level
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.numbers import rate_words
from linearity_lab.charts.style import MODEL_TITLES, method_style, nth_style
from linearity_lab.charts.training import AXIS_TITLES, Curve, Row, TimeAxis, along_training, times
from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.result import DynamicsPoint
from ntk_core.numbers import number, width_label

REFERENCE = "gradient-descent"
OUTSIDE = 1.5  # our choice: a method has left the ball at this multiple of its radius


def ball(points: Sequence[DynamicsPoint], point: DynamicsPoint, output: str, axis: TimeAxis) -> Chart:
    """‖w_t − w₀‖₂ and ΔK(t) of the network of one width under every method: does training stay in a ball?

    With several methods the dashed line is the ball that gradient descent stays in; with one, dotted lines are the
    layers' parts of ΔK(t). Below, which runs of all ``points`` diverged.
    """
    methods, curves, parts = occurring([point], "method"), [], []
    for method in methods:
        runs, style = point.of(output, method), method_style(method)
        parts.append(
            f"{style.title} distance {number(runs[0].sup_distance)}, kernel change {number(runs[0].sup_change)}"
        )
        for index, run in enumerate(runs):
            x = times(run.steps, run.learning_rate, axis)
            for row, what, values in ((1, "‖w − w₀‖₂", run.network.distance), (2, "ΔK(t)", run.change)):
                curves.append(Curve(style, x, values, what, run.seed, row, marks=6, unit=axis, is_first=index == 0))
    first = point.of(output)[0]
    x = times(first.steps, first.learning_rate, axis)
    for index, (name, values) in enumerate(first.layer_change.items() if len(methods) == 1 else (), 1):
        style = replace(nth_style(index, f"part of {name.replace('hidden', 'hidden layer ')}", "layer"), symbol="")
        curves.append(Curve(style, x, values, "part of ΔK(t)", first.seed, 2, width=2, unit=axis))
    rows = (Row("‖w − w₀‖₂"), Row("ΔK(t)"))
    figure = along_training(curves, rows, AXIS_TITLES[axis])
    radius = ball_radius(point, output)
    if radius is not None:
        add_level(figure, radius, "ball of gradient descent")
    return Chart(
        figure,
        f"Farthest from the start at width {point.width:,}: {'; '.join(parts)}.",
        _rows(point, output),
        [*leaving_caption(point, output), *divergence_caption(points)],
        "figure.ball",
        "How far weights and kernel move",
    )


def ball_radius(point: DynamicsPoint, output: str) -> float | None:
    """Return the largest distance of gradient descent from w₀ at this width, as the reference; else None."""
    runs = point.of(output, REFERENCE)
    return max(run.sup_distance for run in runs) if runs and len(occurring([point], "method")) > 1 else None


def leaving_caption(point: DynamicsPoint, output: str) -> list[str]:
    """Return which methods leave the ball of gradient descent, when, and the kernel change afterwards."""
    radius = ball_radius(point, output)
    if radius is None:
        return []
    found = []
    for method in occurring([point], "method"):
        run = point.of(output, method)[0]
        step = next((s for s, r in zip(run.steps, run.network.distance, strict=True) if r > OUTSIDE * radius), None)
        if step is not None:
            found.append(
                f"{METHODS[method].title} from step {step:,} ({run.sup_distance / radius:.1f} times as far, "
                f"ΔK up to {number(run.sup_change)})"
            )
    return [
        f"Gradient descent stays within {number(radius)} of w₀ at m = {width_label(point.width)}; beyond "
        f"{OUTSIDE:g} times that: {'; '.join(found) or 'no method'}."
    ]


def divergence_caption(points: Sequence[DynamicsPoint]) -> list[str]:
    """Return one sentence per method with diverged runs: the model, the step, and the stable rate."""
    sentences = []
    for method in occurring(points, "method"):
        runs = [(point.width, run) for point in points for run in point.runs if run.method == method]
        found = [
            f"{MODEL_TITLES[name]} at m = {width_label(width)} (last finite step {path.last_finite_step:,})"
            for name in ("network", "linearized")
            for width, run in runs
            if (path := getattr(run, name)).outcome == "diverged"
        ]
        stable = min((run.stable_rate for _, run in runs if run.stable_rate is not None), default=None)
        if found:
            listed = f"{', '.join(found[:4])}{' and others' if len(found) > 4 else ''}"
            remedy = "" if stable is None else f" Linear models are stable below η = {number(stable, 3)}."
            rates = rate_words(run.learning_rate for _, run in runs)
            sentences.append(f"Diverged with {METHODS[method].title} at η = {rates}: {listed}.{remedy}")
    return sentences


def _rows(point: DynamicsPoint, output: str) -> list[dict[str, object]]:
    """Return one row per method, seed and recorded step: distances, kernel change, spectrum and layers."""
    return [
        {
            "method": METHODS[run.method].title,
            "seed": run.seed,
            "step": step,
            "‖w − w₀‖₂": run.network.distance[index],
            "‖w − w₀‖_∞": run.largest_distance[index],
            "ΔK(t)": run.change[index],
            **{f"ΔK of {name}": values[index] for name, values in run.layer_change.items()},
            "λ_min": run.smallest[index],
            "λ_max": run.largest[index],
            "condition number": run.largest[index] / run.smallest[index] if run.smallest[index] > 0 else math.inf,
        }
        for run in point.of(output)
        for index, step in enumerate(run.steps)
    ]
