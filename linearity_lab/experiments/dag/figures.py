"""Figures of graphs against their widths: ΔK, ‖H‖, pre-activations, smallest eigenvalues (Zhu, Liu & Belkin 2022)."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from linearity_lab.charts.chart import WIDTH, Chart, ComparedAxis, occurring
from linearity_lab.charts.lines import Axis as SweepAxis
from linearity_lab.charts.lines import Line, trained_dot
from linearity_lab.charts.style import Style, graph_style, group_style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.dag.point import DAGPoint, DAGResult, DAGRun
from linearity_lab.runs import mean
from ntk_core.networks.graphs import OUTPUT

Axis = Literal["in-degree", "width"]
AXIS_TITLES: dict[Axis, str] = {"in-degree": "smallest in-degree, realized", "width": "width m"}
Of = Callable[[DAGRun], float]
YOURS = "your graph"


def series_of(points: Sequence[DAGPoint]) -> list[tuple[str, str]]:
    """Return the (graph, output) that occur."""
    return occurring(points, "graph", "output")


def axes_of(points: Sequence[DAGPoint]) -> list[Axis]:
    """Return the meaningful axes, the better one first: the in-degree, unless it is constant in a graph."""
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
    """Return one number per run of one graph and output; runs without a positive number are only named."""
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
    degrees: dict[float, dict[str, object]] = {
        point.width: {
            "smallest in-degree": mean(
                [run.min_in_degree for run in point.of(graph, output)]
            ).value,
            "largest in-degree": mean([run.max_in_degree for run in point.of(graph, output)]).value,
        }
        for point in points
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


# Of the first series: λ_min(K) as a share of λ_min(K(w₀)); a bound that is NaN beyond its assumptions.
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
    name: str = "",
) -> Chart:
    """Lines against width or realized in-degree, log–log; without ``guide`` the vertical axis is linear.

    ``widths`` are those of the whole sweep, so that the axis of widths stays while points arrive.
    """
    swept = SweepAxis(
        AXIS_TITLES[axis],
        "m" if axis == "width" else "k",
        values=widths if axis == "width" else (),
        symbol="smallest in-degree" if axis == "in-degree" else "",
        column=AXIS_TITLES["width"],
    )
    slopes = (-0.5,) if guide else ()
    return sweep(lines, swept, title, slopes=slopes, is_log=guide, of="graph and output", name=name)


def charts(
    points: Sequence[DAGPoint], widths: Sequence[int], axis: Axis, drawn: str = YOURS
) -> list[Chart]:
    """Draw every figure with data, in order."""
    wanted: list[tuple[str, str, Sequence[Line], bool]] = [
        ("change", "kernel change ΔK", list(change_lines(points, axis, drawn).values()), True),
        (
            "hessian",
            "Hessian norm ‖H‖ at w₀",
            list(hessian_lines(points, axis, drawn).values()),
            True,
        ),
        (
            "layer_hessian",
            "‖H‖ of one pre-activation",
            layer_lines(points, axis, "hessian_norm"),
            True,
        ),
        (
            "layer_change",
            "kernel change of pre-activations",
            layer_lines(points, axis, "change"),
            True,
        ),
        (
            "eigenvalue",
            "λ<sub>min</sub>(K) / λ<sub>min</sub>(K(w₀))",
            lines_of_first(points, axis, EIGENVALUES),
            False,
        ),
        ("gradient", "‖∇f‖² at w₀", lines_of_first(points, axis, GRADIENTS), False),
    ]
    return [
        against(lines, widths, axis, title, guide=guide, name=name)
        for name, title, lines, guide in wanted
        if lines
    ]


def first_chart(result: DAGResult) -> Chart:
    """Draw ΔK against the in-degree or the width."""
    return charts(result.points, result.spec.widths, axes_of(result.points)[0])[0]


COMPARED = (WIDTH, ComparedAxis("min_in_degree", "smallest in-degree"))
