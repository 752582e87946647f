"""A network beside its linear model: outputs along training, how far they drift apart, and how far the weights move."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import plotly.graph_objects as go

from dashboard.charts.style import (
    FONT_SIZE,
    GUIDE_COLOR,
    MODEL_TITLES,
    SEED_OPACITY,
    Style,
    network_style,
    nth_style,
    output_title,
    signed,
    width_label,
)
from dashboard.charts.sweep import finish
from dashboard.views.kernel_change.figures import AXIS_TITLES, TimeAxis
from ntk_core.experiments.dynamics.result import DEPARTURE_LEVEL, DynamicsPoint, DynamicsRun, ModelPath
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.runs import OUTCOME_WORDS

Points = Literal["training points", "test points"]
POINT_SETS: tuple[Points, ...] = ("training points", "test points")
# How each model is drawn, whatever its color: by name, dash and width of its line.
MODELS = (("network", "solid", 2.5), ("linearized", "dash", 2.0), ("infinite", "dot", 2.0))
DASH_WORDS = {"solid": "solid", "dash": "dashed", "dot": "dotted"}
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
            name=f"{MODEL_TITLES[name]}: {DASH_WORDS[dash]}",
        )  # fmt: skip
        for index, row in enumerate(shown):
            component = _own_class(targets[row])
            figure.add_scatter(
                x=[step * factor(run, axis) for step in run.steps[1:]],
                y=[block[row][component] for block in _outputs(path, points)[1:]],
                mode="lines",
                line={"color": nth_style(index, "").color, "dash": dash, "width": width},
                hovertemplate=f"{MODEL_TITLES[name]}, point {row + 1}<br>{axis} %{{x:.3g}}<br>output %{{y:.3g}}"
                "<extra></extra>",
                showlegend=False,
            )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g", title=AXIS_TITLES[axis])
    figure.update_yaxes(title="output of the point's class" if len(targets[0]) > 1 else "output")
    return finish(figure)


def difference_against_time(
    points: Sequence[DynamicsPoint], method: str, axis: TimeAxis, kind: str = "fully-connected"
) -> go.Figure:
    """Relative mean-squared difference of network and linear model on the training points, every width, output, seed.

    Color and dash are those of the output; the wider the network, the stronger the line. A marker is the moment of
    departure: from there on the difference stays above one percent.
    """
    figure = go.Figure()
    for index, point in enumerate(sorted(points, key=lambda point: point.width)):
        strength = 0.5 + 0.5 * (index + 1) / len(points)
        for output in outputs_of(points):
            style = network_style(kind, output, f"m = {width_label(point.width)}, {output_title(output)}")
            for number, run in enumerate(point.of(output, method)):
                _add_difference(figure, run, axis, style, strength, is_first=number == 0)
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
                f"{output_title(output)}: largest relative difference to the linear model "
                f"∝ m^({signed(law.exponent)} ± {law.interval:.2f}), 95% interval, {law.num_values} runs."
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


def difference_rows(points: Sequence[DynamicsPoint], method: str) -> list[dict[str, object]]:
    """One row per run: when and how far it departed from its linear model."""
    return [
        {
            "width m": point.width,
            "output": output_title(run.output),
            "seed": run.seed,
            "sup difference": run.sup_difference,
            "sup test difference": max(filter(math.isfinite, run.test_difference), default=math.nan),
            "departed at step": run.departure_step,
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


def trajectory_rows(point: DynamicsPoint, output: str, method: str, points: Points) -> list[dict[str, object]]:
    """One row per recorded step and followed point, with the output of its class under every model."""
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
    figure: go.Figure, run: DynamicsRun, axis: TimeAxis, style: Style, strength: float, *, is_first: bool
) -> None:
    records = [(step * factor(run, axis), value) for step, value in zip(run.steps, run.difference, strict=True) if step]
    size = [10 if step == run.departure_step else 0 for step in run.steps if step]
    figure.add_scatter(
        x=[time for time, _ in records],
        y=[value if value > 0 else math.nan for _, value in records],
        mode="lines+markers",
        line={"color": style.color, "dash": style.dash, "width": 3.5 * strength if is_first else 1.2},
        marker={"symbol": style.symbol, "size": size, "color": style.color, "opacity": 1},
        opacity=strength if is_first else SEED_OPACITY * strength,
        name=style.title,
        legendgroup=style.title,
        showlegend=is_first,
        hovertemplate=f"{style.title}, seed {run.seed}<br>{axis} %{{x:.3g}}<br>difference %{{y:.3g}}<extra></extra>",
    )


def _unconverged(points: Sequence[DynamicsPoint], method: str, model: str) -> list[str]:
    """One sentence per outcome other than converged: how many runs at which widths."""
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


def _own_class(target: Sequence[float]) -> int:
    return max(range(len(target)), key=lambda index: target[index])


def factor(run: DynamicsRun, axis: TimeAxis) -> float:
    return run.learning_rate if axis == "time" else 1.0
