"""Quantities of runs along training: one curve per run, step 0 left out where the axis of steps is logarithmic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts.axes import drawn_values, finish, log_ticks
from dashboard.charts.style import GUIDE_COLOR, OUTCOME_SYMBOLS, SEED_OPACITY, Style

TimeAxis = Literal["step", "time"]
AXIS_TITLES: dict[TimeAxis, str] = {"step": "step", "time": "time = learning rate × step"}
MARK = 9


@dataclass(frozen=True)
class Curve:
    """One quantity of one run; without records an entry of the legend alone.

    Attributes:
        what: the quantity, in the hover.
        seed: in the hover; None where runs have none.
        row: of the figure, from 1.
        marks: size of the markers at all records.
        marked: the one record with a marker, where not all have one.
        symbol: of that marker; by default that of the style.
        in_legend: whether the first curve of its title has an entry there.
        unit: of x, in the hover.
        is_first: whether it is the first of the seeds, or the chosen one, which alone is drawn strong.
    """

    style: Style
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    what: str = ""
    seed: int | None = None
    row: int = 1
    width: float = 2.5
    opacity: float = 1.0
    marks: float = 0
    marked: int | None = None
    symbol: str = ""
    in_legend: bool = True
    unit: str = "step"
    is_first: bool = True


@dataclass(frozen=True)
class Row:
    """One row of a figure.

    Attributes:
        scale: of the vertical axis, logarithmic, linear from 0 on, or linear as the values are.
        share: of the height.
        ceiling: end of the axis, where some curves leave it.
    """

    title: str
    scale: Literal["log", "from 0", "linear"] = "log"
    share: float = 1.0
    ceiling: float = math.inf


def times(steps: Sequence[int], rate: float, axis: TimeAxis) -> list[float]:
    """The records of a run by step, or by learning rate × step."""
    return [step * (rate if axis == "time" else 1) for step in steps]


def dash_key(title: str, dash: str, width: float = 2.5) -> Curve:
    """An entry of the legend that says what a dash means, whatever the color."""
    return Curve(Style(GUIDE_COLOR, dash, "", title), width=width)


def along_training(
    curves: Sequence[Curve], rows: Sequence[Row], x_title: str = "step", *, log_x: bool = True
) -> go.Figure:
    """All curves, one above the other in rows that share the axis of steps or times."""
    shares = [row.share for row in rows]
    figure = make_subplots(rows=len(rows), cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=shares)
    named: set[str] = set()
    for curve in curves:
        entry = curve.in_legend and curve.style.title not in named
        if entry:
            named.add(curve.style.title)
        if entry and curve.marked is not None:  # its marks have no size in the legend
            _add(
                figure,
                Curve(curve.style, marks=MARK, width=curve.width, opacity=curve.opacity),
                rows,
                log_x=log_x,
                entry=True,
            )
            entry = False
        _add(figure, curve, rows, log_x=log_x, entry=entry)
    if log_x:
        figure.update_xaxes(type="log", dtick=1, tickformat=",~g")
    figure.update_xaxes(title=x_title, row=len(rows), col=1)
    for index, row in enumerate(rows, start=1):
        figure.update_yaxes(title=row.title, row=index, col=1)
        if row.scale == "log":
            values = [value for value in drawn_values(figure, index) if 0 < value <= row.ceiling]
            figure.update_yaxes(**log_ticks(values), row=index, col=1)
            if values and row.ceiling < math.inf:
                ends = [math.log10(min(values) / 2), math.log10(row.ceiling)]
                figure.update_yaxes(range=ends, row=index, col=1)
        elif row.scale == "from 0":
            figure.update_yaxes(rangemode="tozero", row=index, col=1)
    return finish(figure).update_layout(meta={"cursor": x_title})


def _add(figure: go.Figure, curve: Curve, rows: Sequence[Row], *, log_x: bool, entry: bool) -> None:
    style, log_y = curve.style, rows[curve.row - 1].scale == "log"
    share = 1 if curve.is_first else 0.5
    kept = [index for index, x in enumerate(curve.x) if x > 0 or not log_x]
    marker: dict[str, Any] = {"color": style.color, "symbol": style.symbol or "circle", "size": curve.marks * share}
    if curve.marked is not None:
        sizes = [MARK if index == curve.marked % max(len(curve.x), 1) else 0 for index in kept]
        marker |= {"symbol": curve.symbol or style.symbol, "size": sizes, "opacity": 1}
        if curve.symbol in OUTCOME_SYMBOLS.values():  # nothing but lines, which would be one pixel wide
            marker["line"] = {"width": 2}
    seed = "" if curve.seed is None else f", seed {curve.seed}"
    figure.add_scatter(
        x=[curve.x[index] for index in kept] if kept else [None],
        y=[_drawable(curve.y[index], log_y) for index in kept] if kept else [None],
        mode="lines+markers" if curve.marks or curve.marked is not None else "lines",
        line={"color": style.color, "dash": style.dash, "width": curve.width * share},
        marker=marker,
        opacity=curve.opacity if curve.is_first else curve.opacity * SEED_OPACITY,
        name=style.title,
        legendgroup=style.title,
        meta={"seed": curve.seed},
        showlegend=entry,
        hovertemplate=f"{style.title}{seed}<br>{curve.unit} %{{x:,.7~g}}<br>{curve.what} %{{y:.3g}}<extra></extra>",
        row=curve.row,
        col=1,
    )


def _drawable(value: float, log_y: bool) -> float | None:
    return value if math.isfinite(value) and (value > 0 or not log_y) else None
