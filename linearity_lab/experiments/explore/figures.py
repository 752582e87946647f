"""Figures of *Explore*: ΔK against width beside logits, ‖H‖, kernels, losses."""

from collections.abc import Sequence

import numpy as np
from plotly.subplots import make_subplots

from linearity_lab.charts.axes import beginning, finish, plain_symbols
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.choices import Choice, output_choice, width_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Dot, Line, trained_dot, width_axis
from linearity_lab.charts.style import (
    OUTCOME_TITLES,
    Style,
    model_style,
    network_style,
    nth_style,
    output_title,
)
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Row, along_training, dash_key
from linearity_lab.experiments.explore.finding import change_finding
from linearity_lab.experiments.explore.point import ExplorePoint, ExploreRun
from linearity_lab.experiments.explore.spec import ExploreSpec
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from ntk_core.numbers import number

Runs = Shown[ExploreSpec, ExplorePoint]
LOOKS = "fully-connected"  # the looks of its outputs differ; one network is shown at a time
HEIGHT = 400  # of figures beside each other, complete on a screen of 900 pixels
MODELS = (("outputs", "solid", 2.5, "network"), ("outputs_linear", "dash", 2.0, "linear model"))


def class_titles(spec: ExploreSpec, count: int) -> list[str]:
    """Name the outputs: classes of the data, or numbers without classes."""
    shapes = spec.dataset.known_shapes()
    if shapes is not None and len(shapes.class_names) == count:
        return list(shapes.class_names)
    return [f"output {index + 1}" for index in range(count)] if count > 1 else ["output"]


def change_lines(points: Sequence[ExplorePoint]) -> list[Line]:
    """Return ΔK of every output against width."""
    lines = []
    for output in occurring(points, "output"):
        dots = [
            trained_dot(point.width, run.sup_change, run)
            for point in points
            for run in point.of(output)
        ]
        lines.append(Line(network_style(LOOKS, output, output_title(output)), dots))
    return lines


def linear_model_line(points: Sequence[ExplorePoint]) -> list[Line]:
    """Return ΔK of softmax(f_lin), whose own kernel is constant.

    Nothing where it was not compared.
    """
    dots = [
        trained_dot(point.width, run.linear_model_sup, run, "")
        for point in points
        for run in point.of("softmax")
        if run.linear_model_change
    ]
    return [Line(linear_model_style(), dots)] if dots else []


def linear_model_style() -> Style:
    """The look of softmax(f_lin) beside the softmax of the network."""
    return network_style(LOOKS, "softmax", LINEAR_MODEL_TITLE, 1)


def change_against_width(shown: Runs) -> Chart:
    """Draw ΔK of every output against width, log–log."""
    spec = shown.spec
    lines = change_lines(shown.points)
    outputs = occurring(shown.points, "output")
    return sweep(
        [*lines, *linear_model_line(shown.points)],
        width_axis(spec.widths),
        "kernel change ΔK",
        "ΔK",
        slopes=(-0.5, -1.0),
        of="output",
        name="against_width",
        heading="ΔK against width",
        finding=change_finding(outputs, lines),
        height=HEIGHT,
    )


def hessian_against_width(shown: Runs) -> Chart:
    """Draw ‖H(w₀)‖ of every output against width, log–log."""
    lines = []
    for output in occurring(shown.points, "output"):
        dots = []
        for point in shown.points:
            for run in point.of(output):
                if run.hessian is not None:
                    why = "" if run.hessian_converged else "did not converge"
                    dots.append(Dot(point.width, run.hessian, run.seed, why))
        style = network_style(LOOKS, output, output_title(output))
        lines.append(Line(style, dots))
    note = shown.spec.almost_everywhere
    return sweep(
        lines,
        width_axis(shown.spec.widths),
        "Hessian norm ‖H(w₀)‖",
        "‖H‖",
        slopes=(-0.5,),
        of="output",
        name="hessian",
        heading="‖H‖ against width",
        caption=[note] if note else [],
        height=HEIGHT,
    )


def first_run(point: ExplorePoint, output: str) -> ExploreRun | None:
    """Return the run of this output with recorded logits; None before it has ended."""
    return next((run for run in point.of(output) if run.outputs), None)


def logits(shown: Runs, output: str, width: int, index: int) -> Chart:
    """Draw all outputs at one training point against training steps.

    Network solid, linear model dashed.
    """
    point = shown.point(width)
    run = first_run(point, output)
    is_linear = output == "linear"
    what = "logit" if is_linear else "output φ(f)"
    heading = f"{'Logits' if is_linear else beginning(output_title(output))} at m = {width:,}"
    if run is None:
        figure = along_training([], [Row(what, "linear")])
        figure.update_layout(height=HEIGHT)
        return Chart(figure, "This training has not ended.", [], name="logits", heading=heading)
    titles = class_titles(shown.spec, len(point.targets[index]))
    curves = [dash_key(title, dash, width) for _, dash, width, title in MODELS]
    gaps = []
    for number_of, title in enumerate(titles):
        color = nth_style(number_of, "", "sample").color
        for field, dash, thickness, model in MODELS:
            values = [block[index][number_of] for block in getattr(run, field)]
            style = Style(color, dash, "", f"{title}, {model}")
            is_network = model == "network"
            curves.append(
                Curve(
                    style,
                    run.steps,
                    values,
                    what,
                    width=thickness,
                    in_legend=is_network,
                    group=title,
                )
            )
        gaps += [
            abs(f[index][number_of] - linear[index][number_of])
            for f, linear in zip(run.outputs, run.outputs_linear, strict=True)
        ]
    figure = along_training(curves, [Row(what, "linear")], first=titles)
    figure.update_layout(height=HEIGHT)
    if len(run.steps) == 1:  # a dead network does not train
        why = f"no training: {OUTCOME_TITLES[run.outcome]}"
        figure.add_annotation(text=why, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    words = (
        f"{heading}, training point {index + 1}: network and linear model differ by at most "
        f"{number(max(gaps))}."
    )
    rows = logit_rows(run, index, titles)
    caption = [
        f"Training point {index + 1} of {len(point.followed)}, {_own(point, index, titles)}first "
        "seed."
    ]
    return Chart(figure, words, rows, caption, "logits", heading, label=heading)


def _own(point: ExplorePoint, index: int, titles: Sequence[str]) -> str:
    """Name the class of a training point; empty without classes."""
    target = point.targets[index]
    if len(target) < 2 or sorted(target)[-2:] != [0.0, 1.0]:
        return ""
    return f"{titles[target.index(1.0)]}; "


def logit_rows(run: ExploreRun, index: int, titles: Sequence[str]) -> list[dict[str, object]]:
    """Return one row per recorded step and output at one training point."""
    rows: list[dict[str, object]] = []
    for step, ours, theirs in zip(run.steps, run.outputs, run.outputs_linear, strict=True):
        for title, network, linear in zip(titles, ours[index], theirs[index], strict=True):
            rows.append({"step": step, "output": title, "network": network, "linear model": linear})
    return rows


def kernels(shown: Runs, output: str, width: int, index: int) -> list[Chart]:
    """Draw the kernel before and after training as heatmaps with one color scale."""
    point = shown.point(width)
    drawn = next((each for each in point.kernels if each.output == output), None)
    if drawn is None:  # another output of this width has ended first
        return []
    matrices = {"K₀": np.asarray(drawn.initial), "K<sub>t</sub>": np.asarray(drawn.final)}
    figure = make_subplots(
        rows=1, cols=len(matrices), subplot_titles=list(matrices), horizontal_spacing=0.05
    )
    for column, (name, matrix) in enumerate(matrices.items(), start=1):
        figure.add_heatmap(
            z=matrix,
            coloraxis="coloraxis",
            hovertemplate=f"{name}<br>points %{{y}} and %{{x}}<br>%{{z:,.3~r}}<extra></extra>",
            row=1,
            col=column,
        )
        below = "" if column == 1 else str(column)
        square = {"scaleanchor": f"x{below}", "autorange": "reversed", "constrain": "domain"}
        figure.update_yaxes(**square, row=1, col=column)
    figure.update_xaxes(showticklabels=False, ticks="", constrain="domain")
    figure.update_yaxes(showticklabels=False, ticks="")
    finish(figure)
    figure.update_layout(
        height=HEIGHT, coloraxis={"colorscale": "Cividis", "colorbar": {"thickness": 10}}
    )
    before, after = matrices.values()
    size = float(np.linalg.norm(before))
    title = f"{beginning(output_title(output))} at m = {width:,}: kernel K₀ → K_t"
    words = f"{title}. The drawn entries are 0 at the start."
    if size:
        change = float(np.linalg.norm(after - before)) / size
        words = f"{title}. The drawn entries change by {number(change)} of their norm."
    caption = [
        f"Mean over the outputs, at {len(before)} training points in the order of their classes; "
        "first seed."
    ]
    rows: list[dict[str, object]] = [
        {"kernel": plain_symbols(name), "row": row + 1, "column": column + 1, "K": float(entry)}
        for name, matrix in matrices.items()
        for (row, column), entry in np.ndenumerate(matrix)
    ]
    heading = "Kernel K₀ → K<sub>t</sub>"
    return [Chart(figure, words, rows, caption, "kernels", heading, label=title)]


def training(shown: Runs, output: str, width: int, index: int) -> Chart:
    """Draw ΔK(t), losses and the difference from the linear model of every seed at one width."""
    point = shown.point(width)
    curves = []
    for place, run in enumerate(point.of(output)):
        style = network_style(LOOKS, output, output_title(output))
        linear = model_style("linearized")
        rows = [
            (1, style, "ΔK(t)", run.change),
            (2, style, "difference", run.difference),
            (3, style, "loss", run.loss),
            (3, linear, "loss", run.loss_linear),
        ]
        if run.linear_model_change:
            rows.append((1, linear_model_style(), "ΔK(t)", run.linear_model_change))
        for row, look, what, values in rows:
            curves.append(Curve(look, run.steps, values, what, run.seed, row, is_first=place == 0))
    rows_of_figure = [
        Row("ΔK(t)", "from 0", 0.34),
        Row("‖F − F<sub>lin</sub>‖² / ‖F<sub>lin</sub>‖²", share=0.33),
        Row("loss", share=0.33),
    ]
    figure = along_training(curves, rows_of_figure)
    figure.update_layout(height=1.3 * HEIGHT)
    ends = [number(run.change[-1]) for run in point.of(output)]
    words = (
        f"{beginning(output_title(output))} at width {width:,}: kernel change at the end "
        f"{', '.join(ends)}."
    )
    table: list[dict[str, object]] = [
        {
            "seed": run.seed,
            "step": step,
            "ΔK(t)": change,
            "difference": difference,
            "loss": loss,
            "loss, linear model": linear_loss,
            **of_linear_model,
        }
        for run in point.of(output)
        for step, change, difference, loss, linear_loss, of_linear_model in zip(
            run.steps,
            run.change,
            run.difference,
            run.loss,
            run.loss_linear,
            _linear_model_entries(run),
            strict=True,
        )
    ]
    return Chart(figure, words, table, (), "training", "Losses, ΔK(t), ‖F − F<sub>lin</sub>‖")


def _linear_model_entries(run: ExploreRun) -> list[dict[str, float]]:
    """Return the table entries of softmax(f_lin), one per recorded step.

    Empty where it was not compared.
    """
    if not run.linear_model_change:
        return [{} for _ in run.steps]
    return [{f"ΔK(t), {LINEAR_MODEL_TITLE}": change} for change in run.linear_model_change]


def _choices(shown: Runs) -> list[Choice]:
    outputs = occurring(shown.points, "output")
    points = list(range(len(shown.points[0].followed)))
    return [
        output_choice(outputs),
        width_choice(shown.points),
        Choice("point", "Training point", points, lambda i: f"point {i + 1}", 150, is_stepped=True),
    ]


def _overview(shown: Runs, output: str, width: int, index: int) -> list[Chart]:
    return [change_against_width(shown), logits(shown, output, width, index)]


def _has_hessian(shown: Runs) -> bool:
    return any(run.hessian is not None for point in shown.points for run in point.runs)


FIGURES = (
    Figure(
        "overview", "Kernel change and logits", choices=[_choices], draw=_overview, is_main=True
    ),
    Figure("hessian", "‖H‖ against width", draw=hessian_against_width, has_data=_has_hessian),
    Figure(
        "kernels",
        "Kernel before and after",
        choices=[_choices],
        draw=kernels,
        has_data=lambda shown: bool(shown.points) and all(point.kernels for point in shown.points),
    ),
    Figure("training", "Losses and difference", choices=[_choices], draw=training),
)
