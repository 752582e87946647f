"""A network and its linear models during training (Hu, Xiao, Adlam & Pennington 2020, Fig. 1–4)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Literal

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_FONT, add_level
from linearity_lab.charts.chart import (
    WIDTH,
    Chart,
    ComparedAxis,
    Comparison,
    compared_by,
    led_by,
    occurring,
)
from linearity_lab.charts.choices import Choice, seed_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.labels import MOST_CURVES
from linearity_lab.charts.lines import Axis, Dot, Line, width_axis
from linearity_lab.charts.style import GUIDE_COLOR, Style, activation_style, model_style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Row, along_training, dash_key, record_rows, times
from linearity_lab.experiments.early_time.point import (
    EARLY_OUTCOME_WORDS,
    KERNELS,
    LINEAR_PHASE_SHARE,
    RUNS,
    STEPS,
    EarlyPoint,
    EarlyRun,
    KernelComparison,
)
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.runs import mean
from linearity_lab.runs.columns import table_rows
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.numbers import number, percent

Shows = Shown[EarlyTimeSpec, EarlyPoint]
RELATIVE_ERROR_TITLE = "mean (f − f<sub>lin</sub>)² / mean f<sub>lin</sub>²"


class PathQuantity(StrEnum):
    """A quantity along training; its value is its name in the menu."""

    TEST_LOSS = "test loss"
    TRAINING_LOSS = "training loss"
    RESIDUAL = "residual"
    RELATIVE_ERROR = "relative error"
    BOUND = "distance and its bound"


_MODELS = {name: model_style(name) for name in ("network", "linear", "naive")}
# PathQuantity → the losses of a model, a row for each.
_LOSSES = {
    PathQuantity.TEST_LOSS: ["test_loss"],
    PathQuantity.TRAINING_LOSS: ["train_loss"],
    PathQuantity.RESIDUAL: ["complement_loss", "span_loss"],
}


def along_steps(point: EarlyPoint, runs: Sequence[EarlyRun], view: PathQuantity) -> Chart:
    """Draw one quantity against the step.

    The network and its linear models are drawn, with departure and end of the linear phase.

    ``runs`` are the seeds of one activation; the first one is drawn strong.
    """
    if view is PathQuantity.BOUND:
        return distance_and_bound(point, runs)
    curves = [
        Curve(style, run.steps, values, view.value, run.seed, row, marks=6, is_first=index == 0)
        for index, run in enumerate(runs)
        for row, style, values in _curves(run, view)
    ]
    rows: tuple[Row, ...] = (Row("loss outside the span", "linear"), Row("loss inside", "linear"))
    if view is not PathQuantity.RESIDUAL:
        drawn = [y for curve in curves for y in curve.y[1:]]
        values = [y for y in drawn if math.isfinite(y) and y > 0]
        scale: Literal["log", "linear"] = "linear"
        # Only a factor of ten or more needs a logarithmic axis.
        if values and max(values) > 10 * min(values):
            scale = "log"
        title = RELATIVE_ERROR_TITLE if view is PathQuantity.RELATIVE_ERROR else view.value
        rows = (Row(title, scale),)
    figure = along_training(curves, rows)
    if runs:
        _add_moments(figure, runs[0], at_top=view is not PathQuantity.RELATIVE_ERROR)
        best = {
            PathQuantity.TEST_LOSS: runs[0].optimal_test_loss,
            PathQuantity.TRAINING_LOSS: runs[0].optimal_train_loss,
        }.get(view)
        if best is not None and _is_in_sight(best, runs[0]):
            add_level(figure, best, "best linear model", dash="solid", above=False)
    words = _takeaway(runs)
    rows_of_runs = record_rows(
        runs,
        lambda run: {"activation": ACTIVATIONS[run.activation].title, "seed": run.seed},
        {
            "step": "steps",
            "time": lambda run: times(run.steps, run.learning_rate, "time"),
            "test loss": "network.test_loss",
            "linear model": "linear.test_loss",
            "without norm": "naive.test_loss",
            "training loss": "network.train_loss",
            "residual inside the span": "network.span_loss",
            "residual outside": "network.complement_loss",
            "relative error": "relative_error",
        },
    )
    caption = [words, *_caption(point, runs)]
    return Chart(figure, words, rows_of_runs, caption, label="Along training")


def distance_and_bound(point: EarlyPoint, runs: Sequence[EarlyRun]) -> Chart:
    """Draw both distances of the theorem against the step.

    They are ‖u − u_lin‖/√n and ‖θ − θ₀‖ on the training inputs, each below its bound.
    """
    curves = []
    for index, run in enumerate(runs):
        if run.path is None:
            continue
        is_first = index == 0
        measured = (("distance", run.path.distance), ("movement", run.path.movement))
        for row, (name, values) in enumerate(measured, start=1):
            style = replace(_MODELS["network"], title="measured")
            curves.append(
                Curve(style, run.steps, values, name, run.seed, row, marks=6, is_first=is_first)
            )
        if is_first:
            style = Style(GUIDE_COLOR, "dash", "", "bound")
            for row, bound in enumerate((run.distance_bounds, run.movement_bounds), start=1):
                curves.append(Curve(style, run.steps, bound, "bound", row=row))
    rows = (Row("‖u − u<sub>lin</sub>‖/√n", "log"), Row("‖θ − θ<sub>0</sub>‖", "log"))
    shares = [run.distance_share for run in runs if run.distance_share is not None]
    words = "No run yet."
    if shares:
        words = (
            f"{ACTIVATIONS[runs[0].activation].title}: in the linear phase the distance to the "
            f"linear model is at most {percent(max(shares))} of its bound."
        )
    table = record_rows(
        [run for run in runs if run.path is not None],
        lambda run: {"activation": ACTIVATIONS[run.activation].title, "seed": run.seed},
        {
            "step": "steps",
            "distance": "path.distance",
            "movement": "path.movement",
            "bound of the distance": "distance_bounds",
            "bound of the movement": "movement_bounds",
        },
    )
    return Chart(
        along_training(curves, rows), words, table, [words, *_caption(point, runs)], label="Bounds"
    )


def single_outputs(run: EarlyRun) -> Chart:
    """Outputs on a few test inputs against the step.

    Network solid, linear model dashed, one color per input.
    """
    models = (("network", "solid", run.network), ("linear model ψ", "dash", run.linear))
    curves = [dash_key(title, dash) for title, dash, _ in models]
    count = min(len(run.targets), MOST_CURVES)  # limited by the number of colors; the table has all
    for index in range(count):
        for title, dash, model in models:
            style = Style(
                nth_style(index, "", "sample").color, dash, "", f"test input {index + 1}, {title}"
            )
            y = [outputs[index] for outputs in model.outputs]
            group = f"test input {index + 1}"
            named = model is run.network
            curves.append(
                Curve(style, run.steps, y, "output", width=2.2, in_legend=named, group=group)
            )
    phase = run.steps[run.linear_phase]
    words = (
        f"Outputs on {count} test inputs. Mean squared difference of network and linear model on "
        f"all test inputs: {number(run.distance[run.linear_phase])} at step {phase:,}, "
        f"{number(run.distance[-1])} at the end."
    )
    first = [f"test input {index + 1}" for index in range(MOST_CURVES // len(models))]
    figure = along_training(curves, (Row("output f(x)", "linear"),), first=first)
    rows: list[dict[str, object]] = []
    for index, target in enumerate(run.targets):
        for record, step in enumerate(run.steps):
            rows.append(
                {
                    "test input": index + 1,
                    "target": target,
                    "step": step,
                    "network": run.network.outputs[record][index],
                    "linear model": run.linear.outputs[record][index],
                }
            )
    return Chart(figure, words, rows, [words], heading="Outputs on single test inputs")


def _takeaway(runs: Sequence[EarlyRun]) -> str:
    if not runs:
        return "No run yet."
    run = runs[0]
    found = f"the network does not depart in {run.steps[-1]:,} steps"
    if run.departure_step is not None:
        found = (
            f"the test losses differ by at most {percent(run.loss_gap)} until the network "
            "departs at step "
        )
        found += f"{run.departure_step:,}"
    network, linear = (number(model.test_loss[-1], 3) for model in (run.network, run.linear))
    losses = f"the test loss is {network}, that of the linear model {linear}"
    return f"{ACTIVATIONS[run.activation].title}: {found}; at the end {losses}."


def _caption(point: EarlyPoint, runs: Sequence[EarlyRun]) -> list[str]:
    if not runs:
        return []
    run = runs[0]
    words = [
        f"d = {point.input_dim:,}, m = {point.width:,}, learning rate η = "
        f"{number(run.learning_rate, 3)}, loss (1/2n) Σ (f − y)². The test inputs span "
        f"{point.span_dimension:,} dimensions."
    ]
    if not _is_in_sight(run.optimal_test_loss, run):
        words.append(
            "The best linear model of the training set, beyond the axis: test loss "
            f"{number(run.optimal_test_loss, 3)}."
        )
    diverged = [str(each.seed) for each in runs if each.outcome == "diverged"]
    if diverged:
        words.append(f"Seed {', '.join(diverged)} {EARLY_OUTCOME_WORDS['diverged']}.")
    return words


def _curves(run: EarlyRun, view: PathQuantity) -> list[tuple[int, Style, Sequence[float]]]:
    if view is PathQuantity.RELATIVE_ERROR:
        naive = [
            d / p if p > 0 else math.nan
            for d, p in zip(run.naive_distance, run.linear_power, strict=True)
        ]
        found: list[tuple[int, Style, Sequence[float]]] = [
            (1, _MODELS["linear"], run.relative_error),
            (1, _MODELS["naive"], naive),
        ]
        return found if run.naive_distance != run.distance else found[:1]
    models = ["network", "linear"] + (
        ["naive"] if run.naive != run.linear and view is not PathQuantity.RESIDUAL else []
    )
    return [
        (row, _MODELS[model], getattr(getattr(run, model), name))
        for row, name in enumerate(_LOSSES[view], start=1)
        for model in models
    ]


def _add_moments(figure: go.Figure, run: EarlyRun, at_top: bool) -> None:
    """Draw vertical lines, labeled away from curves.

    End of the linear phase, and departure of the network.
    """
    is_seen = 1 < run.linear_phase < len(run.steps) - 1
    trained = run.steps[run.linear_phase] if is_seen else None
    moments = (
        (f"ψ {percent(LINEAR_PHASE_SHARE)} trained", trained, "dot"),
        ("network departs", run.departure_step, "dash"),
    )
    for position, (words, step, dash) in enumerate(moments):
        if step:
            line = {"color": GUIDE_COLOR, "dash": dash, "width": 1.5}
            # The words of the second moment are above the line of the first.
            top = 0.87 if at_top and not position else 1
            foot = 0 if at_top or position else 0.14
            figure.add_shape(
                type="line", yref="paper", x0=step, x1=step, y0=foot, y1=top, line=line
            )
            figure.add_annotation(
                x=math.log10(step),  # the axis is logarithmic
                y=0.86 + 0.13 * position if at_top else 0.14 - 0.13 * position,
                yref="paper",
                text=f" {words}: <br> step {step:,} ",
                align="left" if step**2 < run.steps[-1] else "right",
                xanchor="left" if step**2 < run.steps[-1] else "right",
                yanchor="top" if at_top else "bottom",
                showarrow=False,
                font=GUIDE_FONT,
            )


def _is_in_sight(loss: float, run: EarlyRun) -> bool:
    return 0.5 * min(run.network.test_loss) < loss < 1.5 * run.network.test_loss[0]


SWEPT = {
    "width": WIDTH,
    "input_dim": ComparedAxis("input_dim", "dimension d", "d"),
}


def compared(spec: EarlyTimeSpec) -> Comparison:
    """Compare along training, or kernels against the swept setting without training."""
    if spec.training.max_steps == 0:
        return compared_by([each for each in KERNELS if each.name != spec.swept], SWEPT[spec.swept])
    return compared_by(STEPS, ComparedAxis("step", "step", "step", along_time=True))


# Quantity → (axis title, value of a run).
QUANTITIES: dict[str, tuple[str, Callable[[EarlyRun], float]]] = {
    "discrepancy": ("sup mean (f − f<sub>lin</sub>)² / mean y²", lambda run: run.discrepancy),
    "departure time": (
        "departure time η · step",
        lambda run: run.learning_rate * (run.departure_step or math.nan),
    ),
}
AXES = {"width": width_axis(), "input_dim": Axis("input dimension d", "d")}
FEWEST_RUNS = 4  # for a fitted exponent; its interval needs as many values, too
_NORMS: dict[str, Callable[[KernelComparison], float]] = {
    "spectral norm": lambda each: each.difference,
    "Frobenius norm": lambda each: each.frobenius_difference,
}


def against_swept(points: Sequence[EarlyPoint], quantity: str) -> Chart:
    """Draw a result of every activation against the swept setting.

    It is the discrepancy over the linear phase, or the departure time η·step.

    A network that never departs has no departure time.
    """
    title, of = QUANTITIES[quantity]
    lines = []
    without = []
    for activation in occurring(points, "activation"):
        runs = [(point.value, run) for point in points for run in point.of(activation)]
        dots = [_dot(at, of(run), run) for at, run in runs]
        kept = [dot for dot in dots if dot.why or 0 < dot.value < math.inf]
        count = sum(dot.counts for dot in kept)
        lines.append(Line(activation_style(activation), kept, count >= FEWEST_RUNS))
        if not count:
            without.append(f"{ACTIVATIONS[activation].title}: no {quantity} in {len(runs)} runs.")
    return sweep(
        lines,
        _axis(points),
        title,
        quantity,
        caption=without,
        rows=table_rows(RUNS, points),
    )


def kernel_distance(points: Sequence[EarlyPoint]) -> Chart:
    """Draw ‖K − ψψᵀ‖ in both norms against the swept setting.

    It is relative to the first point, with a 1/d guide.
    """
    points = sorted(points, key=lambda point: point.value)
    lines = []
    ends = []
    for activation in dict.fromkeys(each.activation for point in points for each in point.kernels):
        for variant, (words, norm) in enumerate(_NORMS.items()):
            style = activation_style(
                activation, f"{ACTIVATIONS[activation].title}, {words}", variant
            )
            found = [
                (p.value, each)
                for p in points
                for each in p.kernels
                if each.activation == activation
            ]
            start = mean([norm(each) for at, each in found if at == found[0][0]]).value
            dots = [Dot(at, norm(each) / start, each.seed) for at, each in found]
            lines.append(Line(style, dots, sum(dot.counts for dot in dots) >= FEWEST_RUNS))
            ends.append(
                f"{style.title} of K − ψψᵀ: {number(start, 3)} at {_axis(points).letter} = "
                f"{found[0][0]:,}."
            )
    by_dimension = bool(points) and points[0].swept == "input_dim"
    return sweep(
        lines,
        _axis(points),
        "‖K − ψψᵀ‖, 1 at the first point",
        "‖K − ψψᵀ‖",
        slopes=(-1.0,) if by_dimension else (),
        heading="Kernel at initialization and linear kernel",
        caption=ends,
        rows=table_rows(
            KERNELS, [point.model_copy(update={"runs": point.kernels}) for point in points]
        ),
    )


_SIZES = {
    "norms": "largest |‖x‖²/d − 1|",
    "products": "largest |x·x′|/d",
    "matrix": "‖XXᵀ‖/n",
}


def input_sizes(points: Sequence[EarlyPoint]) -> Chart:
    """Draw deviations of norms and products of the inputs, and ‖XXᵀ‖/n, against the dimension."""
    points = sorted(points, key=lambda point: point.value)
    lines = []
    for index, (name, title) in enumerate(_SIZES.items()):
        dots = [
            Dot(point.value, getattr(point.inputs, name), 0)
            for point in points
            if point.inputs is not None
        ]
        lines.append(Line(nth_style(index, title), dots, fit=False))
    rows: list[dict[str, object]] = []
    for point in points:
        if point.inputs is not None:
            sizes = {title: getattr(point.inputs, name) for name, title in _SIZES.items()}
            rows.append({"d": point.value} | sizes)
    return sweep(
        lines,
        _axis(points),
        "deviation of the inputs",
        "size",
        slopes=(-0.5,),
        heading="Concentration of the inputs",
        rows=rows,
    )


def constant_rows(point: EarlyPoint) -> list[dict[str, object]]:
    """Return one row per activation.

    Moments, then weights of x/√d and of the constant feature at rate 1.
    """
    symbols = ("ζ", "ν", "ϑ₀", "ϑ₁", "ϑ₂", "× x/√d", "const.")
    rows = []
    for name, each in point.constants.items():
        row: dict[str, object] = {"activation": ACTIVATIONS[name].title}
        values = (each.zeta, each.nu, *each.theta[:3], each.inputs, each.constant)
        for symbol, value in zip(symbols, values, strict=True):
            row[symbol] = round(value, 4)
        rows.append(row)
    return rows


def _axis(points: Sequence[EarlyPoint]) -> Axis:
    return AXES[points[0].swept if points else "width"]


def _dot(at: float, value: float, run: EarlyRun) -> Dot:
    words = EARLY_OUTCOME_WORDS[run.outcome]
    if run.outcome == "completed":
        return Dot(at, value, run.seed, note=words)
    return Dot(at, value, run.seed, words, outcome=run.outcome)


def trained_points(shown: Shows) -> dict[str, EarlyPoint]:
    """Map keys to the points with trained networks."""
    return {point.key: point for point in shown.points if point.runs}


def _points(shown: Shows) -> list[Choice]:
    points = trained_points(shown)
    letter = AXES[shown.spec.swept].letter
    return [
        Choice(
            "point",
            "Point",
            list(points),
            lambda key: f"{AXES[points[key].swept].letter} = {points[key].value:,}",
            axis=letter,
            at=lambda key: points[key].value,
        )
    ]


def _runs_of_point(shown: Shows, key: str) -> list[Choice]:
    """Return the choices of activation, which depend on the point, of quantity and of seed."""
    points = trained_points(shown)
    activations = occurring([points[key]], "activation")
    has_path = any(run.path is not None for run in points[key].runs)
    views = [view for view in PathQuantity if has_path or view is not PathQuantity.BOUND]
    return [
        Choice(
            "activation",
            "Activation",
            activations,
            lambda name: ACTIVATIONS[name].title,
            is_rare=len(activations) == 1,
        ),
        Choice("view", "Quantity", views, str.capitalize, 160, is_rare=True),
        *seed_choice(points.values(), is_rare=True),
    ]


def _led_runs(
    shown: Shows, key: str, activation: str, seed: int | None
) -> tuple[EarlyPoint, Sequence[EarlyRun]]:
    """Return a point and its runs of one activation, with the chosen seed first."""
    (point,) = led_by([trained_points(shown)[key]], seed)
    return point, point.of(activation)


def _along_training(
    shown: Shows, key: str, activation: str, view: PathQuantity, seed: int | None = None
) -> Chart:
    point, runs = _led_runs(shown, key, activation, seed)
    return along_steps(point, runs, view)


def _single_outputs(
    shown: Shows, key: str, activation: str, view: PathQuantity, seed: int | None = None
) -> Chart:
    _, runs = _led_runs(shown, key, activation, seed)
    return single_outputs(runs[0])


def _quantities(shown: Shows) -> list[str | Choice]:
    return [
        Choice("quantity", "Quantity", list(QUANTITIES), str.capitalize, 180),
        f"against {AXES[shown.spec.swept].title}",
    ]


def _is_trained(shown: Shows) -> bool:
    return bool(trained_points(shown))


def _has_input_sizes(shown: Shows) -> bool:
    is_swept = shown.spec.swept == "input_dim" and len(shown.points) > 1
    return is_swept and any(point.inputs is not None for point in shown.points)


FIGURES = (
    Figure(
        "training",
        "Along training",
        choices=[_points, _runs_of_point],
        draw=_along_training,
        has_data=_is_trained,
    ),
    Figure(
        "outputs",
        "Outputs on single test inputs",
        choices=[_points, _runs_of_point],
        draw=_single_outputs,
        has_data=_is_trained,
    ),
    Figure(
        "kernels",
        "Kernels",
        draw=lambda shown: kernel_distance(shown.points),
        has_data=lambda shown: any(point.kernels for point in shown.points),
    ),
    Figure(
        "inputs",
        "Concentration of the inputs",
        draw=lambda shown: input_sizes(shown.points),
        has_data=_has_input_sizes,
    ),
    Figure(
        "against",
        lambda shown: f"Against {AXES[shown.spec.swept].title}",
        choices=[_quantities],
        draw=lambda shown, quantity: against_swept(shown.points, quantity),
        has_data=lambda shown: _is_trained(shown) and len(shown.points) > 1,
    ),
)
