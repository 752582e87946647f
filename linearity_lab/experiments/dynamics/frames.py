"""Animation of the network and its linear model.

One frame per recorded step, with a slider and play button.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_LINE, add_level, finish, rate_words, with_margin
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.style import (
    FIGURE_HEIGHT,
    FONT_SIZE,
    GUIDE_COLOR,
    MODEL_TITLES,
    method_style,
    model_style,
    nth_style,
)
from linearity_lab.charts.training import AXIS_TITLES, Curve, Row, TimeAxis, along_training, times
from linearity_lab.experiments.dynamics.path_figures import MODELS, PointSet, trajectory_rows
from linearity_lab.experiments.dynamics.point import DynamicsPoint, DynamicsRun
from ntk_core.dynamics import condition_numbers
from ntk_core.dynamics.choices import METHODS
from ntk_core.numbers import number, width_label

FRAME_MS = 250
LEGEND_ROW = 24  # pixels


def moving(
    point: DynamicsPoint, output: str, method: str, axis: TimeAxis = "step", at: float | None = None
) -> Chart:
    """Animate the network beside its linear model, from ``at``.

    Functions of a one-dimensional input are drawn as curves, else network outputs against those of
    the linear model.
    """
    run = point.of(output, method)[0]  # with recorded outputs
    shown_at = times(run.steps, run.learning_rate, axis)
    index = (
        len(shown_at) - 1
        if at is None
        else min(range(len(shown_at)), key=lambda each: abs(shown_at[each] - at))
    )
    shown = (
        "Network and linear model"
        if point.x_test
        else "Outputs of the network against those of its linear model"
    )
    figure = _curves(point, run, index) if point.x_test else _against_linear(run, index)
    names = [frame.name for frame in figure.frames]
    figure.update_layout(
        meta={"frames": {"axis": AXIS_TITLES[axis], "at": dict(zip(names, shown_at, strict=True))}}
    )
    return Chart(
        figure,
        f"{shown} at width {point.width:,}: relative difference at the end "
        f"{number(run.difference[-1])}.",
        trajectory_rows(point, output, method, PointSet.TEST),
        heading="In motion",
    )


def end_curves(point: DynamicsPoint, run: DynamicsRun, models: Iterable[str]) -> list[go.Scatter]:
    """Draw the function of each model at the end of training.

    The inputs are one-dimensional; the training data are drawn too.
    """
    data = go.Scatter(
        x=[row[0] for row in point.x],
        y=[row[0] for row in point.y],
        mode="markers",
        marker={"size": 10, "color": GUIDE_COLOR},
        name="training data",
    )
    lines = {name: (model_style(name), dash, width) for name, dash, width in MODELS}
    traces = [data]
    for name in models:
        style, dash, width = lines[name]
        last_outputs = getattr(run, name).test_outputs[-1]
        curve = go.Scatter(
            x=[row[0] for row in point.x_test],
            y=[row[0] for row in last_outputs],
            mode="lines",
            line={"color": style.color, "dash": dash, "width": width},
            name=style.title,
            hovertemplate=f"{style.title}<br>x = %{{x:.2f}}<br>f = %{{y:.3f}}<extra></extra>",
        )
        traces.append(curve)
    return traces


def _curves(point: DynamicsPoint, run: DynamicsRun, index: int) -> go.Figure:
    every = {name: getattr(run, name) for name, _, _ in MODELS}
    models = {name: path for name, path in every.items() if path is not None}
    figure = go.Figure(end_curves(point, run, models))
    values = [row[0] for row in point.y]
    for path in models.values():
        for row in itertools.chain.from_iterable(path.test_outputs):
            values += row
    figure.update_xaxes(title="input x")
    figure.update_yaxes(title="output f(x)", range=_range(values))

    def frame(index: int) -> list[dict[str, object]]:
        return [{"y": [row[0] for row in path.test_outputs[index]]} for path in models.values()]

    return _animated(figure, run, frame, list(range(1, 1 + len(models))), index)


def _against_linear(run: DynamicsRun, index: int) -> go.Figure:
    figure = go.Figure()
    sets = [(PointSet.TRAINING.value, run.linearized.outputs, run.network.outputs)]
    sets.append((PointSet.TEST.value, run.linearized.test_outputs, run.network.test_outputs))
    values: list[float] = []
    for _, linear, network in sets:
        for block in (*linear, *network):
            for row in block:
                values += row
    ends = _range(values)
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line=GUIDE_LINE, name="equal", hoverinfo="skip"
    )
    for number_of_set, (title, linear, network) in enumerate(sets):
        style = nth_style(number_of_set, title, "class")
        figure.add_scatter(
            x=_flat(linear[-1]),
            y=_flat(network[-1]),
            mode="markers",
            marker={"color": style.color, "symbol": style.symbol, "size": 10},
            name=title,
            hovertemplate=f"{title}<br>linear model %{{x:.3f}}<br>network "
            f"%{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title="output of the linear model", range=ends)
    figure.update_yaxes(title="output of the network", range=ends)

    def frame(index: int) -> list[dict[str, object]]:
        return [
            {"x": _flat(linear[index]), "y": _flat(network[index])} for _, linear, network in sets
        ]

    return _animated(figure, run, frame, [1, 2], index)


def _animated(
    figure: go.Figure,
    run: DynamicsRun,
    frame: Callable[[int], list[dict[str, object]]],
    traces: list[int],
    index: int,
) -> go.Figure:
    """Add a slider over all records to ``figure``, which shows record ``index``.

    Play starts from the first.
    """
    for trace, data in zip(traces, frame(index), strict=True):
        figure.data[trace].update(data)
    figure.frames = [
        go.Frame(
            data=[go.Scatter(**data) for data in frame(record)], traces=traces, name=f"{step:,}"
        )
        for record, step in enumerate(run.steps)
    ]
    names = [each.name for each in figure.frames]
    finish(figure)
    # Space of the legend, two entries per row on a phone.
    below = LEGEND_ROW * math.ceil(len(figure.data) / 2)
    return figure.update_layout(
        height=FIGURE_HEIGHT + 36 + below,
        sliders=[_slider(names, index)],
        updatemenus=[_play_buttons(names, below)],
    )


STILL: Final = {
    "mode": "immediate",
    "frame": {"duration": 0, "redraw": False},
    "transition": {"duration": 0},
}
PLAYING: Final = {
    "fromcurrent": True,
    "frame": {"duration": FRAME_MS, "redraw": False},
    "transition": {"duration": 0},
}


def _slider(names: Sequence[str], index: int) -> dict[str, object]:
    """A slider over the frames with these names, at the one with this index."""
    font = {"size": FONT_SIZE, "color": GUIDE_COLOR}
    steps = [{"label": name, "method": "animate", "args": [[name], STILL]} for name in names]
    return {
        "active": index,
        "steps": steps,
        "currentvalue": {"xanchor": "right", "prefix": "step ", "font": font},
        "x": 0.3,
        "len": 0.7,
        "y": -0.14,
        "pad": {"t": 10},
        "ticklen": 0,
        "font": {"size": 1, "color": "rgba(0,0,0,0)"},
    }


def _play_buttons(names: Sequence[str], below: float) -> dict[str, object]:
    """Buttons that play all frames and stop."""
    return {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0,
        "y": -0.22,
        "pad": {"b": below},
        "xanchor": "left",
        "yanchor": "top",
        "font": {"size": FONT_SIZE, "color": "#333333"},
        "bgcolor": "#FFFFFF",
        "buttons": [
            {"label": "▶", "method": "animate", "args": [names, PLAYING]},
            {"label": "❚❚", "method": "animate", "args": [[None], STILL]},
        ],
    }


def _flat(block: Sequence[Sequence[float]]) -> list[float]:
    return [value for row in block for value in row]


def _range(values: Sequence[float]) -> list[float]:
    # Diverged ones are cut off.
    finite = [value for value in values if math.isfinite(value) and abs(value) < 1e3]
    return with_margin(finite or (-1.0, 1.0), log=False, share=0.06, least=1.0)


REFERENCE = "gradient-descent"
OUTSIDE = 1.5  # our choice: a method has left the ball at this multiple of its radius


def ball(
    points: Sequence[DynamicsPoint],
    point: DynamicsPoint,
    output: str,
    axis: TimeAxis,
    num_rows: int,
) -> Chart:
    """Draw ‖w_t − w₀‖₂ and ΔK(t) at one width for every method.

    With several methods, the dashed line is the ball of gradient descent; with one, dotted lines
    show ΔK(t) by layer. The caption names diverged runs of all ``points``. ``num_rows`` of the
    kernels, n·C, limits the condition numbers that single precision resolves.
    """
    methods = occurring([point], "method")
    curves: list[Curve] = []
    parts = []
    for method in methods:
        runs = point.of(output, method)
        distance = number(runs[0].sup_distance)
        change = number(runs[0].sup_change)
        title = method_style(method).title
        parts.append(f"{title} distance {distance}, kernel change {change}")
        for index, run in enumerate(runs):
            curves += _distance_and_change(run, method, axis, is_first=index == 0)
    if len(methods) == 1:
        curves += _change_by_layer(point.of(output)[0], axis)
    rows = (Row("‖w − w₀‖₂"), Row("ΔK(t)"))
    figure = along_training(curves, rows, AXIS_TITLES[axis])
    radius = ball_radius(point, output)
    if radius is not None:
        add_level(figure, radius, "ball of gradient descent")
    return Chart(
        figure,
        f"Farthest from the start at width {point.width:,}: {'; '.join(parts)}.",
        _rows_of_ball(point.of(output), num_rows),
        [*leaving_caption(point, output), *divergence_caption(points)],
        heading="How far weights and kernel move",
    )


def _distance_and_change(
    run: DynamicsRun, method: str, axis: TimeAxis, *, is_first: bool
) -> list[Curve]:
    """Draw ‖w_t − w₀‖₂ in the first row and ΔK(t) in the second."""
    style = method_style(method)
    x = times(run.steps, run.learning_rate, axis)
    looks: dict[str, Any] = {"marks": 6, "unit": axis, "is_first": is_first}
    return [
        Curve(style, x, run.network.distance, "‖w − w₀‖₂", run.seed, 1, **looks),
        Curve(style, x, run.change, "ΔK(t)", run.seed, 2, **looks),
    ]


def _change_by_layer(run: DynamicsRun, axis: TimeAxis) -> list[Curve]:
    """Draw the part of each layer in ΔK(t), in the second row."""
    x = times(run.steps, run.learning_rate, axis)
    curves = []
    for index, (name, values) in enumerate(run.layer_change.items(), start=1):
        title = f"part of {name.replace('hidden', 'hidden layer ')}"
        style = replace(nth_style(index, title, "layer"), symbol="")
        curves.append(Curve(style, x, values, "part of ΔK(t)", run.seed, 2, width=2, unit=axis))
    return curves


def _rows_of_ball(runs: Sequence[DynamicsRun], num_rows: int) -> list[dict[str, object]]:
    """Return one row per run and record, with the condition number of the kernel."""
    table: list[dict[str, object]] = []
    for run in runs:
        condition = condition_numbers(run.smallest, run.largest, num_rows)
        for index, step in enumerate(run.steps):
            layers = {f"ΔK of {name}": values[index] for name, values in run.layer_change.items()}
            table.append(
                {
                    "method": METHODS[run.method].title,
                    "seed": run.seed,
                    "step": step,
                    "‖w − w₀‖₂": run.network.distance[index],
                    "‖w − w₀‖_∞": run.largest_distance[index],
                    "ΔK(t)": run.change[index],
                    **layers,
                    "λ_min": run.smallest[index],
                    "λ_max": run.largest[index],
                    "condition number": float(condition.values[index]),
                    "is a lower bound": bool(condition.is_lower_bound[index]),
                }
            )
    return table


def ball_radius(point: DynamicsPoint, output: str) -> float | None:
    """Return the reference distance at this width.

    It is the largest distance of gradient descent from w₀, or None without gradient descent.
    """
    runs = point.of(output, REFERENCE)
    return (
        max(run.sup_distance for run in runs)
        if runs and len(occurring([point], "method")) > 1
        else None
    )


def leaving_caption(point: DynamicsPoint, output: str) -> list[str]:
    """Return which methods leave the ball of gradient descent.

    The caption states when, and the kernel change afterwards.
    """
    radius = ball_radius(point, output)
    if radius is None:
        return []
    found = []
    for method in occurring([point], "method"):
        run = point.of(output, method)[0]
        step = next(
            (
                s
                for s, r in zip(run.steps, run.network.distance, strict=True)
                if r > OUTSIDE * radius
            ),
            None,
        )
        if step is not None:
            found.append(
                f"{METHODS[method].title} from step {step:,} ({run.sup_distance / radius:.1f} "
                f"times as far, ΔK up to {number(run.sup_change)})"
            )
    return [
        f"Gradient descent stays within {number(radius)} of w₀ at m = {width_label(point.width)}; "
        f"beyond {OUTSIDE:g} times that: {'; '.join(found) or 'no method'}."
    ]


def divergence_caption(points: Sequence[DynamicsPoint]) -> list[str]:
    """Return one sentence per method with diverged runs.

    The model, the step, and the stable rate.
    """
    sentences = []
    for method in occurring(points, "method"):
        runs = [
            (point.width, run) for point in points for run in point.runs if run.method == method
        ]
        found = []
        for name, (width, run) in itertools.product(("network", "linearized"), runs):
            path = getattr(run, name)
            if path.outcome == "diverged":
                place = f"{MODEL_TITLES[name]} at m = {width_label(width)}"
                found.append(f"{place} (last finite step {path.last_finite_step:,})")
        stable = min(
            (run.stable_rate for _, run in runs if run.stable_rate is not None), default=None
        )
        if found:
            listed = f"{', '.join(found[:4])}{' and others' if len(found) > 4 else ''}"
            remedy = (
                ""
                if stable is None
                else f" Linear models are stable below η = {number(stable, 3)}."
            )
            rates = rate_words(run.learning_rate for _, run in runs)
            sentences.append(
                f"Diverged with {METHODS[method].title} at η = {rates}: {listed}.{remedy}"
            )
    return sentences
