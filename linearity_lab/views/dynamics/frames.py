"""Animation of the network and its linear model: one frame per recorded step, with a slider and play button."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_LINE, finish
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import FIGURE_HEIGHT, FONT_SIZE, GUIDE_COLOR, model_style, nth_style
from linearity_lab.charts.training import AXIS_TITLES, TimeAxis, times
from linearity_lab.views.dynamics.figures import MODELS, first_run, trajectory_rows
from ntk_core.experiments.dynamics.result import DynamicsPoint, DynamicsRun
from ntk_core.numbers import number

FRAME_MS = 250
LEGEND_ROW = 24  # pixels


def moving(point: DynamicsPoint, output: str, method: str, axis: TimeAxis = "step", at: float | None = None) -> Chart:
    """Curves over the input where it has one dimension; else each output of the network against its linear model.

    Args:
        at: step or time of the first frame; None for the last record.
    """
    run = first_run(point, output, method)
    shown_at = times(run.steps, run.learning_rate, axis)
    index = len(shown_at) - 1 if at is None else min(range(len(shown_at)), key=lambda each: abs(shown_at[each] - at))
    shown = "The function of the network, its linear model" if point.x_test else "Outputs against the linear model"
    figure = _curves(point, run, index) if point.x_test else _against_linear(run, index)
    names = [frame.name for frame in figure.frames]
    figure.update_layout(meta={"frames": {"axis": AXIS_TITLES[axis], "at": dict(zip(names, shown_at, strict=True))}})
    return Chart(
        figure,
        f"{shown} at width {point.width:,}, step by step; relative difference at the end {number(run.difference[-1])}.",
        trajectory_rows(point, output, method, "test points"),
        name="figure.motion",
        heading="In motion",
    )


def end_curves(point: DynamicsPoint, run: DynamicsRun, models: Iterable[str]) -> list[go.Scatter]:
    """Draw training data and the function of each model at the end of training, for one-dimensional inputs."""
    data = go.Scatter(
        x=[row[0] for row in point.x],
        y=[row[0] for row in point.y],
        mode="markers",
        marker={"size": 10, "color": GUIDE_COLOR},
        name="training data",
    )
    looks = {name: (model_style(name), dash, width) for name, dash, width in MODELS}
    curves = [
        go.Scatter(
            x=[row[0] for row in point.x_test],
            y=[row[0] for row in getattr(run, name).test_outputs[-1]],
            mode="lines",
            line={"color": style.color, "dash": dash, "width": width},
            name=style.title,
            hovertemplate=f"{style.title}<br>x = %{{x:.2f}}<br>f = %{{y:.3f}}<extra></extra>",
        )
        for name in models
        for style, dash, width in [looks[name]]
    ]
    return [data, *curves]


def _curves(point: DynamicsPoint, run: DynamicsRun, index: int) -> go.Figure:
    models = {name: path for name, _, _ in MODELS if (path := getattr(run, name)) is not None}
    figure = go.Figure(end_curves(point, run, models))
    values = [v for path in models.values() for block in path.test_outputs for row in block for v in row]
    figure.update_xaxes(title="input x")
    figure.update_yaxes(title="output f(x)", range=_range([*values, *(row[0] for row in point.y)]))

    def frame(index: int) -> list[dict[str, Any]]:
        return [{"y": [row[0] for row in path.test_outputs[index]]} for path in models.values()]

    return _animated(figure, run, frame, list(range(1, 1 + len(models))), index)


def _against_linear(run: DynamicsRun, index: int) -> go.Figure:
    figure = go.Figure()
    sets = [("training points", run.linearized.outputs, run.network.outputs)]
    sets.append(("test points", run.linearized.test_outputs, run.network.test_outputs))
    values = [v for _, *models in sets for model in models for block in model for row in block for v in row]
    ends = _range(values)
    figure.add_scatter(x=ends, y=ends, mode="lines", line=GUIDE_LINE, name="equal", hoverinfo="skip")
    for number_of_set, (title, linear, network) in enumerate(sets):
        style = nth_style(number_of_set, title, "class")
        figure.add_scatter(
            x=_flat(linear[-1]),
            y=_flat(network[-1]),
            mode="markers",
            marker={"color": style.color, "symbol": style.symbol, "size": 10},
            name=title,
            hovertemplate=f"{title}<br>linear model %{{x:.3f}}<br>network %{{y:.3f}}<extra></extra>",
        )
    figure.update_xaxes(title="output of the linear model", range=ends)
    figure.update_yaxes(title="output of the network", range=ends)

    def frame(index: int) -> list[dict[str, Any]]:
        return [{"x": _flat(linear[index]), "y": _flat(network[index])} for _, linear, network in sets]

    return _animated(figure, run, frame, [1, 2], index)


def _animated(
    figure: go.Figure, run: DynamicsRun, frame: Callable[[int], list[dict[str, Any]]], traces: list[int], index: int
) -> go.Figure:
    """Add a slider over all records to ``figure``, which shows record ``index``; play starts from the first."""
    for trace, data in zip(traces, frame(index), strict=True):
        figure.data[trace].update(data)
    figure.frames = [
        go.Frame(data=[go.Scatter(**data) for data in frame(index)], traces=traces, name=f"{step:,}")
        for index, step in enumerate(run.steps)
    ]
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": False}, "transition": {"duration": 0}}
    playing = {"fromcurrent": True, "frame": {"duration": FRAME_MS, "redraw": False}, "transition": {"duration": 0}}
    names = [each.name for each in figure.frames]
    finish(figure)
    below = LEGEND_ROW * math.ceil(len(figure.data) / 2)  # of the legend, two entries per row on a phone
    return figure.update_layout(
        height=FIGURE_HEIGHT + 36 + below,
        sliders=[
            {
                "active": index,
                "steps": [{"label": name, "method": "animate", "args": [[name], still]} for name in names],
                "currentvalue": {
                    "xanchor": "right",
                    "prefix": "step ",
                    "font": {"size": FONT_SIZE, "color": GUIDE_COLOR},
                },
                "x": 0.3,
                "len": 0.7,
                "y": -0.14,
                "pad": {"t": 10},
                "ticklen": 0,
                "font": {"size": 1, "color": "rgba(0,0,0,0)"},
            }
        ],
        updatemenus=[
            {
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
                    {"label": "▶", "method": "animate", "args": [names, playing]},
                    {"label": "❚❚", "method": "animate", "args": [[None], still]},
                ],
            }
        ],
    )


def _flat(block: Sequence[Sequence[float]]) -> list[float]:
    return [value for row in block for value in row]


def _range(values: Sequence[float]) -> list[float]:
    """Return the range of finite values with a margin; diverged values are cut off."""
    finite = sorted(value for value in values if math.isfinite(value) and abs(value) < 1e3)
    low, high = (finite[0], finite[-1]) if finite else (-1.0, 1.0)
    margin = 0.06 * (high - low) or 1.0
    return [low - margin, high + margin]
