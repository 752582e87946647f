"""Richness ρ from lazy to rich.

Sweeps over width at every ρ, exponents against ρ, and the coordinate check.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import plotly.graph_objects as go

from linearity_lab.charts.axes import (
    GUIDE_LINE,
    MEANS,
    beginning,
    finish,
    given_runs,
    is_marked,
    plain_symbols,
)
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import Style, nth_style, output_title
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.lazy.point import COLUMNS, START_TITLES, LazyPoint
from linearity_lab.experiments.lazy.sweep_figures import (
    AXES,
    CHANGE,
    CURVATURE,
    HIDDEN,
    RunNumber,
    line,
    measure_style,
)
from linearity_lab.runs.columns import table_rows
from ntk_core.fits import PowerLaw, exponent_words
from ntk_core.markup import JSON
from ntk_core.numbers import signed

# Expected exponents in m, as (at ρ = 0, at ρ = 1/2), see docs/math/richness.md.
PREDICTED = {"2ρ − 1": (-1.0, 0.0), "ρ − 1/2": (-0.5, 0.0)}
# 8ρ in the order of assigned styles; the four in presets differ in color.
_STYLE_ORDER = (
    0,
    1,
    2,
    4,
    3,
)
FAINT = 0.4  # opacity of seeds and bands at ρ that are not shown
_EXPECTED = ((CHANGE, "2ρ − 1"), (CURVATURE, "ρ − 1/2"), (HIDDEN, "ρ − 1/2"))


def richnesses(points: Sequence[LazyPoint]) -> list[float]:
    """Return all ρ, ascending."""
    return sorted({point.richness for point in points})


def against_width(
    points: Sequence[LazyPoint],
    output: str,
    start: str,
    measure: RunNumber,
    shown: float | None = None,
) -> Chart:
    """Draw a measure against width, a line for each ρ, log–log; the ``shown`` one is thick."""
    lines = [
        line(points, "width", output, start, measure, richness_style(rho), rho)
        for rho in richnesses(points)
    ]
    chart = sweep(
        lines,
        AXES["width"],
        measure.title,
        measure.symbol,
        heading="Along the dial",
        caption=[f"{_where(output, start)}."],
        rows=table_rows(COLUMNS, points),
    )
    if shown is not None:
        strong = (None, "", _title(shown))
        for trace in chart.figure.data:
            if is_marked(trace, MEANS):  # thin or thick: a pale line would be too weak
                trace.line.width = 4 if trace.legendgroup in strong else 1.5
            elif trace.legendgroup not in strong and "text" not in trace.mode:
                # Names stay readable.
                trace.opacity = FAINT
    return chart


def richness_style(richness: float, title: str = "") -> Style:
    """Return the style of a position on the dial."""
    return nth_style(_STYLE_ORDER.index(round(8 * richness)), title or _title(richness), "richness")


def law(
    points: Sequence[LazyPoint], output: str, start: str, measure: RunNumber, richness: float
) -> PowerLaw | None:
    """Fit the power law in m at one ρ."""
    return line(points, "width", output, start, measure, richness=richness).law


def exponents(
    points: Sequence[LazyPoint], output: str, start: str, shown: float | None = None
) -> Chart:
    """Draw exponents in m against ρ, with predictions.

    They are those of kernel change, curvature and feature change.

    A vertical line marks the ``shown`` ρ, whose exponents the caption names.
    """
    figure = go.Figure()
    table: list[JSON] = []
    sentences = ["Exponents in m against ρ."]
    fits: list[PowerLaw] = []
    for measure, words in _EXPECTED:
        found: list[tuple[float, PowerLaw]] = []
        for rho in richnesses(points):
            fitted = law(points, output, start, measure, rho)
            if fitted is not None:
                found.append((rho, fitted))
        fits += [each for _, each in found]
        _add_exponents(figure, measure, found)
        table += _exponent_rows(measure, words, found)
        known = ", ".join(f"{exponent_words(each)} at ρ = {rho:g}" for rho, each in found)
        beginning_of = beginning(plain_symbols(measure.title))
        sentences.append(f"{beginning_of}: {known or 'none yet'}; expected {words}.")
    for (words, ends), dash in zip(PREDICTED.items(), ("dash", "dot"), strict=True):
        guide = {**GUIDE_LINE, "dash": dash}
        figure.add_scatter(
            x=[0, 0.5], y=list(ends), mode="lines", line=guide, name=f"expected {words}"
        )
    if shown is not None:
        figure.add_vline(shown, line={**GUIDE_LINE, "dash": "solid"})
    figure.update_xaxes(title="richness ρ", range=[-0.03, 0.53])
    figure.update_yaxes(title="exponent in m")
    at_shown = [
        f"{row['of']} {signed(row['exponent in m'])}" for row in table if row["richness ρ"] == shown
    ]
    caption = [f"{_where(output, start)}."]
    if at_shown:
        caption.append(f"At ρ = {shown:g}: {', '.join(at_shown)}.")
    caption.append("Bars are 95% intervals; where there are too few runs for one, there is no bar.")
    return Chart(
        finish(figure),
        " ".join(sentences),
        table,
        caption,
        heading="Exponents against ρ",
        given=given_runs(fits),
    )


def _add_exponents(
    figure: go.Figure, measure: RunNumber, found: Sequence[tuple[float, PowerLaw]]
) -> None:
    """Add the exponents of one measure with their intervals."""
    look = measure_style(measure)
    bars = [each.interval if math.isfinite(each.interval) else 0 for _, each in found]
    figure.add_scatter(
        x=[rho for rho, _ in found],
        y=[each.exponent for _, each in found],
        error_y={"array": bars},
        mode="markers",
        marker={"color": look.color, "symbol": look.symbol, "size": 10},
        name=look.title,
        hovertemplate="ρ = %{x:g}<br>exponent %{y:.2f}<extra>" + look.title + "</extra>",
    )


def _exponent_rows(
    measure: RunNumber, words: str, found: Sequence[tuple[float, PowerLaw]]
) -> list[JSON]:
    """Return one row of the table per ρ."""
    rows: list[JSON] = []
    for rho, each in found:
        rows.append(
            {
                "richness ρ": rho,
                "of": plain_symbols(measure.title),
                "exponent in m": each.exponent,
                "half of its 95% interval": each.interval,
                "slope of the last widths": math.nan if each.last is None else each.last.slope,
                "expected": _at(words, rho),
            }
        )
    return rows


def coordinates(points: Sequence[LazyPoint], output: str, start: str, richness: float) -> Chart:
    """Draw |Δh| of each hidden layer against width at one ρ: the coordinate check."""
    count = max((len(run.hidden_change) for point in points for run in point.runs), default=0)
    lines = [
        line(
            points,
            "width",
            output,
            start,
            of_layer(index),
            nth_style(index, f"hidden layer {index + 1}", "layer"),
            richness,
        )
        for index in range(count)
    ]
    return sweep(
        lines,
        AXES["width"],
        HIDDEN.title,
        HIDDEN.symbol,
        of="layer",
        heading="Coordinate check",
        caption=[
            f"{_where(output, start)}, ρ = {richness:g}; expected exponent "
            f"{signed(richness - 0.5)}."
        ],
    )


def of_layer(index: int) -> RunNumber:
    return replace(HIDDEN, of=lambda run: run.hidden_change[index])


def _at(words: str, richness: float) -> float:
    first, last = PREDICTED[words]
    return first + (last - first) * 2 * richness


def _title(richness: float) -> str:
    return f"ρ = {richness:g}"


def _where(output: str, start: str) -> str:
    return f"{beginning(output_title(output))}, {START_TITLES[start]}, at scale α = 1"
