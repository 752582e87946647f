"""Quantities during training: one curve per run; a logarithmic axis of steps starts at step 1."""

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from linearity_lab.charts.axes import add_level, log_ticks, look, with_margin
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.labels import (
    ENDS_TOGETHER,
    MOST_CURVES,
    End,
    add_end_labels,
    hide,
    rows_of,
)
from linearity_lab.charts.style import GUIDE_COLOR, OUTCOME_SYMBOLS, SEED_OPACITY, Style
from ntk_core.markup import JSON
from ntk_core.numbers import number

TimeAxis = Literal["step", "time"]
AXIS_TITLES: dict[TimeAxis, str] = {"step": "step", "time": "time = learning rate × step"}
MARK = 9
# Height in pixels of each row, if there are several.
ROW_HEIGHT = 175
MOST_IN_PLACE = 3


@dataclass(frozen=True)
class Curve:
    """One quantity of one run; without records only a legend entry."""

    style: Style
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    what: str = ""  # name of the quantity in hovers
    seed: int | None = None  # seed in hovers; None for runs without seeds
    row: int = 1  # row of the figure, from 1
    width: float = 2.5
    marks: float = 0  # size of the markers at all records
    marked: int | None = None  # index of a record with a larger marker
    symbol: str = ""  # symbol of that marker, by default the style's
    in_legend: bool = True  # whether the first curve of its title has a legend entry
    unit: str = "step"  # unit of x in hovers
    is_first: bool = True  # whether it is the first or chosen seed, which is drawn strong
    group: str = ""  # curves that one click in the legend toggles; by default the title

    @property
    def in_legend_as(self) -> str:
        """Name of its legend group."""
        return self.group or self.style.title


@dataclass(frozen=True)
class Row:
    """One row of a figure."""

    title: str
    # Scale of the vertical axis: logarithmic, linear from 0, or linear.
    scale: Literal["log", "from 0", "linear"] = "log"
    share: float = 1.0  # share of the height
    ceiling: float = math.inf  # end of the axis if curves leave it
    threshold: float | None = None  # value marked by a line


def times(steps: Sequence[int], rate: float, axis: TimeAxis) -> list[float]:
    """Return the records of a run by step, or by learning rate × step."""
    return [step * (rate if axis == "time" else 1) for step in steps]


Run = TypeVar("Run")
Records = str | Callable[[Run], Sequence[object]]


def record_rows(
    runs: Iterable[Run],
    of: Callable[[Run], Mapping[str, object]],
    columns: Mapping[str, Records[Run]],
) -> list[dict[str, object]]:
    """Return one row per run and record.

    The columns of ``of(run)``, then the records of ``columns``.
    """
    rows = []
    for run in runs:
        found = [_records(run, each) for each in columns.values()]
        rows += [
            {**of(run), **dict(zip(columns, record, strict=True))}
            for record in zip(*found, strict=True)
        ]
    return rows


def _records(run: Run, of: Records[Run]) -> Sequence[Any]:
    return operator.attrgetter(of)(run) if isinstance(of, str) else of(run)


@dataclass(frozen=True)
class Quantity(Generic[Run]):
    """One quantity along several runs."""

    what: str  # its name in hovers
    of: Records[Run]  # path of attributes of a run to its records, or a function of the run
    # Row of the figure, shared by quantities with equal rows; None for the table only.
    row: Row | None = None
    column: str = ""  # its name in the table, by default ``what``
    style: Style | None = None  # style of its curves, by default the run's


def along_runs(
    runs: Sequence[Run],
    x: Records[Run],
    quantities: Sequence[Quantity[Run]],
    style: Callable[[Run], Style],
    names: Callable[[Run], Mapping[str, object]],
    *,
    x_title: str = "step",
    log_x: bool = True,
    num_strong: int = 1,
    takeaway: str = "",
    caption: Sequence[str] = (),
    name: str = "",
    heading: str = "Along training",
) -> Chart:
    """Draw quantities of all runs in rows, above a table with one row per run and record.

    Args:
        x: the recorded steps or times.
        names: columns of the table that name a run.
        num_strong: the first runs, which are drawn strong.
        takeaway: by default where each quantity ends.
    """
    rows = list(dict.fromkeys(each.row for each in quantities if each.row))
    curves = []
    for place, run in enumerate(runs):
        for quantity in quantities:
            if quantity.row is None:
                continue
            row = rows.index(quantity.row) + 1
            curve = Curve(
                quantity.style or style(run),
                _records(run, x),
                _records(run, quantity.of),
                quantity.what,
                getattr(run, "seed", None),
                row,
                in_legend=row == 1,
                is_first=place < num_strong,
            )
            curves.append(curve)
    figure = along_training(curves, rows, x_title, log_x=log_x)
    if len(rows) > MOST_IN_PLACE:
        figure.update_layout(height=ROW_HEIGHT * len(rows))
    for index, each in enumerate(rows, start=1):
        if each.threshold is not None:
            add_level(figure, each.threshold, f"threshold {each.threshold:g}", row=index)
    columns = {each.column or each.what: each.of for each in quantities}
    ends = []
    for quantity in quantities:
        if quantity.row:
            recorded = [_records(run, quantity.of) for run in runs]
            last = [number(float(records[-1])) for records in recorded if records]
            ends.append(f"{quantity.what} {', '.join(last)}")
    takeaway = takeaway or (f"At the end: {'; '.join(ends)}." if runs else "No run yet.")
    return Chart(
        figure, takeaway, record_rows(runs, names, {x_title: x, **columns}), caption, name, heading
    )


def dash_key(title: str, dash: str, width: float = 2.5) -> Curve:
    """Add a legend entry that explains a dash, regardless of color."""
    words = {"solid": "solid", "dash": "dashed", "dot": "dotted"}[dash]
    return Curve(Style(GUIDE_COLOR, dash, "", f"{title}: {words}"), width=width)


def along_training(
    curves: Sequence[Curve],
    rows: Sequence[Row],
    x_title: str = "step",
    *,
    log_x: bool = True,
    last: float = math.inf,
    first: Collection[str] | None = None,
) -> go.Figure:
    """Draw all curves in rows that share the axis of steps or times.

    In a figure of one row, the curves that reach its right end are named there, all
    others in the legend.

    Args:
        last: end of the horizontal axis, where some curves continue.
        first: initially visible groups, by default as many as allowed.
    """
    groups = list(dict.fromkeys(curve.in_legend_as for curve in curves if len(curve.x)))
    first = groups[:MOST_CURVES] if first is None else first
    traces = []
    for curve, entry in _with_entries(curves):
        log_y = rows[curve.row - 1].scale == "log"
        traces.append(_trace(curve, log_x=log_x, log_y=log_y, entry=entry))
    across = _places(curves, last, log_x=log_x)
    figure = go.Figure(traces, _layout(rows, traces, across, x_title, log_x=log_x))
    if len(rows) == 1 and rows[0].scale != "from 0" and figure.layout.yaxis.range and across:
        seen = [each for each in curves if each.in_legend and each.is_first]
        seen = [each for each in seen if each.in_legend_as in first]
        add_end_labels(figure, _ends(seen, figure, log_x=log_x), log_x=log_x)
    hide(figure, {group: group for group in groups if group not in first})
    return figure


def _with_entries(curves: Sequence[Curve]) -> list[tuple[Curve, bool]]:
    """Pair each curve with whether it has an entry in the legend, the first of each group.

    Marks have no size in the legend, so a marked curve gets an entry without points before it.
    """
    drawn: list[tuple[Curve, bool]] = []
    named: set[str] = set()
    for curve in curves:
        entry = curve.in_legend and curve.in_legend_as not in named
        if entry:
            named.add(curve.in_legend_as)
        if entry and curve.marked is not None:
            drawn.append((replace(curve, x=(), y=(), marks=MARK, marked=None, is_first=True), True))
            entry = False
        drawn.append((curve, entry))
    return drawn


def _places(curves: Sequence[Curve], last: float, *, log_x: bool) -> list[float]:
    """Return the steps or times of all curves that the horizontal axis can show."""
    places: list[float] = []
    for curve in curves:
        shown = [x for x in curve.x if x <= last]
        if log_x:
            shown = [x for x in shown if x > 0]
        places += shown
    return places


def _layout(
    rows: Sequence[Row],
    traces: Sequence[JSON],
    across: Sequence[float],
    x_title: str,
    *,
    log_x: bool,
) -> JSON:
    """Return the axes of all rows with their ranges, ticks and titles."""
    axes = _axes(tuple(row.share for row in rows))
    are_log = {}
    for name in axes:
        row_of_axis = rows[int(name[5:] or 1) - 1]  # xaxis, yaxis, xaxis2, …
        are_log[name] = log_x if name[0] == "x" else row_of_axis.scale == "log"
    layout = look(are_log)
    layout["meta"] = {"cursor": x_title}
    ends = {"range": with_margin(across, log=log_x)} if across else {}
    ticks = log_ticks(across, 0) if log_x else {}
    for index, row in enumerate(rows, start=1):
        x, y = _axes_of(index)
        values: list[float] = []
        for trace in traces:
            if trace["yaxis"] == y:
                values += [value for value in trace["y"] if value is not None]
        across_row = layout[f"xaxis{x[1:]}"]
        along_row = layout[f"yaxis{y[1:]}"]
        along_row |= axes[f"yaxis{y[1:]}"] | _vertical(row, values)
        along_row["title"]["text"] = row.title
        across_row |= axes[f"xaxis{x[1:]}"] | ends | ticks
    across_row["title"]["text"] = x_title
    return layout


@functools.cache
def _axes(shares: tuple[float, ...]) -> JSON:
    """Return the axes of rows with these shares of the height.

    Only the last row has labels of steps.
    """
    found = make_subplots(
        rows=len(shares), cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=shares
    )
    return {
        name: axis for name, axis in found.layout.to_plotly_json().items() if name != "template"
    }


def _axes_of(row: int) -> tuple[str, str]:
    return ("x", "y") if row == 1 else (f"x{row}", f"y{row}")


def _vertical(row: Row, values: Sequence[float]) -> JSON:
    """Return scale and range of the vertical axis of a row in which these values are drawn."""
    if row.scale == "from 0":
        return {"rangemode": "tozero"}
    if row.scale == "linear":
        return {"range": with_margin(values, log=False)} if values else {}
    values = [value for value in values if 0 < value <= row.ceiling]
    if not values:
        return log_ticks(values)
    ends = with_margin(values, log=True)
    if row.ceiling < math.inf:
        ends = [math.log10(min(values) / 2), math.log10(row.ceiling)]
    return {**log_ticks(values), "range": ends}


def _ends(curves: Sequence[Curve], figure: go.Figure, *, log_x: bool) -> list[End]:
    """Return the ends of the curves that reach the right end of the axis."""
    low, high = figure.layout.xaxis.range
    bottom, top = figure.layout.yaxis.range
    log_y = figure.layout.yaxis.type == "log"
    ends = []
    for curve in curves:
        for x, y in reversed(list(zip(curve.x, curve.y, strict=True))):
            if (x <= 0 and log_x) or not math.isfinite(y) or (y <= 0 and log_y):
                continue
            at = math.log10(x) if log_x else x
            value = math.log10(y) if log_y else y
            if at <= high and bottom <= value <= top:
                if at > high - ENDS_TOGETHER * (high - low):
                    has_marks = curve.marks or curve.marked is not None
                    symbol = (curve.symbol or curve.style.symbol) if has_marks else ""
                    ends.append(
                        End(
                            x,
                            y,
                            rows_of(curve.in_legend_as),
                            curve.style,
                            curve.in_legend_as,
                            symbol,
                        )
                    )
                break
    return ends


def _trace(curve: Curve, *, log_x: bool, log_y: bool, entry: bool) -> JSON:
    style = curve.style
    x, y = _axes_of(curve.row)
    share = 1 if curve.is_first else 0.5
    kept = [index for index, x in enumerate(curve.x) if x > 0 or not log_x]
    marker: dict[str, object] = {
        "color": style.color,
        "symbol": style.symbol or "circle",
        "size": curve.marks * share,
    }
    if curve.marked is not None:
        sizes = [
            MARK if index == curve.marked % max(len(curve.x), 1) else curve.marks * share
            for index in kept
        ]
        marker |= {"symbol": curve.symbol or style.symbol, "size": sizes, "opacity": 1}
        if curve.symbol in OUTCOME_SYMBOLS.values():  # lines without marks would be one pixel wide
            marker["line"] = {"width": 2}
    seed = "" if curve.seed is None else f", seed {curve.seed}"
    return {
        "type": "scatter",
        "xaxis": x,
        "yaxis": y,
        "x": [curve.x[index] for index in kept] if kept else [None],
        "y": [_drawable(curve.y[index], log_y) for index in kept] if kept else [None],
        "text": [number(curve.y[index], 3) for index in kept],
        "mode": "lines+markers" if curve.marks or curve.marked is not None else "lines",
        "line": {"color": style.color, "dash": style.dash, "width": curve.width * share},
        "marker": marker,
        "opacity": 1 if curve.is_first else SEED_OPACITY,
        "name": style.title,
        "legendgroup": curve.in_legend_as,
        "meta": {"seed": curve.seed},
        "showlegend": entry,
        "hovertemplate": f"{style.title}{seed}<br>{curve.unit} %{{x:,.7~g}}<br>{curve.what} "
        f"%{{text}}<extra></extra>",
    }


def _drawable(value: float, log_y: bool) -> float | None:
    return value if math.isfinite(value) and (value > 0 or not log_y) else None
