"""How far weights and kernel move under each method, and where training leaves the ball of gradient descent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts.style import (
    FONT_SIZE,
    GUIDE_COLOR,
    MODEL_TITLES,
    SEED_OPACITY,
    method_style,
    nth_style,
    width_label,
)
from dashboard.charts.sweep import finish
from dashboard.views.dynamics.figures import factor, methods_of
from dashboard.views.kernel_change.figures import AXIS_TITLES, TimeAxis, rate_words
from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.result import DynamicsPoint, DynamicsRun

REFERENCE = "gradient-descent"
OUTSIDE = 1.5  # our choice: a method has left the ball when it is this many times farther out


def ball(point: DynamicsPoint, output: str, axis: TimeAxis) -> go.Figure:
    """‖w_t − w₀‖₂ and ΔK(t) of the network of one width under every method: does training stay in a ball?

    With several methods the dashed line is the ball that gradient descent stays in; with one, dotted lines are the
    layers' parts of ΔK(t).
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    methods = methods_of([point])
    for method in methods:
        style = method_style(method)
        for number, run in enumerate(point.of(output, method)):
            look: dict[str, Any] = {
                "mode": "lines+markers",
                "line": {"color": style.color, "dash": style.dash, "width": 2.5 if number == 0 else 1.2},
                "marker": {"symbol": style.symbol, "size": 6, "color": style.color},
                "opacity": 1 if number == 0 else SEED_OPACITY,
                "legendgroup": method,
            }
            _add(figure, run, run.network.distance, "‖w − w₀‖₂", style.title, axis, 1, number == 0, look)
            _add(figure, run, run.change, "ΔK(t)", style.title, axis, 2, False, look)
    if len(methods) == 1:
        _add_layers(figure, point.of(output)[0], axis)
    radius = ball_radius(point, output)
    if radius is not None:
        label = {
            "text": "ball of gradient descent",
            "font": {"color": GUIDE_COLOR, "size": FONT_SIZE},
            "textposition": "start",
            "yanchor": "bottom",
        }
        line = {"color": GUIDE_COLOR, "dash": "dash", "width": 1.3}
        figure.add_shape(
            type="line", xref="x domain", yref="y", x0=0, x1=1, y0=radius, y1=radius, line=line, label=label
        )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g")
    figure.update_xaxes(title=AXIS_TITLES[axis], row=2, col=1)
    for row, title in ((1, "‖w − w<sub>0</sub>‖<sub>2</sub>"), (2, "ΔK(t)")):
        values = [v for trace in figure.data if trace.yaxis == ("y", "y2")[row - 1] for v in trace.y]
        figure.update_yaxes(type="log", dtick=_decades(values), tickformat=".4~g", title=title, row=row, col=1)
    return finish(figure)


def ball_radius(point: DynamicsPoint, output: str) -> float | None:
    """The farthest that gradient descent gets from w₀ at this width, to compare other methods with; else None."""
    runs = point.of(output, REFERENCE)
    return max(run.sup_distance for run in runs) if runs and len(methods_of([point])) > 1 else None


def leaving_caption(point: DynamicsPoint, output: str) -> list[str]:
    """Which methods leave the ball of gradient descent, when, and how far their kernel then moves."""
    radius = ball_radius(point, output)
    if radius is None:
        return []
    found = []
    for method in methods_of([point]):
        run = point.of(output, method)[0]
        step = next((s for s, r in zip(run.steps, run.network.distance, strict=True) if r > OUTSIDE * radius), None)
        if step is not None:
            found.append(
                f"{METHODS[method].title} from step {step:,} ({run.sup_distance / radius:.1f} times as far, "
                f"ΔK up to {run.sup_change:.2g})"
            )
    who = "; ".join(found) if found else "no method"
    return [
        f"Gradient descent stays within {radius:.2g} of w₀ at m = {width_label(point.width)}; farther than {OUTSIDE:g} "
        f"times that: {who}."
    ]


def divergence_caption(points: Sequence[DynamicsPoint]) -> list[str]:
    """One sentence per method with runs that diverged: what did, from which step, and which rate would be stable."""
    sentences = []
    for method in methods_of(points):
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
            remedy = "" if stable is None else f" Linear models are stable below η = {stable:.3g}."
            rates = rate_words(run for _, run in runs)
            sentences.append(f"Diverged with {METHODS[method].title} at η = {rates}: {listed}.{remedy}")
    return sentences


def ball_takeaway(point: DynamicsPoint, output: str) -> str:
    """What the figure of distances says, for those who do not see it."""
    parts = [
        f"{METHODS[method].title} distance {run.sup_distance:.2g}, kernel change {run.sup_change:.2g}"
        for method in methods_of([point])
        for run in point.of(output, method)[:1]
    ]
    return f"Farthest from the start at width {point.width:,}: " + "; ".join(parts) + "."


def ball_rows(point: DynamicsPoint, output: str) -> list[dict[str, object]]:
    """One row per method, seed and recorded step: distances, the kernel's movement, its spectrum and its layers."""
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


def _add(
    figure: go.Figure,
    run: DynamicsRun,
    values: Sequence[float],
    words: str,
    title: str,
    axis: TimeAxis,
    row: int,
    in_legend: bool,
    look: dict[str, Any],
) -> None:
    figure.add_scatter(
        x=[step * factor(run, axis) for step in run.steps[1:]],
        y=[value if value > 0 else math.nan for value in values[1:]],
        name=title,
        showlegend=in_legend,
        hovertemplate=f"{title}, seed {run.seed}<br>{axis} %{{x:.3g}}<br>{words} %{{y:.3g}}<extra></extra>",
        row=row,
        col=1,
        **look,
    )


def _add_layers(figure: go.Figure, run: DynamicsRun, axis: TimeAxis) -> None:
    for index, (name, values) in enumerate(run.layer_change.items(), start=1):
        look = {"mode": "lines", "line": {"color": nth_style(index, name).color, "dash": "dot", "width": 2}}
        _add(figure, run, values, "part of ΔK(t)", f"part of {name}", axis, 2, True, look)


def _decades(values: Sequence[float]) -> float | str:
    """One tick per decade, more where the values span less than a decade and a half."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    return 1 if positive and max(positive) / min(positive) > 30 else "D2"
