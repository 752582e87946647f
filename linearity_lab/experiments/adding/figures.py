"""The error of adding against width and against the number of tasks, and the added functions."""

from collections.abc import Sequence
from dataclasses import replace

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
from linearity_lab.charts.lines import (
    Axis,
    Line,
    RunNumber,
    trained_dot,
)
from linearity_lab.charts.style import (
    GUIDE_COLOR,
    Style,
    model_style,
    nth_style,
    output_title,
    width_style,
)
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.adding.point import AddingPoint, AddingRun, AddingSpec
from linearity_lab.networks.spec import grown_size
from ntk_core.numbers import number

Runs = Shown[AddingSpec, AddingPoint]
ERROR = RunNumber[AddingRun]("error of the sum E", "E", lambda run: run.last_error)


def lines_of(shown: Runs, names: Sequence[tuple[str, str]]) -> list[Line]:
    """Return E of all tasks, a line for each network and output of ``names``."""
    return measure_lines(shown.spec, shown.points, ERROR, names)


def against_width(shown: Runs, names: Sequence[tuple[str, str]] | None = None) -> Chart:
    """Draw E of all tasks against width, log–log: of all networks and outputs, or of ``names``."""
    spec = shown.spec
    lines = lines_of(shown, line_names(spec, shown.points) if names is None else names)
    return sweep(
        lines,
        grown_axis(spec),
        ERROR.title,
        ERROR.symbol,
        slopes=() if grown_size(spec.architectures) else (-1.0,),
        of="network and output",
        name="error",
        heading="Against width",
        caption=[_tasks_words(spec)],
        first=range(4),
    )


def against_count(shown: Runs, letter: str, output: str) -> Chart:
    """Draw E of the first tasks against their number, a line for each width, log–log."""
    spec = shown.spec
    points = points_of(shown.points, letter)
    swept = grown_axis(spec)
    lines = []
    for index, point in enumerate(points):
        dots = []
        for run in point.of(output):
            for count, error in enumerate(run.error, start=1):
                if count > 1 and error is not None:
                    dots.append(trained_dot(count, error, run))
        title = swept.at(point.width)
        lines.append(Line(width_style(index, len(points), title), dots, fit=False))
    axis = Axis("number of tasks", "T", values=range(2, spec.num_tasks + 1), symbol="T")
    caption = f"{beginning(network_title(spec, letter))}, {output_title(output)}."
    return sweep(
        lines,
        axis,
        ERROR.title,
        ERROR.symbol,
        of=swept.title,
        name="count",
        heading="Against the number of tasks",
        caption=[caption],
    )


def added_functions(shown: Runs, letter: str, output: str, width: int) -> list[Chart]:
    """Draw the functions after each task and after all.

    Without a curve, these are outputs at test points.
    """
    point = next(each for each in points_of(shown.points, letter) if each.width == width)
    run = next((each for each in point.of(output) if each.together), None)
    if run is None:  # not yet
        return []
    figure = _curves(point, run) if point.x else _scatter(run)
    finish(figure)
    error = "unknown" if run.error[-1] is None else f"E = {number(run.error[-1])}"
    title = f"{beginning(network_title(shown.spec, letter))}, {output_title(output)}"
    where = grown_axis(shown.spec).at(width)
    finding = f"Seed {run.seed} at {where}: the error of the sum is {error}."
    if run.outcome != "converged":
        finding += " Its tasks did not all converge."
    chart = Chart(
        figure,
        f"Outputs after each task and after their sum. {title}. {finding}",
        _rows(point, run),
        [f"{title}. {_tasks_words(shown.spec)}"],
        "tasks",
        "Tasks and their sum",
        finding=finding,
        label="Tasks and their sum",
    )
    return [chart]


def _curves(point: AddingPoint, run: AddingRun) -> go.Figure:
    """The functions after each task with its data, their sum, and all vectors together."""
    figure = go.Figure()
    for index, outputs in enumerate(run.tasks):
        style = _task_style(index)
        figure.add_scatter(
            x=point.x_train[index],
            y=point.y_train[index],
            mode="markers",
            marker={"color": style.color, "symbol": style.symbol, "size": 10},
            name=f"data of {style.title}",
        )
        _add_curve(figure, point, outputs, style, 2, f"after {style.title}")
    # Thick and below the others, which cover it where the network adds.
    summed = Style(GUIDE_COLOR, "dot", "", "sum of the changes")
    _add_curve(figure, point, run.summed, summed, 6, summed.title)
    _add_curve(figure, point, run.together, model_style("network"), 3, "network, all vectors")
    linear = model_style("linearized")
    _add_curve(figure, point, run.of_linear, linear, 2, "linear model, all vectors")
    figure.update_xaxes(title="input x")
    figure.update_yaxes(title="output f(x)")
    return figure


def _add_curve(
    figure: go.Figure,
    point: AddingPoint,
    outputs: Sequence[Sequence[float]],
    style: Style,
    width: float,
    name: str,
) -> None:
    """Draw outputs (k, 1) at the test inputs of the point."""
    figure.add_scatter(
        x=point.x,
        y=[row[0] for row in outputs],
        mode="lines",
        line={"color": style.color, "dash": style.dash, "width": width},
        name=name,
    )


def _scatter(run: AddingRun) -> go.Figure:
    """Outputs of the network with all vectors against the sum of the changes, at test points."""
    x = [value for row in run.summed for value in row]
    y = [value for row in run.together for value in row]
    figure = go.Figure()
    ends = [min(x + y), max(x + y)]
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line=GUIDE_LINE, name="equal", hoverinfo="skip"
    )
    for output in range(len(run.summed[0])):
        style = nth_style(output, f"output {output + 1}", "class")
        figure.add_scatter(
            x=[row[output] for row in run.summed],
            y=[row[output] for row in run.together],
            mode="markers",
            marker={"color": style.color, "symbol": style.symbol, "size": 8},
            name=style.title,
            hovertemplate=f"{style.title}<br>sum of the changes %{{x:.3f}}<br>network %{{y:.3f}}"
            "<extra></extra>",
        )
    figure.update_xaxes(title="f(w<sub>0</sub>) + sum of the changes")
    figure.update_yaxes(title="network with all vectors")
    return figure


def _rows(point: AddingPoint, run: AddingRun) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for index, values in enumerate(run.summed):
        for output, value in enumerate(values):
            row: dict[str, object] = {"test point": index + 1, "output": output + 1}
            if point.x:
                row["x"] = point.x[index]
            for task, outputs in enumerate(run.tasks, start=1):
                row[f"after task {task}"] = outputs[index][output]
            row["sum of the changes"] = value
            row["network, all vectors"] = run.together[index][output]
            if run.of_linear:
                row["linear model, all vectors"] = run.of_linear[index][output]
            rows.append(row)
    return rows


def _task_style(index: int) -> Style:
    return nth_style(index, f"task {index + 1}", "class")


def _tasks_words(spec: AddingSpec) -> str:
    """Return what is added."""
    added = f"{spec.num_tasks} tasks from the same start"
    return (
        f"{beginning(added)}."
        if spec.scale == 1
        else f"{beginning(added)}, times λ = {spec.scale:g}."
    )


def _choices_of_tasks(shown: Runs) -> list[Choice]:
    return [
        network_choice(shown.spec, shown.points),
        output_choice(shown.spec.outputs, is_rare=True),
    ]


def _choices_of_count(shown: Runs) -> list[Choice]:
    return [
        network_choice(shown.spec, shown.points, "counted_network"),
        replace(output_choice(shown.spec.outputs, is_rare=True), name="counted_output"),
    ]


def _widths(shown: Runs, letter: str, output: str) -> list[Choice]:
    return [width_choice(points_of(shown.points, letter), axis=grown_axis(shown.spec))]


FIGURES = (
    Figure("error", "Against width", draw=against_width),
    Figure(
        "tasks", "Tasks and their sum", choices=[_choices_of_tasks, _widths], draw=added_functions
    ),
    Figure(
        "count",
        "Number of tasks",
        choices=[_choices_of_count],
        draw=against_count,
        has_data=lambda shown: shown.spec.num_tasks > 2,
    ),
)
