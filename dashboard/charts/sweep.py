"""One number per run against what is swept: seeds, means, bands, fitted exponents and guides, and the same in words."""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.axes import add_guide, drawn_values, finish, log_ticks, spaced
from dashboard.charts.chart import Chart
from dashboard.charts.numbers import beginning, exponent_words, number, plain_symbols, signed, width_label
from dashboard.charts.style import FIGURE_HEIGHT, GUIDE_COLOR, SEED_OPACITY, Style
from dashboard.charts.vector import Stroke, thumbnail
from ntk_core.fits import LEAST_SEEDS, LEAST_WIDTHS, NO_POWER_LAW, PowerLaw, condition, fit_power_law, remarks
from ntk_core.runs import OUTCOME_WORDS, Mean, mean

FRACTIONS = {-0.5: "−1/2", -1.0: "−1"}
# So that a flat line looks flat, the vertical axis is at least this long.
LEAST_DECADES = 1.5
LEGEND_ROW = 23  # pixels; an entry may need a row of its own, which is not to be taken from the plot


@dataclass(frozen=True)
class Dot:
    """The number of one run.

    Attributes:
        at: value of what is swept; runs that share it have one mean.
        value: NaN where the run has no number; it is then not drawn, but named where it is left out.
        why: why the run is in no mean and no exponent (its marker is open); empty where it counts.
        note: what its hover says below the number; the reason where it is empty.
        outcome: of its training, where that is the reason: it has a mark of its own.
        x: where it is drawn, if not at ``at``.
    """

    at: float
    value: float
    seed: int
    why: str = ""
    note: str = ""
    x: float | None = None
    outcome: str = ""

    @property
    def place(self) -> float:
        """Where it is drawn."""
        return self.at if self.x is None else self.x

    @property
    def counts(self) -> bool:
        """Whether it is part of means and exponents."""
        return not self.why and math.isfinite(self.value)


def fitted(dots: Sequence[Dot]) -> PowerLaw | None:
    """The power law through every run that counts."""
    return fit_power_law(
        [dot.place for dot in dots],
        [dot.value for dot in dots],
        seeds=[dot.seed for dot in dots],
        usable=[dot.counts for dot in dots],
        diverged=[dot.outcome in NO_POWER_LAW for dot in dots],
        swept=[dot.at for dot in dots],
    )


@dataclass(frozen=True)
class Line:
    """The numbers of one network, output or other thing that has a style.

    Attributes:
        fit: whether its exponent is fitted and shown.
        more: value of what is swept → further columns of its row in the table.
        group: of its traces in the legend; the title when empty.
    """

    style: Style
    dots: Sequence[Dot]
    fit: bool = True
    more: Mapping[float, Mapping[str, object]] = field(default_factory=dict)
    group: str = ""

    @functools.cached_property
    def by_value(self) -> dict[float, list[Dot]]:
        """Value of what is swept → its dots, ascending."""
        found: dict[float, list[Dot]] = {}
        for dot in sorted(self.dots, key=lambda dot: dot.at):
            found.setdefault(dot.at, []).append(dot)
        return found

    @property
    def places(self) -> list[float]:
        """Where the axis has its ticks: at the values that are swept, or near the means of dots with other places."""
        moved = any(dot.x is not None for dot in self.dots)
        return [round(place) for place, _ in self.means] if moved else list(self.by_value)

    @functools.cached_property
    def means(self) -> list[tuple[float, Mean]]:
        """(place, mean) at every value at which runs count, ascending."""
        counted = [[dot for dot in dots if dot.counts] for dots in self.by_value.values()]
        return [
            (mean([dot.place for dot in dots]).value, mean([dot.value for dot in dots])) for dots in counted if dots
        ]

    def remarks(self, axis: "Axis", *, brief: bool = False) -> list[str]:
        """What is said beside its exponent."""
        return remarks(self.law, axis.values_name, brief=brief) if self.fit and self.law else []

    @functools.cached_property
    def law(self) -> PowerLaw | None:
        """The power law through every run that counts."""
        return fitted(self.dots)


@dataclass(frozen=True)
class Axis:
    """What is swept.

    Attributes:
        letter: of it, in fitted exponents, guides and sentences.
        values: of the whole sweep, so that the axis stays while points arrive.
        symbol: of the place of a dot, in hovers, sentences and linked figures, where it is not the letter.
        column: name of what is swept in the table, where it is not the title.
    """

    title: str
    letter: str = "m"
    values: Sequence[float] = ()
    symbol: str = ""
    column: str = ""

    @property
    def values_name(self) -> str:
        """What its values are, in a sentence."""
        return "widths" if "width" in self.title else "values"

    @property
    def word(self) -> str:
        """What stands before a value."""
        return self.symbol or self.letter


def width_axis(widths: Sequence[int] = (), title: str = "width m") -> Axis:
    """The widths of a sweep."""
    return Axis(title, values=widths)


def sweep(
    lines: Sequence[Line],
    axis: Axis,
    title: str,
    symbol: str = "",
    *,
    slopes: Sequence[float] = (),
    is_log: bool = True,
    of: str = "line",
    name: str = "",
    heading: str = "",
    caption: Sequence[str] = (),
    is_said: bool = False,
    rows: Sequence[dict[str, object]] | None = None,
) -> Chart:
    """All lines against what is swept, log–log, with words and numbers.

    Seeds are faint, those left out of means and exponents open; the line is the mean, with a band of one standard
    error; the fitted exponent with its 95% interval is in the legend.

    Args:
        title: of the vertical axis.
        symbol: of the number, in hovers and in the table; the title where it has none.
        slopes: of dashed guides from the first mean of the line that falls fastest.
        is_log: whether the vertical axis is logarithmic, else it begins at 0.
        of: what tells the lines apart, as a column of the table.
        name, heading: of the chart.
        caption: sentences before those about the runs left out.
        is_said: whether the caption begins with the takeaway.
        rows: a table of its own; by default one row per value and line.
    """
    symbol = symbol or title
    figure = go.Figure()
    for line in lines:
        add_line(figure, line, axis, symbol, is_log=is_log)
    add_marks(figure, lines)
    shown = sorted({*axis.values, *(place for line in lines for place in line.places)})
    falling = [line for line in lines if line.means]
    if slopes and falling and shown:
        line = min(falling, key=lambda line: math.inf if line.law is None else line.law.exponent)
        add_slopes(figure, line.means[0], shown[-1], slopes, axis.letter)
    _finish(figure, shown, axis, title, is_log=is_log)
    figure.update_layout(height=FIGURE_HEIGHT + LEGEND_ROW * max(0, len(lines) - 3), meta={"cursor": axis.word})
    table = mean_rows(lines, axis, symbol, of) if rows is None else rows
    words = takeaway(lines, axis, title)
    below = [*([words] if is_said else []), *caption, *left_out(lines, axis)]
    return Chart(figure, words, table, below, name, heading)


def takeaway(lines: Sequence[Line], axis: Axis, title: str) -> str:
    """What the figure says, one sentence per line, for those who do not see it."""
    what = f"{beginning(plain_symbols(title))} against {plain_symbols(axis.title)}"
    if not any(line.dots for line in lines):
        return f"{what}: no point yet."
    sentences = []
    for line in lines:
        said = "no usable run"
        if line.means:
            (first, start), (last, end) = line.means[0], line.means[-1]
            said = f"{number(start.value)} at {axis.word} = {_value(first)}"
            if last > first:
                law = f", fitted exponent {exponent_words(line.law)}" if line.fit and line.law else ""
                law += "".join(f"; {each}" for each in line.remarks(axis))
                said = f"from {said} to {number(end.value)} at {_value(last)}{law}"
        sentences.append(f"{plain_symbols(line.style.title)}: {said}.")
    return f"{what}. " + " ".join(sentences)


def left_out(lines: Sequence[Line], axis: Axis) -> list[str]:
    """One sentence per line and reason: which runs are in no mean and no exponent, and what exponents lack."""
    sentences = []
    for line in lines:
        for why in dict.fromkeys(dot.why for dot in line.dots if dot.why):
            seeds = {at: [str(dot.seed) for dot in dots if dot.why == why] for at, dots in line.by_value.items()}
            listed = [f"{_value(at)} (seed {', '.join(found)})" for at, found in seeds.items() if found]
            where = f"{axis.letter} = {', '.join(listed)}"
            count = sum(map(len, seeds.values()))
            runs = f"{count} of {len(line.dots)} run{'s' * (len(line.dots) != 1)}"
            sentences.append(f"Open markers, in no mean: {plain_symbols(line.style.title)} {why} at {where}: {runs}.")
        if line.fit and line.law and (given := condition(line.law)):
            exponent = f"exponent {exponent_words(line.law)} {given}"
            sentences.append(f"{beginning(plain_symbols(line.style.title))}: {exponent}.")
    if any(line.fit and line.law and not math.isfinite(line.law.interval) for line in lines):
        sentences.append(f"An interval needs {LEAST_SEEDS} seeds and {LEAST_WIDTHS} {axis.values_name}.")
    return sentences


def add_line(figure: go.Figure, line: Line, axis: Axis, symbol: str, *, is_log: bool = True) -> None:
    """Band of one standard error, seeds, and the mean with the fitted exponent in its name."""
    style = line.style
    group: dict[str, Any] = {"legendgroup": line.group or style.title}
    around = [(x, a.value, a.standard_error) for x, a in line.means if math.isfinite(a.standard_error)]
    if around:
        upper = [(x, value + error) for x, value, error in around]
        lower = [(x, max(value - error, 1e-3 * value) if is_log else value - error) for x, value, error in around]
        figure.add_scatter(
            x=[x for x, _ in upper + lower[::-1]],
            y=[y for _, y in upper + lower[::-1]],
            fill="toself",
            fillcolor=style.band,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            name=f"{style.title}, ± standard error",
            **group,
        )
    dots = [dot for dot in line.dots if math.isfinite(dot.value) and (dot.value > 0 or not is_log)]
    if dots:
        figure.add_scatter(
            x=[dot.place for dot in dots],
            y=[dot.value for dot in dots],
            mode="markers",
            marker={
                "color": style.color,
                "size": 7,
                "opacity": [0.9 if dot.why else SEED_OPACITY for dot in dots],
                "symbol": [style.mark(dot.outcome) if dot.why else style.symbol for dot in dots],
                "line": {"width": [2 if dot.why else 0 for dot in dots]},
            },
            customdata=[[dot.seed, dot.note or dot.why] for dot in dots],
            meta={"seeds": True},
            hovertemplate=f"{style.title}, seed %{{customdata[0]}}<br>{axis.word} = %{{x:,}}<br>{symbol} = %{{y:.3g}}"
            "<br>%{customdata[1]}<extra></extra>",
            showlegend=not line.means,
            name=f"{style.title}, single seeds",
            **group,
        )
    if line.means:
        law = line.law if line.fit else None
        figure.add_scatter(
            x=[x for x, _ in line.means],
            y=[average.value for _, average in line.means],
            mode="lines+markers",
            line={"color": style.color, "dash": style.dash, "width": 2.5},
            marker={"color": style.color, "symbol": style.symbol, "size": 9},
            customdata=[
                [
                    _value(x),
                    f" ± {number(each.standard_error)}" if math.isfinite(each.standard_error) else "",
                    f"{each.count} seed{'s' * (each.count != 1)}",
                ]
                for x, each in line.means
            ],
            hovertemplate=f"{style.title}<br>{axis.word} = %{{customdata[0]}}<br>{symbol} = %{{y:.3g}}"
            "%{customdata[1]}<br>mean of %{customdata[2]}<extra></extra>",
            name="; ".join(
                [
                    style.title + (f" ∝ {axis.letter}<sup>{exponent_words(law)}</sup>" if law else ""),
                    *line.remarks(axis, brief=True),
                ]
            ),
            **group,
        )


def add_marks(figure: go.Figure, lines: Sequence[Line]) -> None:
    """An entry of the legend for every mark of runs that did not converge, with their number."""
    counts = Counter(dot.outcome for line in lines for dot in line.dots if dot.why and dot.outcome)
    for outcome, count in sorted(counts.items()):
        look = Style(GUIDE_COLOR, "", "circle", f"{outcome}: {count} run{'s' * (count != 1)}")
        marker = {"color": look.color, "symbol": look.mark(outcome), "size": 9, "line": {"width": 2}}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=look.title, hoverinfo="skip")


def add_slopes(
    figure: go.Figure, start: tuple[float, Mean], last: float, slopes: Sequence[float], letter: str = "m"
) -> None:
    """Dashed lines of these slopes from a mean to the value ``last``."""
    first, average = start
    for slope in slopes if last > first else ():
        ends = [average.value, average.value * (last / first) ** slope]
        add_guide(figure, [first, last], ends, f"{letter}<sup>{FRACTIONS[slope]}</sup>", f"slope {signed(slope, 1)}")


def _finish(figure: go.Figure, shown: Sequence[float], axis: Axis, title: str, *, is_log: bool) -> None:
    """Ticks at the values that are swept, and a vertical axis long enough for a flat line to look flat."""
    ticks = spaced(shown)
    labels = [width_label(value) for value in ticks]
    figure.update_xaxes(type="log", title=axis.title, tickvals=ticks, ticktext=labels, range=_log_range(shown))
    figure.update_yaxes(title=title)
    values = [value for value in drawn_values(figure) if value > 0]
    if not is_log:
        figure.update_yaxes(rangemode="tozero")
    elif values:
        low, high = math.log10(min(values)), math.log10(max(values))
        spare = max(0.0, LEAST_DECADES - (high - low)) / 2 + 0.08
        figure.update_yaxes(**log_ticks(values, 100), range=[low - spare, high + spare])
    else:
        figure.update_yaxes(type="log")
    finish(figure)


def mean_rows(lines: Sequence[Line], axis: Axis, symbol: str, of: str) -> list[dict[str, object]]:
    """One row per value and line: what the mean lines show."""
    found: list[tuple[float, dict[str, object]]] = []
    has_slopes = any(line.fit and line.law for line in lines)
    for line in lines:
        slopes = {each.high: each.slope for each in line.law.local} if line.fit and line.law else {}
        for at, dots in line.by_value.items():
            average = mean([dot.value for dot in dots if dot.counts])
            found.append(
                (
                    at,
                    {
                        axis.column or plain_symbols(axis.title): at,
                        of: plain_symbols(line.style.title),
                        f"mean {plain_symbols(symbol)}": average.value,
                        "standard error": average.standard_error,
                        "runs in the mean": average.count,
                        "all runs": len(dots),
                        **({"slope from the value before": slopes.get(at, math.nan)} if has_slopes else {}),
                        **line.more.get(at, {}),
                    },
                )
            )
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def _value(value: float) -> str:
    return width_label(value) if value < 10_000 else f"{value:,.0f}"


def _log_range(values: Sequence[float]) -> list[float] | None:
    if not values:
        return None
    low, high = math.log10(values[0]), math.log10(values[-1])
    margin = 0.06 * (high - low) or 0.3
    return [low - margin, high + 3 * margin]  # the guides' labels stand at the right


def trained_dot(at: float, value: float, run: Any, note: str = "", *, converged_only: bool = True) -> Dot:
    """The number of a run with an outcome, which counts if it converged, or if training is no part of it."""
    words = OUTCOME_WORDS[run.outcome]
    why = words if converged_only and run.outcome != "converged" else ""
    return Dot(at, value, run.seed, why, f"{note}<br>{words}" if note else words, outcome=run.outcome if why else "")


def sketch(lines: Iterable[Line]) -> str:
    """A small picture of the means of these lines, log–log."""
    strokes = [
        Stroke([(x, average.value) for x, average in line.means], line.style.color, line.style.dash) for line in lines
    ]
    return thumbnail(strokes, log_x=True, log_y=True)
