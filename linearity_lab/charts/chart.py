"""Figures with words and tables, variants of figures, and comparisons of runs."""

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import plotly.graph_objects as go
from plotly.basedatatypes import BaseFigure

from linearity_lab.charts.axes import GHOST, GUIDE, MEANS, SEEDS, is_marked, spaced
from linearity_lab.charts.labels import LABEL_SIZE, move_to_edge, respaced
from linearity_lab.charts.marks import marks_of
from linearity_lab.charts.style import FONT_SIZE, GHOST_OPACITY
from linearity_lab.page_modules import has_page_module, page_module
from linearity_lab.runs import PointValue, SeededSpec, Spec, Value, experiment_of
from linearity_lab.runs.columns import Columns, measures
from linearity_lab.settings.part import Values
from ntk_core.markup import JSON, without_marks_inside

SENTENCE_LENGTH = 150  # characters above a figure: two lines
VEILED = "the rest appears with the answer"
VEILED_KEY = ".veiled"
AnyPoint = TypeVar("AnyPoint", bound=PointValue)


class Sent(BaseFigure):
    """A finished figure as it is sent to browsers: copied once, not at every rerun of a page.

    Names from outside, such as classes and parameters, have no invisible marks in it.
    """

    def __init__(self, figure: go.Figure):
        self._sent: JSON = without_marks_inside(figure.to_dict())

    def to_dict(self) -> JSON:
        """Return the content of the figure, shared by all readers."""
        return self._sent


@dataclass(frozen=True)
class Chart:
    """A figure with its title, words and tables; every figure function returns one."""

    figure: go.Figure
    takeaway: str  # alternative text, one sentence per line
    # Its numbers, one row per point; all rows have the same columns.
    rows: Sequence[dict[str, object]]
    caption: Sequence[str] = ()  # sentences below it, also in print
    # The last part of its key: ``change`` on the page ``dag`` has the words of ``dag.change``.
    # Its figure gives it; only charts beside each other, and charts without a figure, have
    # names of their own.
    name: str = ""
    heading: str = ""  # title above it, if any
    # Runs behind its 95% intervals (``numbers.given_runs``); empty without intervals.
    given: str = ""
    finding: str = ""  # computed result in one sentence; empty if it is the takeaway
    excluded: str = ""  # number of excluded runs in words; empty for none
    clicks: str = ""  # effect of a click, which only the app has; empty for none
    label: str = ""  # its title in lists of figures; by default its heading, or else its takeaway
    is_veiled: bool = False  # whether its answer is hidden: it is to be predicted first

    @functools.cached_property
    def sent(self) -> Sent:
        """Its figure, as it is sent to browsers."""
        return Sent(self.figure)

    @functools.cached_property
    def marks(self) -> frozenset[str]:
        """The marks that its figure has, of ``words.pages.MARKS``."""
        return marks_of(self.figure)

    @property
    def key(self) -> str:
        """Its name in keys of the session.

        Veiled, another one, since a zoom belongs to one of them.
        """
        return self.name + VEILED_KEY if self.is_veiled else self.name

    @property
    def title(self) -> str:
        """Its title in lists of figures."""
        return self.label or self.heading or self.takeaway

    @property
    def app_caption(self) -> Sequence[str]:
        """Sentences below it in the app."""
        return (*self.caption, self.clicks) if self.clicks else self.caption

    @property
    def sentence(self) -> str:
        """The sentence above it: its finding, or else its takeaway."""
        return self.finding or self.takeaway


def leading(sentences: Sequence[str]) -> str:
    """Join the first sentences as far as they fit above a figure; keep at least one."""
    first, *others = sentences
    for each in others:
        if len(first) + len(each) >= SENTENCE_LENGTH:
            break
        first = f"{first} {each}"
    return first


def _runs(point: PointValue) -> Sequence[Value]:
    """Return the runs of a point; their type is that of its experiment."""
    runs: Sequence[Value] = getattr(point, "runs", ())
    return runs


def occurring(points: Iterable[PointValue], *names: str) -> list[Any]:
    """Return the attributes of this name of the runs of some points.

    They are in order; tuples for several names.
    """
    return list(
        dict.fromkeys(operator.attrgetter(*names)(run) for point in points for run in _runs(point))
    )


def interval_words(chart: Chart, specs: Iterable[Spec]) -> list[str]:
    """Return what the intervals of a chart cover and assume; empty without intervals."""
    scopes = "; or ".join(
        dict.fromkeys(spec.scope for spec in specs if isinstance(spec, SeededSpec))
    )
    return [f"95% confidence intervals {scopes}, {chart.given}."] if chart.given and scopes else []


def is_curve(trace: go.Scatter) -> bool:
    """Whether a trace is data, not a band, a guide or text."""
    return (
        "text" not in (trace.mode or "") and trace.fill != "toself" and not is_marked(trace, GUIDE)
    )


def led_by(points: Iterable[AnyPoint], seed: int | None) -> list[AnyPoint]:
    """Move the runs of this seed first, which figures draw strong.

    Keep points without it unchanged.
    """
    if seed is None:
        return list(points)
    return [
        point.model_copy(
            update={"runs": tuple(sorted(_runs(point), key=lambda run: run.seed != seed))}
        )
        for point in points
    ]


def veiled(figure: go.Figure, up_to: float = -math.inf, keep: Sequence[str] = ()) -> go.Figure:
    """Copy a chart without its answer: no points beyond ``up_to``, guides or fitted exponents.

    Traces whose names begin with one of ``keep`` stay whole.
    """
    shown = go.Figure(layout=figure.layout)
    for trace in figure.data:
        name = trace.name or ""
        is_guide = not is_curve(trace)
        if any(name.startswith(start) for start in keep) and not is_guide:
            shown.add_trace(trace)
        elif not is_guide and not keep and trace.x is not None:
            inside = [x is None or x <= up_to for x in trace.x]
            if any(inside):
                shown.add_trace(_without_far_points(trace, inside))
    for trace in shown.data:
        if is_marked(trace, MEANS):
            trace.name = trace.meta["title"]  # without the fitted exponent
    _name_in_legend(shown)
    font = {"size": FONT_SIZE + 2}
    return shown.add_annotation(
        text=VEILED,
        xref="paper",
        yref="paper",
        x=0.97,
        y=0.93,
        xanchor="right",
        showarrow=False,
        font=font,
    )


def _name_in_legend(figure: go.Figure) -> None:
    """Give the first line of every group a legend entry, since the labels at ends are removed."""
    named = {trace.legendgroup for trace in figure.data if trace.showlegend}
    for trace in figure.data:
        if "lines" in (trace.mode or "") and trace.legendgroup and trace.legendgroup not in named:
            named.add(trace.legendgroup)
            trace.showlegend = True
    figure.update_layout(margin_r=8)


def _without_far_points(trace: go.Scatter, inside: Sequence[bool]) -> go.Scatter:
    kept = go.Scatter(trace)
    for name in ("x", "y", "customdata", "text"):
        values = getattr(trace, name)
        if values is not None and len(values) == len(inside):
            kept[name] = [value for value, stays in zip(values, inside, strict=True) if stays]
    for name in ("opacity", "symbol", "size"):
        values = getattr(trace.marker, name)
        if isinstance(values, (list, tuple)) and len(values) == len(inside):
            kept.marker[name] = [
                value for value, stays in zip(values, inside, strict=True) if stays
            ]
    return kept


def drawn_rows(figure: go.Figure) -> list[dict[str, object]]:
    """Return one row per point of the figure, unless the chart has a table."""
    rows: list[dict[str, object]] = []
    for trace in figure.data:
        if trace.x is None or not is_curve(trace):
            continue
        for x, y in zip(trace.x, trace.y, strict=True):
            if x is not None:
                rows.append({"line": trace.name or "", "x": x, "y": y})
    return rows


def enlarged(figure: go.Figure, factor: float, height: int) -> go.Figure:
    """Copy a chart with text, lines and markers enlarged by ``factor``, for projection."""
    shown = go.Figure(figure)
    font = {"size": round(FONT_SIZE * factor)}
    shown.update_xaxes(tickfont=font, title_font=font)
    shown.update_yaxes(tickfont=font, title_font=font)
    shown.for_each_annotation(lambda each: each.update(font=font))
    for trace in shown.data:
        if trace.line.width:
            trace.line.width *= factor
        if isinstance(trace.marker.size, (int, float)):
            trace.marker.size *= factor
        if "text" in (trace.mode or ""):
            trace.textfont = {**trace.textfont.to_plotly_json(), **font}
            shown.layout.margin.r = round(figure.layout.margin.r * factor)
    for shape in shown.layout.shapes:
        shape.label.font = font
    shown.update_layout(height=height, legend={"font": font, "y": -0.2})
    if figure.layout.legend.maxheight:
        shown.layout.legend.maxheight = factor * figure.layout.legend.maxheight
    respaced(shown, font["size"] / LABEL_SIZE)
    return shown


def above(figure: go.Figure, before: go.Figure) -> go.Figure:
    """Copy ``figure`` above the pale curves of ``before``, with axes that contain both.

    Return ``figure`` itself if the axes differ or there are no curves.
    """
    pale: JSON = {
        "showlegend": False,
        "legendgroup": None,
        "hoverinfo": "skip",
        "hovertemplate": None,
    }
    pale |= {"opacity": GHOST_OPACITY, "meta": GHOST}
    ghosts = [trace.to_plotly_json() | pale for trace in before.data if _is_curve(trace)]
    if _axes(figure) != _axes(before) or not ghosts or figure.frames:
        return figure
    layout = figure.layout.to_plotly_json()
    layout.pop("template", None)  # skips Plotly's validation, which takes milliseconds
    for name in _axes(figure):
        axis = layout.setdefault(name, {})
        now = figure.layout[name].range
        then = before.layout[name].range
        # None is Plotly's own range.
        both = [min(now[0], then[0]), max(now[1], then[1])] if now and then else None
        axis |= {"range": both, "autorangeoptions": None}
        if own := _ticks(figure.layout[name]):
            earlier = _ticks(before.layout[name])
            ticks = earlier | own if name[0] == "x" else max(own, earlier, key=_span)
            shown = list(ticks)
            # Swept values, those of the figure before earlier ones.
            if name[0] == "x" and axis.get("type") == "log":
                shown = spaced(sorted(ticks), first=list(own))
            axis |= {"tickvals": shown, "ticktext": [ticks[tick] for tick in shown]}
    # Appended last, so traces keep their numbers; a z-order would make Plotly clip the
    # names beside the axes.
    both_drawn = go.Figure([*figure.data, *ghosts], layout)
    move_to_edge(both_drawn)
    return both_drawn


def _is_curve(trace: go.Scatter) -> bool:
    """Whether a trace is a mean curve; text, bands and single seeds would be too pale to see."""
    is_opaque = trace.opacity is None or trace.opacity == 1
    return (
        isinstance(trace, go.Scatter)
        and "text" not in (trace.mode or "")
        and not trace.fill
        and is_opaque
        and not is_marked(trace, SEEDS)
    )


def _axes(figure: go.Figure) -> dict[str, tuple[object, ...]]:
    """Map each axis to its quantity.

    An explanation after a comma, such as the channels of a CNN, is left out.
    """
    names = [name for name in figure.layout if name[:5] in ("xaxis", "yaxis")]
    axes = {name: figure.layout[name] for name in names}
    return {
        name: ((axis.title.text or "").partition(",")[0], axis.type) for name, axis in axes.items()
    }


def _span(ticks: Mapping[float, str]) -> float:
    return max(ticks, default=1.0) / (min(ticks, default=1.0) or 1.0)


def _ticks(axis: go.layout.XAxis) -> dict[float, str]:
    return dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))


@dataclass(frozen=True)
class ComparedAxis:
    """The axis of a comparison."""

    column: str
    title: str
    letter: str = "m"  # symbol in fitted exponents and sentences
    # Selects rows for this axis, given their result.
    keep: Callable[[Values, Any], bool] = lambda _row, _result: True
    along_time: bool = False  # whether each seed has its own curve
    values_name: str = "values"  # its values in a sentence


@dataclass(frozen=True)
class Comparison:
    """Columns by which runs of one experiment are compared."""

    axes: tuple[ComparedAxis, ...]
    measures: dict[str, str]  # column → title
    # Column that names a line → formatter of its values.
    lines: Mapping[str, Callable[[Any], object]]

    def line_words(self, line: Sequence[object]) -> str:
        """Return the title of a line, such as ``linear output, random, ρ = 0.25``."""
        return ", ".join(
            str(words(part)) for words, part in zip(self.lines.values(), line, strict=True)
        )


WIDTH = ComparedAxis("width", "width m", values_name="widths")


def compared_by(columns: Columns, *axes: ComparedAxis) -> Comparison:
    """Compare runs by all measures of their table against ``axes``, by default the width."""
    lines = {column.name: column.words for column in columns if column.role == "line"}
    return Comparison(axes or (WIDTH,), measures(columns), lines)


def comparison_of(spec: Spec) -> Comparison:
    """Compare runs of one experiment.

    The comparison is the result's table, figures against the ``figures.COMPARED`` axes of its view,
    or its ``compared(spec)``.
    """
    figures = (
        page_module(spec.experiment, "figures")
        if has_page_module(spec.experiment, "figures")
        else None
    )
    compared: Callable[[Spec], Comparison] | None = getattr(figures, "compared", None)
    if compared is not None:
        return compared(spec)
    return compared_by(experiment_of(spec).result.columns, *getattr(figures, "COMPARED", ()))
