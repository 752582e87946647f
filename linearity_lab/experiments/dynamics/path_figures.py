"""A network and its linear model: outputs during training, and their difference."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from linearity_lab.charts.axes import add_level, beginning, law_words
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.labels import MOST_CURVES, spread_out
from linearity_lab.charts.style import MODEL_TITLES, Style, network_style, nth_style, output_title
from linearity_lab.charts.training import (
    AXIS_TITLES,
    Curve,
    Row,
    TimeAxis,
    along_training,
    dash_key,
    times,
)
from linearity_lab.experiments.dynamics.point import (
    COLUMNS,
    DEPARTURE_LEVEL,
    DynamicsPoint,
    DynamicsRun,
    ModelPath,
    difference_law,
)
from linearity_lab.runs import OUTCOME_WORDS
from linearity_lab.runs.columns import table_rows
from ntk_core.numbers import num_runs, number, percent, width_label

Outputs = tuple[tuple[tuple[float, ...], ...], ...]  # of records, points and classes


class PointSet(StrEnum):
    """Points at which outputs are followed; the value is their name in the menu."""

    TRAINING = "training points"
    TEST = "test points"


# Name, dash and line width of each model, in any color.
MODELS = (("network", "solid", 2.5), ("linearized", "dash", 2.0), ("infinite", "dot", 2.0))
MOST_TRAJECTORIES = 4  # limited by the number of colors


def trajectories(
    point: DynamicsPoint, output: str, method: str, axis: TimeAxis, points: PointSet
) -> Chart:
    """Draw outputs at followed points against time.

    Network solid, linear model dashed, infinite width dotted.

    With classes, the output of the point's own class.
    """
    run = point.of(output, method)[0]  # with recorded outputs
    targets = point.y if points is PointSet.TRAINING else point.y_test
    step = math.ceil(len(targets) / MOST_TRAJECTORIES)
    models = [model for model in MODELS if getattr(run, model[0]) is not None]
    curves = []
    for name, dash, width in models:
        path = getattr(run, name)
        curves.append(dash_key(MODEL_TITLES[name], dash, width))
        for index, row in enumerate(range(0, len(targets), step)):
            style = Style(
                nth_style(index, "", "sample").color,
                dash,
                "",
                f"{MODEL_TITLES[name]}, point {row + 1}",
            )
            group = f"point {row + 1}"
            y = [block[row][_own_class(targets[row])] for block in _outputs(path, points)]
            x = times(run.steps, run.learning_rate, axis)
            named = name == "network"
            curves.append(
                Curve(style, x, y, "output", width=width, in_legend=named, unit=axis, group=group)
            )
    groups = list(dict.fromkeys(curve.group for curve in curves if curve.group))
    shown_groups = groups[: MOST_CURVES // len(models)]
    y_title = "output of the point's class" if len(targets[0]) > 1 else "output"
    apart = _largest_gap(_outputs(run.network, points), _outputs(run.linearized, points))
    words = (
        f"Outputs at followed {points.value} along training, width {point.width:,}: "
        f"at most {number(apart)} from the linear model."
    )
    rows = (Row(y_title, "linear"),)
    return Chart(
        along_training(curves, rows, AXIS_TITLES[axis], first=shown_groups),
        words,
        trajectory_rows(point, output, method, points),
        heading="Outputs along training",
    )


def _largest_gap(network: Outputs, linear: Outputs) -> float:
    """Return the largest finite difference of two models' outputs; NaN without any."""
    gaps = []
    for block, linear_block in zip(network, linear, strict=True):
        for row, linear_row in zip(block, linear_block, strict=True):
            gaps += [abs(f - f_lin) for f, f_lin in zip(row, linear_row, strict=True)]
    return max(filter(math.isfinite, gaps), default=math.nan)


def difference_against_time(
    points: Sequence[DynamicsPoint], method: str, axis: TimeAxis, kind: str = "fully-connected"
) -> Chart:
    """Draw the relative mean-squared difference of network and linear model.

    There is a curve for every width, output and seed.

    Color and dash show the output; wider networks have thicker lines. A marker shows the departure,
    after which the difference stays above one percent.
    """
    points = sorted(points, key=lambda point: point.width)
    curves: list[Curve] = []
    outputs = occurring(points, "output")
    shown = spread_out(len(points), max(1, MOST_CURVES // max(1, len(outputs))))
    first = []  # the curves that are visible initially
    for index, point in enumerate(points):
        thickness = 1 + 3 * (index + 1) / len(points)  # a pale line would be too weak
        for output in outputs:
            title = f"m = {width_label(point.width)}"
            if len(outputs) > 1:
                title += f", {output_title(output)}"
            style = network_style(kind, output, title)
            if index in shown:
                first.append(style.title)
            curves += _difference_curves(point.of(output, method), style, thickness, axis)
    row = Row("relative mean-squared difference")
    figure = along_training(curves, (row,), AXIS_TITLES[axis], first=first)
    add_level(figure, DEPARTURE_LEVEL, percent(DEPARTURE_LEVEL), above=False)
    parts = [_largest_differences(points, output, method) for output in outputs]
    words = (
        f"Largest relative mean-squared difference of network and linear model: {'; '.join(parts)}."
    )
    own = [
        point.model_copy(update={"runs": tuple(r for r in point.runs if r.method == method)})
        for point in points
    ]
    caption = _caption(points, method)
    rows = table_rows(COLUMNS, own)
    return Chart(figure, words, rows, caption, heading="How far they diverge")


def _difference_curves(
    runs: Sequence[DynamicsRun], style: Style, thickness: float, axis: TimeAxis
) -> list[Curve]:
    """Draw the difference of each run, marked where it departs; the first one is strong."""
    curves = []
    for index, run in enumerate(runs):
        departs = None
        if run.departure_step is not None:
            departs = run.steps.index(run.departure_step)
        curve = Curve(
            style,
            times(run.steps, run.learning_rate, axis),
            run.difference,
            "difference",
            run.seed,
            width=thickness,
            marked=departs,
            unit=axis,
            is_first=index == 0,
        )
        curves.append(curve)
    return curves


def _largest_differences(points: Sequence[DynamicsPoint], output: str, method: str) -> str:
    """Return the largest finite difference of one output at each width, in words."""
    ends = []
    for point in points:
        differences = [run.sup_difference for run in point.of(output, method)]
        finite = [each for each in differences if math.isfinite(each)]
        if finite:
            ends.append(f"{number(max(finite))} at width {point.width:,}")
    return f"{output_title(output)} {', '.join(ends) or 'none'}"


def trajectory_rows(
    point: DynamicsPoint, output: str, method: str, points: PointSet
) -> list[dict[str, object]]:
    """Return one row per recorded step and followed point.

    It has the outputs of its class under every model.
    """
    run = point.of(output, method)[0]  # with recorded outputs
    targets = point.y if points is PointSet.TRAINING else point.y_test
    paths = {name: getattr(run, name) for name, _, _ in MODELS}
    trained = {name: path for name, path in paths.items() if path is not None}
    table: list[dict[str, object]] = []
    for index, step in enumerate(run.steps):
        for place, target in enumerate(targets):
            own = _own_class(target)
            row: dict[str, object] = {"step": step, "point": place + 1, "target": target[own]}
            for name, path in trained.items():
                row[MODEL_TITLES[name]] = _outputs(path, points)[index][place][own]
            table.append(row)
    return table


def _caption(points: Sequence[DynamicsPoint], method: str) -> list[str]:
    sentences = []
    for output in occurring(points, "output"):
        law = difference_law(points, output, method)
        if law is not None:
            title = beginning(output_title(output))
            sentences.append(
                f"{title}: largest relative difference to the linear model ∝ m^{law_words(law)}."
            )
    for model, outcome in itertools.product(
        ("network", "linearized"), ("over-budget", "stuck", "dead")
    ):
        found: Counter[str] = Counter()
        for point in points:
            runs = [run for run in point.runs if run.method == method]
            for run in runs:
                if getattr(run, model).outcome == outcome:
                    found[f"m = {width_label(point.width)} ({output_title(run.output)})"] += 1
        if found:
            listed = ", ".join(f"{num_runs(count)} at {where}" for where, count in found.items())
            sentences.append(
                f"{MODEL_TITLES[model].capitalize()} {OUTCOME_WORDS[outcome]}: {listed}."
            )
    return sentences


def _outputs(path: ModelPath, points: PointSet) -> Outputs:
    return path.outputs if points is PointSet.TRAINING else path.test_outputs


def _own_class(target: Sequence[float]) -> int:
    return max(range(len(target)), key=lambda index: target[index])
