"""How well a kernel predicts retraining.

Errors and ranks against width, and the changes of single points.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_LINE, beginning, finish
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.choices import Choice, output_choice, width_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lettered_networks import (
    grown_axis,
    line_names,
    measure_lines,
    network_choice,
    network_title,
    points_of,
)
from linearity_lab.charts.lines import Line, RunNumber
from linearity_lab.charts.style import FAINT_OPACITY, GUIDE_COLOR, nth_style, output_title
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.attribution.point import (
    AttributionPoint,
    AttributionRun,
    AttributionSpec,
    Prediction,
)
from linearity_lab.experiments.lettered_networks import runs_of
from linearity_lab.networks.spec import grown_size
from ntk_core.numbers import number

Runs = Shown[AttributionSpec, AttributionPoint]
ERROR = RunNumber[AttributionRun](
    "relative error of the prediction", "error", lambda run: run.error
)
ERROR_AFTER = RunNumber[AttributionRun](ERROR.title, "error", lambda run: run.error_after)
RANK = RunNumber[AttributionRun]("rank correlation", "rank correlation", lambda run: run.rank)
EVERY_POINT = -1  # not the index of any point
KERNELS = {"before": "kernel at w₀", "after": "kernel after training"}


def error_against_width(shown: Runs) -> Chart:
    """Draw the relative error of K(w₀) against width.

    Each network and output has a line, log–log.
    """
    names = line_names(shown.spec, shown.points)
    return sweep(
        measure_lines(shown.spec, shown.points, ERROR, names),
        grown_axis(shown.spec),
        ERROR.title,
        ERROR.symbol,
        slopes=() if grown_size(shown.spec.architectures) else (-1.0,),
        of="network and output",
        name="error",
        heading="Error of the prediction",
        caption=[_removed_words(shown.spec)],
        first=range(4),
    )


def rank_against_width(shown: Runs) -> Chart:
    """Draw the rank correlation of K(w₀) against width, a line for each network and output."""
    names = line_names(shown.spec, shown.points)
    ranks = measure_lines(shown.spec, shown.points, RANK, names)
    lines = [replace(line, fit=False) for line in ranks]
    return sweep(
        lines,
        grown_axis(shown.spec),
        RANK.title,
        RANK.symbol,
        is_log=False,
        of="network and output",
        name="rank",
        heading="Order of the points",
        caption=[_removed_words(shown.spec)],
        first=range(4),
    )


def kernels_against_width(shown: Runs, letter: str, output: str) -> Chart:
    """Draw the relative error of the kernels before and after training against width, log–log."""
    runs = runs_of(shown.points, letter, output)
    # Not the first look, which is close to that of network B in the figure above.
    before = nth_style(2, KERNELS["before"], "measure")
    after = nth_style(1, KERNELS["after"], "measure")
    return sweep(
        [Line(before, ERROR.dots(runs)), Line(after, ERROR_AFTER.dots(runs))],
        grown_axis(shown.spec),
        ERROR.title,
        ERROR.symbol,
        of="kernel",
        name="kernels",
        heading="Which kernel predicts better?",
        caption=[f"{_network_words(shown.spec, letter, output)}."],
    )


def changes(
    shown: Runs, letter: str, output: str, width: int, kernel: str, chosen: int
) -> list[Chart]:
    """Draw predicted against retrained changes of the first seed.

    Those of the chosen training point stand out.
    """
    point = _point_of(shown, letter, width)
    run = _kept_run(point, output)
    if run is None:  # not yet
        return []
    prediction: Prediction = getattr(run, kernel)
    figure = go.Figure()
    every = np.asarray([prediction.changes, run.changes])
    ends = [float(every.min()), float(every.max())]
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line=GUIDE_LINE, name="equal", hoverinfo="skip"
    )
    for number_of_output in range(len(run.changes[0][0])):
        _add_changes(figure, point, run, prediction, number_of_output, chosen)
    figure.update_xaxes(title="predicted change of an output")
    figure.update_yaxes(title="change by retraining")
    where = grown_axis(shown.spec).at(width)
    finding = (
        f"Seed {run.seed} at {where}, {KERNELS[kernel]}: relative error "
        f"{_words(prediction.error)}, rank correlation {_words(prediction.rank)}."
    )
    if run.outcome != "converged":
        finding += " Its trainings did not all converge."
    title = _network_words(shown.spec, letter, output)
    chart = Chart(
        finish(figure),
        f"Predicted and retrained changes. {title}. {finding}",
        _rows(run, prediction),
        [f"{title}. {_removed_words(shown.spec)}"],
        "changes",
        "Predicted against retrained",
        finding=finding,
        clicks="A click on a mark shows its training point.",
        label="Predicted and retrained changes",
    )
    return [chart]


def chosen_point(
    shown: Runs, letter: str, output: str, width: int, kernel: str, chosen: int
) -> Chart | None:
    """Draw the chosen training point; None for all points, or if inputs were not kept."""
    point = _point_of(shown, letter, width)
    run = _kept_run(point, output)
    if run is None or chosen == EVERY_POINT or not point.removed:
        return None
    return training_point(point, run, getattr(run, kernel), chosen)


def _point_of(shown: Runs, letter: str, width: int) -> AttributionPoint:
    """Return the point of a network at a width."""
    return next(each for each in points_of(shown.points, letter) if each.width == width)


def _kept_run(point: AttributionPoint, output: str) -> AttributionRun | None:
    """Return the run whose changes are kept: that of the first seed, once it has ended."""
    return next((run for run in point.of(output) if run.changes), None)


def _add_changes(
    figure: go.Figure,
    point: AttributionPoint,
    run: AttributionRun,
    prediction: Prediction,
    output: int,
    chosen: int,
) -> None:
    """Draw one mark per removed point and test point.

    Those of other points than the chosen one are faint.
    """
    x = []
    y = []
    notes = []
    opacity = []
    for removed, (predicted, retrained) in enumerate(
        zip(prediction.changes, run.changes, strict=True)
    ):
        for test, (first, second) in enumerate(zip(predicted, retrained, strict=True)):
            x.append(first[output])
            y.append(second[output])
            notes.append([removed + 1, test + 1])  # people count from 1
            opacity.append(1.0 if chosen in (EVERY_POINT, removed) else FAINT_OPACITY)
    style = nth_style(output, f"output {output + 1}", "class")
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"color": style.color, "symbol": style.symbol, "size": 8, "opacity": opacity},
        unselected={"marker": {"opacity": 1}},
        customdata=notes,
        name=style.title,
        hovertemplate="without training point %{customdata[0]}, at test point %{customdata[1]}"
        "<br>predicted %{x:.3g}<br>retrained %{y:.3g}<extra></extra>",
    )


def training_point(
    point: AttributionPoint, run: AttributionRun, prediction: Prediction, chosen: int
) -> Chart:
    """Draw the inputs of a training point, and say how much its removal changes."""
    inputs = point.removed[chosen]
    sizes = [_size(each) for each in run.changes]
    place = 1 + sum(size > sizes[chosen] for size in sizes)
    target = ", ".join(number(value) for value in point.targets[chosen])
    finding = (
        f"Training point {chosen + 1}, target ({target}): number {place} of {len(sizes)} by the "
        f"size of its changes, {number(sizes[chosen])} retrained and "
        f"{number(_size(prediction.changes[chosen]))} predicted."
    )
    rows: list[dict[str, object]] = [
        {"input": index, "value": value} for index, value in enumerate(inputs, start=1)
    ]
    return Chart(
        _drawn_inputs(inputs, point.input_shape),
        finding,
        rows,
        ["Sizes are 2-norms over the kept test points."],
        "training_point",
        f"Training point {chosen + 1}",
        finding=finding,
        label="Inputs of the training point",
    )


def _drawn_inputs(inputs: Sequence[float], input_shape: Sequence[int]) -> go.Figure:
    """Draw the inputs of one point: pixels of an image, otherwise bars."""
    shape = [size for size in input_shape if size > 1]
    figure = go.Figure()
    if len(shape) == 2:
        pixels = np.reshape(inputs, shape).tolist()
        figure.add_heatmap(z=pixels, colorscale="gray", showscale=False)
        figure.update_yaxes(autorange="reversed", scaleanchor="x", showticklabels=False)
        figure.update_xaxes(showticklabels=False)
    else:
        figure.add_bar(x=list(range(1, len(inputs) + 1)), y=inputs, marker={"color": GUIDE_COLOR})
        figure.update_xaxes(title="input")
        figure.update_yaxes(title="value")
    return finish(figure).update_layout(height=260)


def _size(changes: Sequence[Sequence[float]]) -> float:
    """2-norm over test points and outputs."""
    return float(np.linalg.norm(changes))


def _rows(run: AttributionRun, prediction: Prediction) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for removed, (predicted, retrained) in enumerate(
        zip(prediction.changes, run.changes, strict=True)
    ):
        for test, (first, second) in enumerate(zip(predicted, retrained, strict=True)):
            for output, (one, other) in enumerate(zip(first, second, strict=True)):
                row: dict[str, object] = {"training point": removed + 1, "test point": test + 1}
                row |= {"output": output + 1, "predicted": one, "retrained": other}
                rows.append(row)
    return rows


def _words(value: float | None) -> str:
    return "unknown" if value is None else number(value)


def _network_words(spec: AttributionSpec, letter: str, output: str) -> str:
    return f"{beginning(network_title(spec, letter))}, {output_title(output)}"


def _removed_words(spec: AttributionSpec) -> str:
    return f"Each of {spec.num_removed} training points is removed once."


def _choices_of_network(shown: Runs) -> list[Choice]:
    return [network_choice(shown.spec, shown.points), output_choice(shown.spec.outputs)]


def _choices_of_changes(shown: Runs, letter: str, output: str) -> list[Choice]:
    points = range(EVERY_POINT, shown.spec.num_removed)
    return [
        width_choice(points_of(shown.points, letter), axis=grown_axis(shown.spec)),
        Choice("kernel", "Kernel", list(KERNELS), KERNELS.__getitem__, 200),
        Choice("point", "Training point", list(points), _point_words),
    ]


def _point_words(index: int) -> str:
    return "all points" if index == EVERY_POINT else f"point {index + 1}"


FIGURES = (
    Figure("error", "Error against width", draw=error_against_width, is_main=True),
    Figure(
        "changes",
        "Predicted against retrained",
        choices=[_choices_of_network, _choices_of_changes],
        draw=changes,
    ),
    Figure("rank", "Ranks", draw=rank_against_width),
    Figure(
        "kernels",
        "Kernel after training",
        choices=[_choices_of_network],
        draw=kernels_against_width,
    ),
)
