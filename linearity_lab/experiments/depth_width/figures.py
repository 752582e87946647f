"""Depth against width.

The scatter of K(x, x), ΔK and ‖H‖ / ‖∇f‖² against the depth and against β = Σ 1/m.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go

from linearity_lab.charts.axes import (
    GUIDE_LINE,
    beginning,
    drawn_values,
    log_ticks,
    plain_symbols,
)
from linearity_lab.charts.chart import Chart, ComparedAxis, leading
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.labels import LEGEND_HEIGHTS, spread_out
from linearity_lab.charts.lines import Axis, Dot, Line, RunNumber
from linearity_lab.charts.style import Style, width_style
from linearity_lab.charts.sweep import line_sentences, sweep
from linearity_lab.experiments.depth_width.point import (
    COLUMNS,
    PAIR,
    DepthRun,
    DepthWidthPoint,
    DepthWidthSpec,
)
from linearity_lab.experiments.depth_width.random_kernels import MOST_OF_ONE, limit_moment
from linearity_lab.runs.columns import table_rows
from ntk_core.networks.choices import almost_everywhere
from ntk_core.numbers import number, percent, width_label

Runs = Shown[DepthWidthSpec, DepthWidthPoint]

Of = Callable[[DepthWidthPoint], float]
DEPTH = Axis("depth L", "L")
BETA = Axis("β = Σ 1/m = L/m", "β")
GUIDE_POINTS = 60
RING: dict[str, object] = {
    "size": 16,
    "symbol": "circle-open",
    "color": GUIDE_LINE["color"],
    "line": {"width": 1.5},
}


CHANGE = RunNumber[DepthRun]("kernel change ΔK", "ΔK", lambda run: run.sup_change)
CURVATURE = RunNumber[DepthRun](
    "curvature ‖H‖ / ‖∇f‖² at w₀",
    "‖H‖ / ‖∇f‖<sup>2</sup>",
    lambda run: run.curvature,
    before_training=True,
)


def measured(points: Sequence[DepthWidthPoint]) -> list[RunNumber[DepthRun]]:
    """Return the measures of trained networks; ‖H‖ is optional."""
    runs = [run for point in points for run in point.runs]
    return [measure for measure in (CHANGE, CURVATURE) if measure.has(runs)]


def against_depth(points: Sequence[DepthWidthPoint]) -> Chart:
    """Draw CV² of K(x, x) against depth, a line for each width, with bootstrap intervals."""
    chart = _random(points, DEPTH, lambda point: point.cv_squared, "CV² of K(x, x)", "CV²")
    _add_intervals(chart.figure, points, lambda point: point.depth, lambda cv_squared: cv_squared)
    chart.figure.update_yaxes(range=None)  # bars reach beyond the means
    return chart


def against_beta(points: Sequence[DepthWidthPoint]) -> Chart:
    """Draw ln(E[K²] / E[K]²) against β.

    Each width has a line; the derived limit of infinite depth and width is beside them.
    """
    moment = "ln(E[K²] / E[K]²)"
    chart = _random(points, BETA, lambda point: point.log_moment, moment, moment)
    _add_intervals(
        chart.figure,
        points,
        lambda point: point.beta,
        lambda cv_squared: float(np.log1p(cv_squared)),
    )
    betas = sorted(point.beta for point in points)
    if betas and betas[-1] > betas[0]:
        along = np.geomspace(betas[0], betas[-1], GUIDE_POINTS)
        expected = [float(np.log(limit_moment(beta))) for beta in along]
        chart.figure.add_scatter(
            x=along,
            y=expected,
            mode="lines",
            line=GUIDE_LINE,
            hoverinfo="skip",
            name="L, m → ∞ at β (derived)",
            showlegend=True,
        )
        one_row, two_rows = LEGEND_HEIGHTS
        height = chart.figure.layout.height + two_rows - one_row
        chart.figure.update_layout(height=height, legend_maxheight=two_rows)
    chart.figure.update_xaxes(**log_ticks(betas))
    chart.figure.update_yaxes(**log_ticks(drawn_values(chart.figure), 100), range=None)
    return chart


def _random(
    points: Sequence[DepthWidthPoint], axis: Axis, of: Of, title: str, symbol: str
) -> Chart:
    heading = "How random the kernel is" if axis is DEPTH else "Against depth over width"
    rows = table_rows(PAIR, [point.model_copy(update={"runs": ()}) for point in points])
    reliable = [point for point in points if not _is_ringed(point)]
    sentences = line_sentences(lines(reliable, axis, of), axis)
    left_out = " Ringed values are left out." if len(reliable) < len(points) else ""
    chart = sweep(
        lines(points, axis, of),
        axis,
        title,
        symbol,
        first=_first(points),
        heading=heading,
        caption=_captions(points),
        rows=rows,
    )
    if not sentences:
        return chart
    takeaway = f"{chart.title}. {' '.join(sentences)}{left_out}"
    drawn = lines(points, axis, of)
    visible = {plain_symbols(drawn[at].style.title) for at in _first(points)}
    shown = [each for each in sentences if each.partition(":")[0] in visible]
    return replace(chart, finding=leading(shown or sentences), takeaway=takeaway)


def _is_ringed(point: DepthWidthPoint) -> bool:
    """Whether a single network dominates the moment, so that its value is unreliable."""
    return point.largest_share > MOST_OF_ONE


def trained(points: Sequence[DepthWidthPoint], measure: RunNumber[DepthRun]) -> Chart:
    """Draw a measure of trained networks against β, a line for each width."""
    shown = [point for point in points if measure.has(point.runs)]
    along_beta = []
    for style, own in _by_width(shown, points):
        dots: list[Dot] = []
        for point in own:
            words = f"L = {point.depth}, m = {point.width:,}"
            dots += measure.dots([(point.beta, run) for run in point.runs], words)
        along_beta.append(Line(style, dots))
    depth = max(point.depth for point in shown)
    width = max(point.width for point in shown)
    chart = sweep(
        along_beta,
        BETA,
        measure.title,
        measure.symbol,
        heading=beginning(measure.title),
        caption=[f"Measured up to depth {depth} and width {width:,}."],
        rows=table_rows(COLUMNS, shown),
    )
    chart.figure.update_xaxes(**log_ticks([point.beta for point in shown]))
    return chart


def lines(points: Sequence[DepthWidthPoint], axis: Axis, of: Of) -> list[Line]:
    """Draw a number of every pair along depth or β, a line for each width."""
    at: Of = (lambda point: point.depth) if axis is DEPTH else (lambda point: point.beta)
    return [
        Line(
            style,
            [Dot(at(point), of(point), point.seed, note=_note(point)) for point in own],
            fit=False,
        )
        for style, own in _by_width(points)
    ]


def _first(points: Sequence[DepthWidthPoint]) -> list[int]:
    return spread_out(len({point.width for point in points}))


def _by_width(
    points: Sequence[DepthWidthPoint], among: Sequence[DepthWidthPoint] = ()
) -> list[tuple[Style, list[DepthWidthPoint]]]:
    """Return the points of each width, ascending, in the color of that width ``among`` all."""
    widths = sorted({point.width for point in among or points})
    found = []
    for index, width in enumerate(widths):
        own = [point for point in points if point.width == width]
        if own:
            style = width_style(index, len(widths), f"m = {width_label(width)}")
            found.append((style, sorted(own, key=lambda point: point.depth)))
    return found


def _add_intervals(
    figure: go.Figure, points: Sequence[DepthWidthPoint], at: Of, scale: Callable[[float], float]
) -> None:
    """Draw bootstrap intervals, and open rings at points dominated by a single network."""
    for index, (style, own) in enumerate(_by_width(points)):
        visible = True if index in _first(points) else "legendonly"
        drawn = [
            (at(p), scale(p.cv_squared), scale(p.low), scale(p.high))
            for p in own
            if p.cv_squared > 0
        ]
        figure.add_scatter(
            x=[x for x, *_ in drawn],
            y=[value for _, value, _, _ in drawn],
            error_y={
                "array": [high - value for _, value, _, high in drawn],
                "arrayminus": [value - low for _, value, low, _ in drawn],
                "color": style.color,
                "thickness": 1.2,
                "width": 3,
            },
            mode="markers",
            marker={"size": 0.1, "color": style.color},
            hoverinfo="skip",
            showlegend=False,
            legendgroup=style.title,
            visible=visible,
            name=f"{style.title}, 95% bootstrap interval",
        )
        rings = [point for point in own if _is_ringed(point) and point.cv_squared > 0]
        if rings:
            figure.add_scatter(
                x=[at(point) for point in rings],
                y=[scale(point.cv_squared) for point in rings],
                mode="markers",
                marker=RING,
                hoverinfo="skip",
                showlegend=False,
                legendgroup=style.title,
                visible=visible,
                name=f"{style.title}, ringed",
            )
    if any(map(_is_ringed, points)):
        words = "ringed: one network decides, unreliable"
        figure.add_scatter(
            x=[None], y=[None], mode="markers", marker=RING, name=words, showlegend=True
        )


def _captions(points: Sequence[DepthWidthPoint]) -> list[str]:
    """Return the number of networks, and the points for which it is too small."""
    counted = " or ".join(f"{count:,}" for count in sorted({point.num_kernels for point in points}))
    sentences = [f"{counted} networks for each point; bars are 95% bootstrap intervals."]
    rings = sorted(((p.beta, p) for p in points if _is_ringed(p)), key=lambda pair: pair[0])
    if rings:
        pairs = ", ".join(f"L = {point.depth} at m = {point.width:,}" for _, point in rings)
        sentences.append(
            f"Ringed: one network has more than {percent(MOST_OF_ONE)} of Σ K² ({pairs}). The tail "
            "is heavier than the draws show; the interval is too short."
        )
    return sentences


def _note(point: DepthWidthPoint) -> str:
    return (
        f"L = {point.depth}, β = {number(point.beta, 3)}<br>largest network: "
        f"{percent(point.largest_share)} of Σ K²"
    )


COMPARED = (ComparedAxis("depth", "depth L", "L"), ComparedAxis("beta", "β", "β"))


def _trained(shown: Runs, measure: RunNumber[DepthRun]) -> Chart:
    """Draw a measure of trained networks.

    With ‖H‖, state what the Hessian of a ReLU network misses.
    """
    chart = trained(shown.points, measure)
    if CURVATURE not in measured(shown.points):
        return chart
    return replace(chart, caption=[*chart.caption, almost_everywhere(["relu"])])


FIGURES = (
    Figure("figure1", "How random the kernel is", draw=lambda shown: against_depth(shown.points)),
    Figure(
        "figure2",
        "Against depth over width",
        draw=lambda shown: against_beta(shown.points),
        is_main=True,
    ),
    Figure(
        "figure3",
        beginning(CHANGE.title),
        draw=lambda shown: _trained(shown, CHANGE),
        has_data=lambda shown: CHANGE in measured(shown.points),
    ),
    Figure(
        "figure4",
        beginning(CURVATURE.title),
        draw=lambda shown: _trained(shown, CURVATURE),
        has_data=lambda shown: CURVATURE in measured(shown.points),
    ),
)
