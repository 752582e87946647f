"""What graphs do as their widths grow: ΔK, ‖H‖, pre-activations, smallest eigenvalues (Zhu, Liu & Belkin 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import plotly.graph_objects as go

from dashboard.charts.style import SEED_OPACITY, Style, graph_style, group_style, nth_style, signed
from dashboard.charts.sweep import add_guides, finish_sweep
from ntk_core.experiments.dag.result import DAGPoint, DAGRun
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.networks.graphs import OUTPUT
from ntk_core.runs import OUTCOME_WORDS, Mean, mean

Axis = Literal["in-degree", "width"]
AXIS_TITLES: dict[Axis, str] = {"in-degree": "smallest in-degree, realized", "width": "width m"}


@dataclass(frozen=True)
class Line:
    """One number per run of one graph and output.

    Attributes:
        of: the number; NaN where a run has none.
        converged_only: whether runs that did not reach the loss threshold are left out of means and exponents.
        fit: whether the exponent is shown.
    """

    style: Style
    graph: str
    output: str
    of: Callable[[DAGRun], float]
    converged_only: bool = False
    fit: bool = True

    def runs(self, point: DAGPoint) -> list[DAGRun]:
        """The runs with a number that can be drawn."""
        return [run for run in point.of(self.graph, self.output) if self.of(run) > 0]

    def counted(self, point: DAGPoint) -> list[DAGRun]:
        """Those that are part of the mean."""
        return [run for run in self.runs(point) if run.outcome == "converged" or not self.converged_only]


def series_of(points: Sequence[DAGPoint]) -> list[tuple[str, str]]:
    """(graph, output) that occur, in the order of the runs."""
    return list(dict.fromkeys((run.graph, run.output) for point in points for run in point.runs))


def axes_of(points: Sequence[DAGPoint]) -> list[Axis]:
    """The axes that make sense, the better one first: the in-degree, unless it stays the same in a graph."""
    ends: list[Axis] = ["in-degree", "width"]
    for graph, output in series_of(points):
        if len(points) > 1 and len({run.min_in_degree for point in points for run in point.of(graph, output)}) < 2:
            return ends[::-1]
    return ends


def change_lines(points: Sequence[DAGPoint]) -> list[Line]:
    """ΔK of every graph and output, of the converged runs."""
    return [Line(*each, lambda run: run.sup_change, converged_only=True) for each in _styled(points)]


def hessian_lines(points: Sequence[DAGPoint]) -> list[Line]:
    """‖H‖ at w₀ of every graph and output; empty where it was not asked for."""
    lines = [Line(*each, _hessian_norm) for each in _styled(points)]
    return [line for line in lines if any(line.runs(point) for point in points)]


def layer_lines(points: Sequence[DAGPoint], what: Literal["hessian_norm", "change"]) -> list[Line]:
    """‖H‖ or kernel change of the pre-activations of every group of the drawn graph; first layers have neither."""
    series = series_of(points)
    if not series:
        return []
    groups = list(dict.fromkeys(layer.group for point in points for run in point.runs for layer in run.layers))
    return [
        Line(_group_style(group, index), *series[0], _of_layer(group, what))
        for index, group in enumerate(groups)
        if any(_of_layer(group, what)(run) > 0 for point in points for run in point.of(*series[0]))
    ]


def eigenvalue_lines(points: Sequence[DAGPoint]) -> list[Line]:
    """λ_min(K) along the path, and in the ball, as a share of λ_min(K(w₀)), of the first series."""
    if not any(math.isfinite(run.ball_eigenvalue) for point in points for run in point.runs):
        return []
    series = series_of(points)[0]
    return [
        Line(
            nth_style(0, "along the path"),
            *series,
            _share(lambda run: min(run.smallest_eigenvalue)),
            fit=False,
        ),
        Line(
            nth_style(1, "in the ball, worst found"),
            *series,
            _share(lambda run: run.ball_eigenvalue),
            fit=False,
        ),
    ]


def gradient_lines(points: Sequence[DAGPoint]) -> list[Line]:
    """‖∇f‖² at w₀ and its lower bound, of the first series; empty beyond the assumptions of the bound."""
    if not any(math.isfinite(run.gradient_bound) for point in points for run in point.runs):
        return []
    series = series_of(points)[0]
    return [
        Line(nth_style(0, "‖∇f‖² at w₀"), *series, lambda run: run.gradient_norm, fit=False),
        Line(nth_style(1, "lower bound"), *series, lambda run: run.gradient_bound, fit=False),
    ]


def against(
    points: Sequence[DAGPoint],
    lines: Sequence[Line],
    widths: Sequence[int],
    axis: Axis,
    y_title: str,
    guide: bool = True,
) -> go.Figure:
    """Lines against width or realized in-degree, log–log: seeds faint, means with their band, fitted exponents.

    ``widths`` are those of the whole sweep, so that the axis of widths stays while points arrive. Without ``guide``
    the vertical axis is linear.
    """
    points = sorted(points, key=lambda point: point.width)
    figure, places = go.Figure(), set()
    for line in lines:
        places |= {round(place) for place, _ in _add(figure, points, line, axis, y_title)}
    means = _means(points, lines[0], axis) if lines else []
    shown = sorted({*widths, *(point.width for point in points)} if axis == "width" else places)
    if guide and means and shown:
        add_guides(figure, [(round(means[0][0]), means[0][1])], shown[-1], slopes=(-0.5,))
    values = [line.of(run) for line in lines for point in points for run in line.runs(point)]
    finish_sweep(figure, shown, AXIS_TITLES[axis], y_title, values)
    return figure if guide else figure.update_yaxes(type="linear", rangemode="tozero", dtick=None)


def fitted(points: Sequence[DAGPoint], line: Line, axis: Axis) -> PowerLaw | None:
    """The power law through every run that counts."""
    runs = [(point, run) for point in points for run in line.counted(point)]
    return fit_power_law([_place(point, run, axis) for point, run in runs], [line.of(run) for _, run in runs])


def rows(points: Sequence[DAGPoint]) -> list[dict[str, object]]:
    """One row per width, graph and output: what the mean lines show."""
    found = []
    for point in sorted(points, key=lambda point: point.width):
        for change, norm in zip(change_lines(points), _all_hessian_lines(points), strict=True):
            runs, done = point.of(change.graph, change.output), change.counted(point)
            average, hessian = mean([run.sup_change for run in done]), mean([norm.of(run) for run in norm.runs(point)])
            found.append(
                {
                    "width m": point.width,
                    "graph and output": change.style.title,
                    "smallest in-degree": mean([run.min_in_degree for run in runs]).value,
                    "largest in-degree": mean([run.max_in_degree for run in runs]).value,
                    "mean ΔK": average.value,
                    "standard error of ΔK": average.standard_error,
                    "mean ‖H‖": hessian.value,
                    "standard error of ‖H‖": hessian.standard_error,
                    "converged runs": len(done),
                    "all runs": len(runs),
                }
            )
    return found


def takeaway(points: Sequence[DAGPoint], lines: Sequence[Line], axis: Axis, what: str) -> str:
    """What a figure says, one sentence per line, for those who do not see it."""
    sentences = []
    for line in lines:
        law, means = fitted(points, line, axis), _means(points, line, axis)
        if not means:
            sentences.append(f"{line.style.title}: no usable run.")
            continue
        ends = f"from {means[0][1].value:.2g} to {means[-1][1].value:.2g}"
        slope = f", fitted exponent {signed(law.exponent)} ± {law.interval:.2f}" if law and line.fit else ""
        sentences.append(f"{line.style.title}: {ends}{slope}.")
    return f"{what} against {AXIS_TITLES[axis]}. " + " ".join(sentences)


def caption(points: Sequence[DAGPoint], lines: Sequence[Line]) -> list[str]:
    """Which runs are open markers, and why."""
    found = []
    for line in lines:
        for outcome, words in OUTCOME_WORDS.items():
            listed = [
                f"m = {point.width:,} ({len(bad)} of {len(point.of(line.graph, line.output))})"
                for point in points
                if (bad := [run for run in point.of(line.graph, line.output) if run.outcome == outcome])
            ]
            if outcome != "converged" and line.converged_only and listed:
                found.append(f"Open markers: {line.style.title} {words} at {', '.join(listed)}.")
    return found


def _styled(points: Sequence[DAGPoint]) -> list[tuple[Style, str, str]]:
    """A style, graph and output each."""
    return [(graph_style(graph, output), graph, output) for graph, output in series_of(points)]


def _group_style(name: str, index: int) -> Style:
    return replace(group_style(name, index), title="outputs") if name == OUTPUT else group_style(name, index)


def _hessian_norm(run: DAGRun) -> float:
    return run.hessian_norm if run.hessian_converged else math.nan


def _all_hessian_lines(points: Sequence[DAGPoint]) -> list[Line]:
    return [Line(*each, _hessian_norm) for each in _styled(points)]


def _of_layer(group: str, what: str) -> Callable[[DAGRun], float]:
    return lambda run: next((getattr(layer, what) for layer in run.layers if layer.group == group), math.nan)


def _share(of: Callable[[DAGRun], float]) -> Callable[[DAGRun], float]:
    return lambda run: of(run) / run.smallest_eigenvalue[0] if run.smallest_eigenvalue[0] > 0 else math.nan


def _place(point: DAGPoint, run: DAGRun, axis: Axis) -> float:
    return run.min_in_degree if axis == "in-degree" else point.width


def _means(points: Sequence[DAGPoint], line: Line, axis: Axis) -> list[tuple[float, Mean]]:
    """(mean place, mean) of every point with runs that count."""
    return [
        (mean([_place(point, run, axis) for run in runs]).value, mean([line.of(run) for run in runs]))
        for point in sorted(points, key=lambda point: point.width)
        if (runs := line.counted(point))
    ]


def _add(
    figure: go.Figure, points: Sequence[DAGPoint], line: Line, axis: Axis, y_title: str
) -> list[tuple[float, Mean]]:
    style, means = line.style, _means(points, line, axis)
    around = [(x, a.value, a.standard_error) for x, a in means if math.isfinite(a.standard_error)]
    if around:
        upper = [(x, value + error) for x, value, error in around]
        lower = [(x, max(value - error, 1e-3 * value)) for x, value, error in around]
        figure.add_scatter(
            x=[x for x, _ in upper + lower[::-1]],
            y=[y for _, y in upper + lower[::-1]],
            fill="toself",
            fillcolor=style.band,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            legendgroup=style.title,
            showlegend=False,
            name=f"{style.title}, ± standard error",
        )
    runs = [(point, run, run in line.counted(point)) for point in points for run in line.runs(point)]
    figure.add_scatter(
        x=[_place(point, run, axis) for point, run, _ in runs],
        y=[line.of(run) for _, run, _ in runs],
        mode="markers",
        marker={
            "color": style.color,
            "size": 7,
            "opacity": [SEED_OPACITY if counts else 0.9 for _, _, counts in runs],
            "symbol": [style.symbol if counts else style.symbol + "-open" for _, _, counts in runs],
        },
        customdata=[[p.width, run.seed, run.min_in_degree, OUTCOME_WORDS[run.outcome]] for p, run, _ in runs],
        hovertemplate=f"{style.title}, seed %{{customdata[1]}}<br>m = %{{customdata[0]:,}}, smallest in-degree "
        f"%{{customdata[2]:,}}<br>{y_title} %{{y:.3g}}<br>%{{customdata[3]}}<extra></extra>",
        legendgroup=style.title,
        showlegend=not means,
        name=f"{style.title}, single seeds",
    )
    if means:
        law = fitted(points, line, axis) if line.fit else None
        exponent = f" ∝ m<sup>{signed(law.exponent)} ± {law.interval:.2f}</sup>" if law else ""
        figure.add_scatter(
            x=[x for x, _ in means],
            y=[average.value for _, average in means],
            mode="lines+markers",
            line={"color": style.color, "dash": style.dash, "width": 2.5},
            marker={"color": style.color, "symbol": style.symbol, "size": 9},
            customdata=[[average.count] for _, average in means],
            hovertemplate=f"{style.title}<br>%{{x:,.4g}}<br>{y_title} %{{y:.3g}}<br>mean of %{{customdata[0]}} seeds"
            "<extra></extra>",
            legendgroup=style.title,
            name=style.title + exponent,
        )
    return means


@dataclass(frozen=True)
class Picture:
    """A figure with its name, what it says in words, and its caption."""

    name: str
    figure: go.Figure
    words: str
    caption: list[str]


def pictures(points: Sequence[DAGPoint], widths: Sequence[int], axis: Axis) -> list[Picture]:
    """Every figure that the points have something for, in order."""
    wanted: list[tuple[str, str, list[Line], bool]] = [
        ("change", "kernel change ΔK", change_lines(points), True),
        ("hessian", "Hessian norm ‖H‖ at w₀", hessian_lines(points), True),
        ("layer_hessian", "‖H‖ of one pre-activation", layer_lines(points, "hessian_norm"), True),
        ("layer_change", "kernel change of pre-activations", layer_lines(points, "change"), True),
        ("eigenvalue", "λ<sub>min</sub>(K) / λ<sub>min</sub>(K(w₀))", eigenvalue_lines(points), False),
        ("gradient", "‖∇f‖² at w₀", gradient_lines(points), False),
    ]
    return [
        Picture(
            name,
            against(points, lines, widths, axis, title, guide),
            takeaway(points, lines, axis, title),
            caption(points, lines),
        )
        for name, title, lines, guide in wanted
        if lines
    ]
