"""A linearity report on other pages: its card, its figure, and how reports are compared."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_LINE, add_level, finish, log_ticks
from linearity_lab.charts.chart import Chart, ComparedAxis
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.style import GUIDE_COLOR, nth_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.experiments.linearity_report.point import (
    COLUMNS,
    LinearityReportPoint,
    LinearityReportResult,
    LinearityReportSpec,
)
from linearity_lab.runs.columns import csv_rows, runs_of
from linearity_lab.runs.store import read_line
from ntk_core.linearity import LINEAR, PARTLY
from ntk_core.numbers import percent

Report = Shown[LinearityReportSpec, LinearityReportPoint]
# Tests recompute them by examples/two_checkpoints.py.
EXAMPLES = Path(__file__).with_name("examples.jsonl")
_STYLE = nth_style(0, "parameters", "measure")
LEAST = 1e-4  # smaller numbers are drawn here: a linear model has 0


@functools.cache
def examples() -> tuple[LinearityReportResult, ...]:
    """Return the two shipped reports."""
    found = [read_line(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    return tuple(each for each in found if isinstance(each, LinearityReportResult))


def card() -> str:
    """Draw output error against second-order share of the examples, with the diagonal."""
    marks = [at for each in examples() for at in _drawable(each.points[0])]
    equal = Stroke([(end, end) for end in _ends(marks)], GUIDE_COLOR, "dash")
    return thumbnail([equal, Stroke(marks, _STYLE.color, dots=True)], log_x=True, log_y=True)


def _drawable(point: LinearityReportPoint) -> list[tuple[float, float]]:
    pair = point.second_order_share, point.output_error
    return [(max(pair[0], LEAST), max(pair[1], LEAST))] if all(map(math.isfinite, pair)) else []


def _ends(marks: Sequence[tuple[float, float]]) -> list[float]:
    values = [value for pair in marks for value in pair]
    return [min([LINEAR / 10, *values]), max([1.0, *values])]


def name_of(result: LinearityReportResult | Report) -> str:
    """Return model and checkpoints of a report."""
    spec = result.spec
    later = " + ".join([spec.after, *spec.others])
    return f"{spec.file}:{spec.function}, {spec.before} → {later}"


def errors(reports: Mapping[str, LinearityReportResult | Report], chosen: str) -> Chart:
    """Output error against second-order share, a mark for each report."""
    figure = go.Figure()
    points = {run: report.points[0] for run, report in reports.items()}
    pairs = {run: (each.second_order_share, each.output_error) for run, each in points.items()}
    drawn = {run: at for run, each in points.items() for at in _drawable(each)}
    ends = _ends(list(drawn.values()))
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line=GUIDE_LINE, name="equal", hoverinfo="skip"
    )
    for run, (x, y) in drawn.items():
        style = nth_style(0, name_of(reports[run]), "measure")
        symbol = style.symbol if run == chosen else f"{style.symbol}-open"
        marker = {"color": style.color, "symbol": symbol, "size": 13 if run == chosen else 10}
        name = name_of(reports[run])
        figure.add_scatter(x=[x], y=[y], mode="markers", name=name, marker=marker, showlegend=False)
    for level, words in ((LINEAR, "linear below"), (PARTLY, "not linear above")):
        add_level(figure, level, words, above=level == PARTLY)
    figure.update_xaxes(title="second-order share", **log_ticks(ends))
    figure.update_yaxes(title="output error", **log_ticks(ends))
    rows = [
        {"report": name_of(reports[run]), "second-order share": second, "output error": error}
        for run, (second, error) in pairs.items()
    ]
    caption = (
        [f"{len(pairs) - len(drawn)} reports without a finite error are not drawn."]
        if len(drawn) < len(pairs)
        else []
    )
    if any(value < LEAST for run in drawn for value in pairs[run]):
        caption.append(f"Numbers below {percent(LEAST)} are drawn at {percent(LEAST)}.")
    verdict = points[chosen].verdict
    words = f"Output error against second-order share of {len(points)} reports. {verdict}"
    return Chart(finish(figure), words, rows, caption, name="errors", finding=verdict)


def layers(shown: Report) -> Chart:
    """Draw each parameter's share of the outputs' change against its share of the kernel."""
    (point,) = shown.points
    x, y = (
        [getattr(layer, name) for layer in point.layers]
        for name in ("kernel_share", "output_share")
    )
    top = max(*x, *y, 0.0)
    figure = go.Figure()
    figure.add_scatter(
        x=[0, top], y=[0, top], mode="lines", line=GUIDE_LINE, name="equal shares", hoverinfo="skip"
    )
    names = [layer.name for layer in point.layers]
    marker = {"color": _STYLE.color, "symbol": _STYLE.symbol, "size": 9}
    figure.add_scatter(x=x, y=y, mode="markers", name="parameters", text=names, marker=marker)
    figure.update_xaxes(title="share of tr K₀", tickformat=".0%")
    figure.update_yaxes(title="share of J₀δ", tickformat=".0%")
    largest = max(point.layers, key=lambda layer: abs(layer.output_share))
    words = (
        f"{largest.name} carries the largest share of the outputs' change, "
        f"{percent(largest.output_share)}."
    )
    return Chart(
        finish(figure),
        words,
        csv_rows(COLUMNS, runs_of(shown.points)),
        name="layers",
        heading="Parameters",
    )


FIGURES = (
    Figure("errors", "Output error", draw=lambda shown: errors({"": shown}, "")),
    Figure("layers", "Parameters", draw=layers),
)
COMPARED = (ComparedAxis("num_params", "numbers of the parameter", "p"),)
