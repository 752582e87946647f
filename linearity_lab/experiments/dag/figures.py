"""Figures of graphs against their widths.

ΔK, ‖H‖, pre-activations, smallest eigenvalues (Zhu, Liu & Belkin 2022).
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from linearity_lab.charts.chart import WIDTH, Chart, ComparedAxis, occurring
from linearity_lab.charts.choices import Choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Axis as SweepAxis
from linearity_lab.charts.lines import Line, trained_dot
from linearity_lab.charts.style import Style, graph_style, group_style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.dag.point import DAGPoint, DAGRun, DAGSpec
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.runs import PRESETS, mean
from ntk_core.networks.graphs import GRAPH_TITLES, OUTPUT, example_graphs

Runs = Shown[DAGSpec, DAGPoint]
Axis = Literal["in-degree", "width"]
AXIS_TITLES: dict[Axis, str] = {"in-degree": "smallest in-degree, realized", "width": "width m"}
Of = Callable[[DAGRun], float]
YOURS = "your graph"
OF_PRESET = "this graph"


def series_of(points: Sequence[DAGPoint]) -> list[tuple[str, str]]:
    """Return the (graph, output) that occur."""
    return occurring(points, "graph", "output")


def axes_of(points: Sequence[DAGPoint]) -> list[Axis]:
    """Return the meaningful axes, the better one first.

    The in-degree, unless it is constant in a graph.
    """
    ends: list[Axis] = ["in-degree", "width"]
    for graph, output in series_of(points):
        if (
            len(points) > 1
            and len({run.min_in_degree for point in points for run in point.of(graph, output)}) < 2
        ):
            return ends[::-1]
    return ends


def line(
    points: Sequence[DAGPoint],
    axis: Axis,
    graph: str,
    output: str,
    of: Of,
    style: Style | None = None,
    *,
    converged_only: bool = False,
    fit: bool = True,
    drawn: str = YOURS,
) -> Line:
    """Return one number per run of one graph and output.

    Runs without a positive number are only named.
    """
    dots = []
    for point, run in ((each, run) for each in points for run in each.of(graph, output)):
        if not of(run) > 0 and not (converged_only and run.outcome != "converged"):
            continue
        other = (
            f"m = {point.width:,}"
            if axis == "in-degree"
            else f"smallest in-degree {run.min_in_degree:,}"
        )
        dot = trained_dot(point.width, of(run), run, other, converged_only=converged_only)
        dots.append(replace(dot, x=run.min_in_degree) if axis == "in-degree" else dot)
    degrees: dict[float, dict[str, object]] = {}
    for point in points:
        runs = point.of(graph, output)
        degrees[point.width] = {
            "smallest in-degree": mean([run.min_in_degree for run in runs]).value,
            "largest in-degree": mean([run.max_in_degree for run in runs]).value,
        }
    return Line(style or graph_style(graph, output, drawn), dots, fit, degrees)


def change_lines(
    points: Sequence[DAGPoint], axis: Axis = "width", drawn: str = YOURS
) -> dict[tuple[str, str], Line]:
    """Map (graph, output) to ΔK of the converged runs."""
    return {
        each: line(
            points, axis, *each, lambda run: run.sup_change, converged_only=True, drawn=drawn
        )
        for each in series_of(points)
    }


def linear_model_lines(points: Sequence[DAGPoint], axis: Axis) -> list[Line]:
    """Return ΔK of softmax(f_lin) for every graph with softmax.

    Its own kernel is constant.
    """
    lines: list[Line] = []
    for graph, output in series_of(points):
        if output == "softmax":
            title = f"{LINEAR_MODEL_TITLE}, {GRAPH_TITLES.get(graph, YOURS)}"
            style = nth_style(len(lines) + 9, title)
            found = line(
                points,
                axis,
                graph,
                output,
                lambda run: run.linear_model_sup,
                style,
                converged_only=True,
                fit=False,
            )
            known = [dot for dot in found.dots if not math.isnan(dot.value)]
            if known:
                lines.append(replace(found, dots=known))
    return lines


def hessian_lines(
    points: Sequence[DAGPoint], axis: Axis = "width", drawn: str = YOURS
) -> dict[tuple[str, str], Line]:
    """Map (graph, output) to ‖H‖ at w₀, if measured."""

    def norm(run: DAGRun) -> float:
        return run.hessian_norm if run.hessian_converged else math.nan

    lines = {each: line(points, axis, *each, norm, drawn=drawn) for each in series_of(points)}
    return {each: found for each, found in lines.items() if found.dots}


def layer_lines(
    points: Sequence[DAGPoint], axis: Axis, what: Literal["hessian_norm", "change"]
) -> list[Line]:
    """Return ‖H‖ or ΔK of pre-activations by group of the drawn graph, without first layers."""
    groups = dict.fromkeys(
        layer.group for point in points for run in point.runs for layer in run.layers
    )
    found = []

    def of(run: DAGRun, group: str) -> float:
        return next(
            (getattr(layer, what) for layer in run.layers if layer.group == group), math.nan
        )

    for index, group in enumerate(groups):
        style = group_style(group, index)
        style = replace(style, title="outputs") if group == OUTPUT else style
        found.append(
            line(points, axis, *series_of(points)[0], functools.partial(of, group=group), style)
        )
    return [each for each in found if each.dots]


def _share(run: DAGRun, eigenvalue: float) -> float:
    return eigenvalue / run.smallest_eigenvalue[0] if run.smallest_eigenvalue[0] > 0 else math.nan


# Of the first series: λ_min(K) as a share of λ_min(K(w₀)); a bound that is NaN beyond its
# assumptions.
EIGENVALUES: dict[str, Of] = {
    "along the path": lambda run: _share(run, min(run.smallest_eigenvalue)),
    "in the ball, worst found": lambda run: _share(run, run.ball_eigenvalue),
}
GRADIENTS: dict[str, Of] = {
    "‖∇f‖² at w₀": lambda run: run.gradient_norm,
    "lower bound": lambda run: run.gradient_bound,
}
_OF_FIRST = (*EIGENVALUES, *GRADIENTS)


def lines_of_first(
    points: Sequence[DAGPoint], axis: Axis, measured: Mapping[str, Of]
) -> list[Line]:
    """Return numbers of the first series; none if the last one was not measured."""
    *_, last = measured.values()
    if not any(math.isfinite(last(run)) for point in points for run in point.runs):
        return []
    return [
        line(
            points,
            axis,
            *series_of(points)[0],
            of,
            nth_style(_OF_FIRST.index(title), title),
            fit=False,
        )
        for title, of in measured.items()
    ]


def against(
    lines: Sequence[Line],
    widths: Sequence[int],
    axis: Axis,
    title: str,
    *,
    guide: bool = True,
) -> Chart:
    """Lines against width or realized in-degree, log–log.

    Without ``guide`` the vertical axis is linear.

    ``widths`` are those of the whole sweep, so that the axis of widths stays while points arrive.
    """
    swept = SweepAxis(
        AXIS_TITLES[axis],
        "m" if axis == "width" else "k",
        values=widths if axis == "width" else (),
        symbol="smallest in-degree" if axis == "in-degree" else "",
        column=AXIS_TITLES["width"],
        values_name="widths" if axis == "width" else "values",
    )
    slopes = (-0.5,) if guide else ()
    return sweep(lines, swept, title, slopes=slopes, is_log=guide, of="graph and output")


def _drawn_title(shown: Runs) -> str:
    """Return the title of the drawn graph; only a graph of no example and no preset is yours."""
    for name, graph in example_graphs().items():
        if graph == shown.spec.graph:
            return GRAPH_TITLES[name]
    specs = [preset.spec for preset in PRESETS.values()]
    of_presets = [spec.graph for spec in specs if isinstance(spec, DAGSpec)]
    return OF_PRESET if shown.spec.graph in of_presets else YOURS


def _change_lines(shown: Runs, axis: Axis) -> list[Line]:
    lines = list(change_lines(shown.points, axis, _drawn_title(shown)).values())
    return [*lines, *linear_model_lines(shown.points, axis)]


def _hessian_lines(shown: Runs, axis: Axis) -> list[Line]:
    return list(hessian_lines(shown.points, axis, _drawn_title(shown)).values())


def _choices(shown: Runs) -> list[str | Choice]:
    """Return the choice of width or realized in-degree."""
    return [
        "Against the",
        Choice("axis", "Axis", axes_of(shown.points), AXIS_TITLES.__getitem__, 260),
    ]


def _figure(
    name: str,
    tab: str,
    title: str,
    lines: Callable[[Runs, Axis], list[Line]],
    *,
    guide: bool = True,
) -> Figure:
    """Return the figure of these lines, which a result has if there are any."""

    def draw(shown: Runs, axis: Axis) -> Chart:
        return against(lines(shown, axis), shown.spec.widths, axis, title, guide=guide)

    def has_lines(shown: Runs) -> bool:
        return bool(lines(shown, axes_of(shown.points)[0]))

    return Figure(name, tab, choices=[_choices], draw=draw, has_data=has_lines)


FIGURES = (
    _figure("change", "Kernel change", "kernel change ΔK", _change_lines),
    _figure("hessian", "Hessian norm", "Hessian norm ‖H‖ at w₀", _hessian_lines),
    _figure(
        "layer_hessian",
        "‖H‖ of pre-activations",
        "‖H‖ of one pre-activation",
        lambda shown, axis: layer_lines(shown.points, axis, "hessian_norm"),
    ),
    _figure(
        "layer_change",
        "ΔK of pre-activations",
        "kernel change of pre-activations",
        lambda shown, axis: layer_lines(shown.points, axis, "change"),
    ),
    _figure(
        "eigenvalue",
        "Smallest eigenvalue",
        "λ<sub>min</sub>(K) / λ<sub>min</sub>(K(w₀))",
        lambda shown, axis: lines_of_first(shown.points, axis, EIGENVALUES),
        guide=False,
    ),
    _figure(
        "gradient",
        "Gradient",
        "‖∇f‖² at w₀",
        lambda shown, axis: lines_of_first(shown.points, axis, GRADIENTS),
        guide=False,
    ),
)
COMPARED = (WIDTH, ComparedAxis("min_in_degree", "smallest in-degree"))
