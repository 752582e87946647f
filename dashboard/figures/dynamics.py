"""A network beside its linear model: outputs along training, how far the two part, and how far the weights move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.figures.kernel_drift import AXIS_TITLES, TimeAxis, rate_words
from dashboard.figures.style import (
    FONT_SIZE,
    GUIDE_COLOR,
    SEED_OPACITY,
    Style,
    output_title,
    series_style,
    signed,
    width_label,
)
from dashboard.figures.sweep import finish
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.results import DEPARTURE_LEVEL, OUTCOME_WORDS, DynamicsPoint, DynamicsRun, ModelPath
from ntk_core.vocabulary import METHODS

Points = Literal["training points", "test points"]
POINT_SETS: tuple[Points, ...] = ("training points", "test points")
# How each model is drawn, whatever its color: by name, dash and width of its line.
MODELS = (("network", "solid", 2.5), ("linearized", "dash", 2.0), ("infinite", "dot", 2.0))
MODEL_TITLES = {"network": "network", "linearized": "linear model", "infinite": "infinite width"}
MOST_TRAJECTORIES = 6


def trajectories(point: DynamicsPoint, output: str, method: str, axis: TimeAxis, points: Points) -> go.Figure:
    """Outputs at followed points against time: network solid, linear model dashed, infinite width dotted.

    With classes, the output of the point's own class. Step 0 has no place on the logarithmic axis.
    """
    figure = go.Figure()
    run = first_run(point, output, method)
    targets = point.y if points == "training points" else point.y_test
    shown = range(0, len(targets), math.ceil(len(targets) / MOST_TRAJECTORIES))
    for name, dash, width in MODELS:
        path = getattr(run, name)
        if path is None:
            continue
        figure.add_scatter(
            x=[None], y=[None], mode="lines", line={"color": GUIDE_COLOR, "dash": dash, "width": width},
            name=MODEL_TITLES[name],
        )  # fmt: skip
        for index, row in enumerate(shown):
            component = _own_class(targets[row])
            figure.add_scatter(
                x=[step * _factor(run, axis) for step in run.steps[1:]],
                y=[block[row][component] for block in _outputs(path, points)[1:]],
                mode="lines",
                line={"color": series_style(index, "").color, "dash": dash, "width": width},
                hovertemplate=f"{MODEL_TITLES[name]}, point {row + 1}<br>{axis} %{{x:.3g}}<br>output %{{y:.3g}}"
                "<extra></extra>",
                showlegend=False,
            )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g", title=AXIS_TITLES[axis])
    figure.update_yaxes(title="output of the point's class" if len(targets[0]) > 1 else "output")
    return finish(figure)


def difference_against_time(points: Sequence[DynamicsPoint], method: str, axis: TimeAxis) -> go.Figure:
    """Relative mean-squared difference of network and linear model on the training points, every width, output, seed.

    The color is the width, the dash the output. A filled marker is the moment of departure: from there on the
    difference stays above one percent.
    """
    figure = go.Figure()
    outputs = outputs_of(points)
    for index, point in enumerate(sorted(points, key=lambda point: point.width)):
        for output in outputs:
            style = series_style(index, f"m = {width_label(point.width)}, {output_title(output)}")
            dash = ("solid", "dash", "dot", "dashdot")[outputs.index(output)]
            for number, run in enumerate(point.of(output, method)):
                _add_difference(figure, run, axis, style, dash, is_first=number == 0)
    figure.add_shape(
        type="line",
        xref="x domain",
        x0=0,
        x1=1,
        y0=DEPARTURE_LEVEL,
        y1=DEPARTURE_LEVEL,
        line={"color": GUIDE_COLOR, "dash": "dash", "width": 1.3},
        label={
            "text": f"{DEPARTURE_LEVEL:.0%}",
            "font": {"color": GUIDE_COLOR, "size": FONT_SIZE},
            "textposition": "start",
            "yanchor": "top",
        },
    )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g", title=AXIS_TITLES[axis])
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", title="relative mean-squared difference")
    return finish(figure)


def ball(point: DynamicsPoint, output: str, axis: TimeAxis) -> go.Figure:
    """‖w_t − w₀‖₂ and ΔK(t) of the network of one width under every method: does training stay in a ball?"""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    for index, method in enumerate(methods_of([point])):
        style = series_style(index, METHODS[method].title)
        for number, run in enumerate(point.of(output, method)):
            for row, values, words in ((1, run.network.distance, "‖w − w₀‖₂"), (2, run.change, "ΔK(t)")):
                figure.add_scatter(
                    x=[step * _factor(run, axis) for step in run.steps[1:]],
                    y=[value if value > 0 else math.nan for value in values[1:]],
                    mode="lines+markers",
                    line={"color": style.color, "dash": style.dash, "width": 2.5 if number == 0 else 1.2},
                    marker={"symbol": style.symbol, "size": 6, "color": style.color},
                    opacity=1 if number == 0 else SEED_OPACITY,
                    name=style.title,
                    legendgroup=method,
                    showlegend=row == 1 and number == 0,
                    hovertemplate=f"{style.title}, seed {run.seed}<br>{axis} %{{x:.3g}}<br>{words} %{{y:.3g}}"
                    "<extra></extra>",
                    row=row,
                    col=1,
                )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g")
    figure.update_xaxes(title=AXIS_TITLES[axis], row=2, col=1)
    for row, moved in (
        (1, [run.network.distance for run in point.of(output)]),
        (2, [run.change for run in point.of(output)]),
    ):
        figure.update_yaxes(type="log", dtick=_decades([v for values in moved for v in values]), row=row, col=1)
    figure.update_yaxes(tickformat=".4~g")
    figure.update_yaxes(title="‖w − w<sub>0</sub>‖<sub>2</sub>", row=1, col=1)
    figure.update_yaxes(title="ΔK(t)", row=2, col=1)
    return finish(figure)


def outputs_of(points: Iterable[DynamicsPoint]) -> tuple[str, ...]:
    """Outputs that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.output for point in points for run in point.runs))


def methods_of(points: Iterable[DynamicsPoint]) -> tuple[str, ...]:
    """Methods that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.method for point in points for run in point.runs))


def first_run(point: DynamicsPoint, output: str, method: str) -> DynamicsRun:
    """The run whose outputs were kept."""
    return point.of(output, method)[0]


def fitted(points: Sequence[DynamicsPoint], output: str, method: str) -> PowerLaw | None:
    """The exponent of ‖F − F_lin‖ / ‖F_lin‖, its sup over time, against width; runs that diverged are left out."""
    runs = [(point.width, run) for point in points for run in point.of(output, method)]
    return fit_power_law(
        [width for width, _ in runs],
        [math.sqrt(run.sup_difference) if run.sup_difference >= 0 else math.nan for _, run in runs],
        usable=[run.outcome != "diverged" for _, run in runs],
    )


def caption(points: Sequence[DynamicsPoint], method: str) -> list[str]:
    """The fitted rates of approach, then the runs that did not converge."""
    sentences = []
    for output in outputs_of(points):
        law = fitted(points, output, method)
        if law is not None and math.isfinite(law.interval):
            sentences.append(
                f"{output_title(output)}: sup over time of ‖F − F_lin‖ / ‖F_lin‖ ∝ m^({signed(law.exponent)} ± "
                f"{law.interval:.2f}), 95% interval, {law.num_values} runs."
            )
    sentences += [*_unconverged(points, method, "network"), *_unconverged(points, method, "linearized")]
    return sentences


def takeaway(points: Sequence[DynamicsPoint], method: str) -> str:
    """What the figure of differences says, for those who do not see it."""
    parts = []
    for output in outputs_of(points):
        ends = [
            f"{max(values):.2g} at width {point.width:,}"
            for point in sorted(points, key=lambda point: point.width)
            if (values := [v for run in point.of(output, method) if math.isfinite(v := run.sup_difference)])
        ]
        parts.append(f"{output_title(output)} {', '.join(ends)}" if ends else f"{output_title(output)} none")
    return "Largest relative mean-squared difference of network and linear model: " + "; ".join(parts) + "."


def trajectory_takeaway(point: DynamicsPoint, output: str, method: str, points: Points) -> str:
    """What the figure of outputs says, for those who do not see it."""
    run = first_run(point, output, method)
    shown = _outputs(run.network, points), _outputs(run.linearized, points)
    gaps = [abs(a - b) for blocks in zip(*shown, strict=True) for rows in zip(*blocks, strict=True)
            for a, b in zip(*rows, strict=True)]  # fmt: skip
    apart = max(filter(math.isfinite, gaps), default=math.nan)
    where = f"Outputs at followed {points} along training, width {point.width:,}"
    return f"{where}: at most {apart:.2g} from the linear model."


def divergence_caption(points: Sequence[DynamicsPoint]) -> list[str]:
    """One sentence a method with runs that diverged: what did, from which step, and which rate would be stable."""
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


def difference_rows(points: Sequence[DynamicsPoint], method: str) -> list[dict[str, object]]:
    """One row a run: when and how far it parted from its linear model."""
    return [
        {
            "width m": point.width,
            "output": output_title(run.output),
            "seed": run.seed,
            "sup difference": run.sup_difference,
            "sup test difference": max(filter(math.isfinite, run.test_difference), default=math.nan),
            "parted at step": run.departure_step,
            "loss": run.network.loss[-1],
            "loss, linear model": run.linearized.loss[-1],
            "learning rate η": run.learning_rate,
            "stable rate": run.stable_rate,
            "network": OUTCOME_WORDS[run.outcome],
            "linear model": OUTCOME_WORDS[run.linearized.outcome],
            "last finite step": run.network.last_finite_step,
        }
        for point in sorted(points, key=lambda point: point.width)
        for run in point.runs
        if run.method == method
    ]


def ball_rows(point: DynamicsPoint, output: str) -> list[dict[str, object]]:
    """One row a method, seed and recorded step: distances, the kernel's movement, its spectrum and its layers."""
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


def trajectory_rows(point: DynamicsPoint, output: str, method: str, points: Points) -> list[dict[str, object]]:
    """One row a recorded step and followed point, with the output of its class under every model."""
    run = first_run(point, output, method)
    targets = point.y if points == "training points" else point.y_test
    return [
        {
            "step": step,
            "point": row + 1,
            "target": target[_own_class(target)],
            **{
                MODEL_TITLES[name]: _outputs(path, points)[index][row][_own_class(target)]
                for name, _, _ in MODELS
                if (path := getattr(run, name)) is not None
            },
        }
        for index, step in enumerate(run.steps)
        for row, target in enumerate(targets)
    ]


def _add_difference(
    figure: go.Figure, run: DynamicsRun, axis: TimeAxis, style: Style, dash: str, *, is_first: bool
) -> None:
    records = [
        (step * _factor(run, axis), value) for step, value in zip(run.steps, run.difference, strict=True) if step
    ]
    size = [10 if step == run.departure_step else 0 for step in run.steps if step]
    figure.add_scatter(
        x=[time for time, _ in records],
        y=[value if value > 0 else math.nan for _, value in records],
        mode="lines+markers",
        line={"color": style.color, "dash": dash, "width": 2.5 if is_first else 1.2},
        marker={"symbol": style.symbol, "size": size, "color": style.color, "opacity": 1},
        opacity=1 if is_first else SEED_OPACITY,
        name=style.title,
        legendgroup=style.title,
        showlegend=is_first,
        hovertemplate=f"{style.title}, seed {run.seed}<br>{axis} %{{x:.3g}}<br>difference %{{y:.3g}}<extra></extra>",
    )


def _unconverged(points: Sequence[DynamicsPoint], method: str, model: str) -> list[str]:
    """One sentence an outcome other than converged: how many runs at which widths."""
    sentences = []
    for outcome, words in OUTCOME_WORDS.items():
        found = [
            (width_label(point.width), output_title(run.output))
            for point in sorted(points, key=lambda point: point.width)
            for run in point.runs
            if run.method == method and getattr(run, model).outcome == outcome
        ]
        if outcome == "over-budget" and found:
            listed = ", ".join(dict.fromkeys(f"m = {width} ({output})" for width, output in found))
            sentences.append(f"{MODEL_TITLES[model]} {words}: {listed}.".capitalize())
    return sentences


def _outputs(path: ModelPath, points: Points) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return path.outputs if points == "training points" else path.test_outputs


def _decades(values: Sequence[float]) -> float | str:
    """One tick a decade, more where the values span less than a decade and a half."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    return 1 if positive and max(positive) / min(positive) > 30 else "D2"


def _own_class(target: Sequence[float]) -> int:
    return max(range(len(target)), key=lambda index: target[index])


def _factor(run: DynamicsRun, axis: TimeAxis) -> float:
    return run.learning_rate if axis == "time" else 1.0
