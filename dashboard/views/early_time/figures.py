"""A network and its linear models along training (Hu, Xiao, Adlam & Pennington 2020, Fig. 1–4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts.style import FONT_SIZE, GUIDE_COLOR, Style, model_style, nth_style
from dashboard.charts.sweep import finish
from dashboard.views.dynamics.figures import DASH_WORDS
from ntk_core.experiments.early_time.result import (
    EARLY_OUTCOME_WORDS,
    LINEAR_PHASE_SHARE,
    EarlyPoint,
    EarlyRun,
    ModelCurve,
)
from ntk_core.networks.choices import ACTIVATIONS

View = Literal["test loss", "training loss", "residual", "relative error"]
VIEWS: tuple[View, ...] = ("test loss", "training loss", "residual", "relative error")
NETWORK, LINEAR, NAIVE = (model_style(name) for name in ("network", "linear", "naive"))
_MODELS: dict[str, Style] = {"network": NETWORK, "linear": LINEAR, "naive": NAIVE}


def activations_of(point: EarlyPoint) -> tuple[str, ...]:
    """Activations with a run, in order."""
    return tuple(dict.fromkeys(run.activation for run in point.runs))


def along_training(runs: Sequence[EarlyRun], view: View) -> go.Figure:
    """One quantity of the network and its linear models against the step, with departure and end of the linear phase.

    ``runs`` are the seeds of one activation; the first one is drawn strong.
    """
    figure = make_subplots(rows=2 if view == "residual" else 1, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for index, run in enumerate(runs):
        for row, style, values in _curves(run, view):
            _add(figure, run, values, style, strong=index == 0, row=row)
    if runs:
        first = runs[0]
        _add_moments(figure, first, at_top=view != "relative error")
        _add_best(figure, first, view)
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g", range=_step_range(runs))
    figure.update_xaxes(title="step", row=2 if view == "residual" else 1, col=1)
    _loss_axis(figure, runs, view)
    return finish(figure)


def single_outputs(run: EarlyRun) -> go.Figure:
    """Outputs on a few test inputs against the step: solid the network, dashed the linear model; a color per input."""
    figure = go.Figure()
    for title, dash in (("network", "solid"), ("linear model ψ", "dash")):
        line = {"color": GUIDE_COLOR, "dash": dash, "width": 2.5}
        figure.add_scatter(x=[None], y=[None], mode="lines", line=line, name=f"{title}: {DASH_WORDS[dash]}")
    for index in range(len(run.targets)):
        style = nth_style(index, f"test input {index + 1}")
        for curve, dash, words in ((run.network, "solid", "network"), (run.linear, "dash", "linear model")):
            figure.add_scatter(
                x=run.steps[1:],
                y=[outputs[index] for outputs in curve.outputs[1:]],
                mode="lines",
                line={"color": style.color, "dash": dash, "width": 2.2},
                hovertemplate=f"{style.title}, {words}<br>step %{{x:,}}<br>output %{{y:.3g}}<extra></extra>",
                showlegend=False,
                name=f"{style.title}, {words}",
            )
    figure.update_xaxes(type="log", title="step", dtick=1, tickformat=",~g")
    figure.update_yaxes(title="output f(x)")
    return finish(figure)


def training_rows(runs: Sequence[EarlyRun]) -> list[dict[str, object]]:
    """One row per run and recorded step."""
    return [
        {
            "activation": _title(run.activation),
            "seed": run.seed,
            "step": step,
            "time": run.learning_rate * step,
            "test loss": run.network.test_loss[i],
            "linear model": run.linear.test_loss[i],
            "without norm": run.naive.test_loss[i],
            "training loss": run.network.train_loss[i],
            "residual inside the span": run.network.span_loss[i],
            "residual outside": run.network.complement_loss[i],
            "relative error": run.relative_error[i],
        }
        for run in runs
        for i, step in enumerate(run.steps)
    ]


def output_rows(run: EarlyRun) -> list[dict[str, object]]:
    """One row per single test input and recorded step."""
    return [
        {
            "test input": index + 1,
            "target": target,
            "step": step,
            "network": run.network.outputs[i][index],
            "linear model": run.linear.outputs[i][index],
        }
        for index, target in enumerate(run.targets)
        for i, step in enumerate(run.steps)
    ]


def takeaway(runs: Sequence[EarlyRun]) -> str:
    """When these runs leave their linear model, in one sentence."""
    if not runs:
        return "No run yet."
    run = runs[0]
    losses = f"test loss {run.network.test_loss[-1]:.3g}, of the linear model {run.linear.test_loss[-1]:.3g}"
    if run.departure_step is None:
        return f"{_title(run.activation)}: the network does not depart in {run.steps[-1]:,} steps; at the end {losses}."
    return (
        f"{_title(run.activation)}: the test losses differ by at most {run.loss_gap:.0%} until the network departs at "
        f"step {run.departure_step:,}; at the end {losses}."
    )


def output_takeaway(run: EarlyRun) -> str:
    """How far apart the outputs are, for those who do not see the figure."""
    phase = run.steps[run.linear_phase]
    return (
        f"Outputs on {len(run.targets)} test inputs. Mean squared difference of network and linear model on all test "
        f"inputs: {run.distance[run.linear_phase]:.2g} at step {phase:,}, {run.distance[-1]:.2g} at the end."
    )


def caption(point: EarlyPoint, runs: Sequence[EarlyRun]) -> list[str]:
    """Rate, sizes, what lies outside the picture, and runs that diverged."""
    if not runs:
        return []
    run = runs[0]
    words = [
        f"d = {point.input_dim:,}, m = {point.width:,}, learning rate η = {run.learning_rate:.3g}, "
        f"loss (1/2n) Σ (f − y)². The test inputs span {point.span_dimension:,} dimensions."
    ]
    if not _is_in_sight(run.optimal_test_loss, run):
        words.append(
            f"The best linear model of the training set, beyond the axis: test loss {run.optimal_test_loss:.3g}."
        )
    diverged = [str(each.seed) for each in runs if each.outcome == "diverged"]
    if diverged:
        words.append(f"Seed {', '.join(diverged)} {EARLY_OUTCOME_WORDS['diverged']}.")
    return words


def _curves(run: EarlyRun, view: View) -> list[tuple[int, Style, Sequence[float]]]:
    """(row, style, values) of everything that a view shows; the residual has a row outside the span and one inside."""
    if view == "relative error":
        naive = [d / p if p > 0 else math.nan for d, p in zip(run.naive_distance, run.linear_power, strict=True)]
        found: list[tuple[int, Style, Sequence[float]]] = [(1, LINEAR, run.relative_error), (1, NAIVE, naive)]
        return found if run.naive_distance != run.distance else found[:1]
    if view == "residual":
        models = ((NETWORK, run.network), (LINEAR, run.linear))
        outside = [(1, style, curve.complement_loss) for style, curve in models]
        return [*outside, *((2, style, curve.span_loss) for style, curve in models)]
    of: Callable[[ModelCurve], Sequence[float]] = (
        (lambda curve: curve.test_loss) if view == "test loss" else (lambda curve: curve.train_loss)
    )
    shown = ["network", "linear"] + (["naive"] if run.naive != run.linear else [])
    return [(1, _MODELS[model], of(getattr(run, model))) for model in shown]


def _add(figure: go.Figure, run: EarlyRun, values: Sequence[float], style: Style, strong: bool, row: int) -> None:
    """One curve from the first step on; step 0 has no place on the logarithmic axis."""
    figure.add_scatter(
        x=run.steps[1:],
        y=values[1:],
        mode="lines+markers",
        line={"color": style.color, "dash": style.dash, "width": 2.5 if strong else 1.2},
        marker={"color": style.color, "symbol": style.symbol, "size": 6 if strong else 3},
        opacity=1 if strong else 0.45,
        legendgroup=style.title,
        showlegend=strong and row == 1,
        hovertemplate=f"{style.title}, seed {run.seed}<br>step %{{x:,}}<br>%{{y:.4g}}<extra></extra>",
        name=style.title,
        row=row,
        col=1,
    )


def _step_range(runs: Sequence[EarlyRun]) -> list[float] | None:
    """All steps from 1 on, in logarithms; words beside the lines would widen what is chosen by itself."""
    last = math.log10(max([1, *(run.steps[-1] for run in runs)]))
    return [-0.04 * last, 1.04 * last] if last > 0 else None


def _add_moments(figure: go.Figure, run: EarlyRun, at_top: bool) -> None:
    """Vertical lines, with words where no curve is: most of the linear model is trained; the network departs."""
    is_seen = 1 < run.linear_phase < len(run.steps) - 1
    trained = run.steps[run.linear_phase] if is_seen else None
    moments = ((f"ψ {LINEAR_PHASE_SHARE:.0%} trained", trained, "dot"), ("network departs", run.departure_step, "dash"))
    for position, (words, step, dash) in enumerate(moments):
        if step:
            line = {"color": GUIDE_COLOR, "dash": dash, "width": 1.5}
            figure.add_shape(type="line", yref="paper", x0=step, x1=step, y0=0, y1=1, line=line)
            figure.add_annotation(
                x=math.log10(step),  # the axis is logarithmic
                y=0.99 - 0.08 * position if at_top else 0.09 - 0.08 * position,
                yref="paper",
                text=f" {words}: step {step:,} ",
                xanchor="left" if step**2 < run.steps[-1] else "right",
                yanchor="top" if at_top else "bottom",
                showarrow=False,
                font={"color": GUIDE_COLOR, "size": FONT_SIZE},
            )


def _add_best(figure: go.Figure, run: EarlyRun, view: View) -> None:
    """A horizontal line: the loss of the best linear model."""
    best = {"test loss": run.optimal_test_loss, "training loss": run.optimal_train_loss}.get(view)
    if best is not None and _is_in_sight(best, run):
        line = {"color": GUIDE_COLOR, "dash": "solid", "width": 1.3}
        font = {"color": GUIDE_COLOR, "size": FONT_SIZE}
        label = {"text": "best linear model", "font": font, "textposition": "start", "yanchor": "top"}
        figure.add_shape(type="line", xref="x domain", x0=0, x1=1, y0=best, y1=best, line=line, label=label)


def _is_in_sight(loss: float, run: EarlyRun) -> bool:
    return 0.5 * min(run.network.test_loss) < loss < 1.5 * run.network.test_loss[0]


def _loss_axis(figure: go.Figure, runs: Sequence[EarlyRun], view: View) -> None:
    if view == "residual":
        figure.update_yaxes(title="loss outside the span", row=1, col=1)
        figure.update_yaxes(title="loss inside", row=2, col=1)
        return
    values = [v for run in runs for *_, series in _curves(run, view) for v in series[1:] if math.isfinite(v) and v > 0]
    # A factor of ten or more needs a logarithmic axis to be seen.
    if values and max(values) > 10 * min(values):
        figure.update_yaxes(type="log", dtick=1 if max(values) > 30 * min(values) else "D2", tickformat=".4~g")
    figure.update_yaxes(title={"relative error": "mean (f − f_lin)² / mean f_lin²"}.get(view, view))


def _title(activation: str) -> str:
    return ACTIVATIONS[activation].title
