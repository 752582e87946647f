"""One number per run against a swept setting.

Seeds, means, bands, fitted exponents, guides, and a text version.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import plotly.graph_objects as go

from linearity_lab.charts.axes import (
    GUIDE,
    GUIDE_LINE,
    MEANS,
    SEEDS,
    beginning,
    given_runs,
    look,
    plain_symbols,
    seed_words,
    swept_ticks,
    tall_ticks,
)
from linearity_lab.charts.chart import Chart, leading
from linearity_lab.charts.labels import (
    ENDS_TOGETHER,
    MOST_CURVES,
    End,
    add_end_labels,
    hide,
    power,
    rows_of,
    spread_out,
)
from linearity_lab.charts.lines import Axis, Line
from linearity_lab.charts.style import GUIDE_COLOR, OUTCOME_TITLES, SEED_OPACITY, Style
from linearity_lab.runs import Mean, mean
from ntk_core.fits import LEAST_SEEDS, LEAST_WIDTHS, condition, exponent_words
from ntk_core.markup import JSON
from ntk_core.numbers import num_runs, number, signed, width_label

_SILENT: JSON = {"hoverinfo": "skip", "showlegend": False}
# Pixels, or three rows: beyond, the legend scrolls. While a run has not reached the last value, it
# names all lines, and more rows would leave the curves no height, above all on a phone.
MOST_OF_LEGEND = 96
LONGEST_FINDING = 115  # characters of four lines; our choice
RESOLVED = 0.5  # a wider interval cannot tell m^(−1/2) from a constant
FRACTIONS = {-0.5: "−1/2", -1.0: "−1"}


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
    rows: Sequence[dict[str, object]] | None = None,
    first: Sequence[int] = range(MOST_CURVES),
    finding: str | None = None,
    names_quantities: bool = False,
    height: int | None = None,
) -> Chart:
    """Draw all lines against the swept setting, log–log, with words and numbers.

    Seeds are faint, excluded ones open. The line is the mean, labeled with name and fitted
    exponent, with a band of one standard error.

    Args:
        title: title of the vertical axis.
        symbol: symbol of the number in hovers and in the table, by default the title.
        slopes: slopes of dashed guides from the first mean of the fastest-decreasing line.
        is_log: whether the vertical axis is logarithmic; otherwise it starts at 0.
        of: table column that distinguishes the lines.
        name, heading: name and heading of the chart.
        caption: sentences before the ones about excluded runs.
        rows: table rows; by default one per value and line.
        first: indices of the initially visible lines; the legend shows the others.
        finding: first sentence of the takeaway; by default from the lines.
        names_quantities: whether the lines are different quantities, so that their
            names replace the symbol.
        height: pixels of the figure, in which its labels find their places.
    """
    symbol = symbol or title
    visible = [line for index, line in enumerate(lines) if index in first]
    behind_legend = [line for index, line in enumerate(lines) if index not in first]
    figure = _figure(lines, visible, axis, title, symbol, slopes, is_log=is_log, height=height)
    hide(figure, {line.in_legend: line.style.title for line in behind_legend})
    if behind_legend and _shown_places(lines, axis):
        # The axis starts at the first visible value, also after a click in the legend.
        end = 10 ** figure.layout.xaxis.range[1]
        ends = {"include": list(axis.values) or None, "clipmax": end}
        figure.update_xaxes(autorange=True, range=None, autorangeoptions=ends)

    words = takeaway(lines, axis, title)
    if finding:
        words = f"{finding} {words}"
    if finding is None:
        finding = _common_finding(lines, visible, axis, symbol, names_quantities) or words
    return Chart(
        figure,
        words,
        mean_rows(lines, axis, symbol, of) if rows is None else rows,
        [*caption, *left_out(lines, axis), *_last_slopes(visible, axis)],
        name,
        heading,
        given_runs(line.law for line in lines),
        finding=finding,
        excluded=_excluded(lines),
        label=_compared(axis, title),
    )


def _common_finding(
    lines: Sequence[Line],
    visible: Sequence[Line],
    axis: Axis,
    symbol: str,
    names_quantities: bool,
) -> str:
    """Return the common finding of the visible lines.

    Lines over different values have none: their first sentences are returned.
    """
    common = _finding(visible, axis, symbol, names_quantities)
    if common:
        return common
    sentences = line_sentences(lines, axis)
    return leading(sentences) if sentences else ""


def _shown_places(lines: Sequence[Line], axis: Axis) -> list[float]:
    """Return the positions that the axis names: those of the whole sweep and of all lines."""
    places = set(axis.values)
    for line in lines:
        places.update(line.places)
    return sorted(places)


def _figure(
    lines: Sequence[Line],
    visible: Sequence[Line],
    axis: Axis,
    title: str,
    symbol: str,
    slopes: Sequence[float],
    *,
    is_log: bool,
    height: int | None,
) -> go.Figure:
    """Draw all lines, and guides and labels beside the visible ones."""
    traces: list[JSON] = []
    for line in lines:
        traces += _line(line, axis, symbol, is_log=is_log)
    traces += _marks(visible)
    shown = _shown_places(lines, axis)
    guides, guide_ends = _guides(visible, shown, slopes, axis)
    traces += guides

    layout = look({"xaxis": True, "yaxis": is_log}) | {"meta": {"cursor": axis.word}}
    layout["legend"]["maxheight"] = MOST_OF_LEGEND
    if height is not None:
        layout["height"] = height
    # Ticks stand first at the places of visible lines.
    reached: set[float] = set()
    for line in visible:
        reached.update(line.places)
    layout["xaxis"] |= swept_ticks(shown, sorted(reached))
    # Gaps in curves are None.
    heights: list[float] = []
    for trace in traces:
        heights += [y for y in trace["y"] if y is not None]
    layout["yaxis"] |= _vertical(heights, is_log=is_log)
    layout["xaxis"]["title"]["text"] = axis.title
    layout["yaxis"]["title"]["text"] = title
    figure = go.Figure(traces, layout)
    if shown:
        add_end_labels(figure, [*_ends(visible, axis, shown), *guide_ends])
    return figure


def _guides(
    visible: Sequence[Line], shown: Sequence[float], slopes: Sequence[float], axis: Axis
) -> tuple[list[JSON], list[End]]:
    """Draw guides from the first mean of the line that decreases fastest."""
    drawn = [line for line in visible if line.means]
    if not (slopes and drawn and shown):
        return [], []
    fastest = min(drawn, key=lambda line: math.inf if line.law is None else line.law.exponent)
    return _slopes(fastest.means[0], shown[-1], slopes, axis.letter)


def takeaway(lines: Sequence[Line], axis: Axis, title: str) -> str:
    """Describe the figure in text, one sentence per line, for screen readers."""
    what = _compared(axis, title)
    sentences = line_sentences(lines, axis)
    if not sentences:
        return f"{what}: no point yet."
    return f"{what}. {' '.join(sentences)}"


def _compared(axis: Axis, title: str) -> str:
    """Return both quantities: ``Kernel change ΔK against width m``."""
    return f"{beginning(plain_symbols(title))} against {plain_symbols(axis.title)}"


def line_sentences(lines: Sequence[Line], axis: Axis) -> list[str]:
    """Return one sentence per line on its first and last values; none without any dots."""
    if not any(line.dots for line in lines):
        return []
    sentences = []
    for line in lines:
        text = "no usable run"
        if line.means:
            first, start = line.means[0]
            last, end = line.means[-1]
            text = f"{number(start.value)} at {axis.word} = {width_label(first)}"
            if last > first:
                law = f", fitted exponent {exponent_words(line.law)}" if line.law else ""
                law += "".join(f"; {each}" for each in line.remarks(axis))
                text = f"from {text} to {number(end.value)} at {width_label(last)}{law}"
        sentences.append(f"{plain_symbols(line.style.title)}: {text}.")
    return sentences


def _finding(lines: Sequence[Line], axis: Axis, symbol: str, names_quantities: bool = False) -> str:
    """Return one sentence on each line.

    It states the scaling with its interval, or the first and last values.
    """
    found = []
    quantity = "" if names_quantities else f"{plain_symbols(symbol)} "
    has_laws = any(line.law for line in lines)
    for line in lines:
        if not has_laws or len(line.means) < 2:
            continue
        if line.law is None or not math.isfinite(line.law.interval):
            ends = [number(line.means[at][1].value) for at in (0, -1)]
            law = f"{quantity}from {ends[0]} to {ends[1]}"
        elif line.law.interval > RESOLVED:
            law = f"exponent{quantity and f' of {quantity}'.rstrip()} not resolved"
        else:
            law = f"{quantity}∝ {axis.letter}^({exponent_words(line.law)})"
        divider = " " if names_quantities else ": "
        found.append(f"{plain_symbols(line.style.title)}{divider}{law}")
    if not found:
        return _from_to(lines, axis, symbol)
    shown = "; ".join(found[each] for each in spread_out(len(found)))
    if len(shown) > LONGEST_FINDING:  # a second row would move the figure off the first screen
        shown = "; ".join(found[each] for each in spread_out(len(found), 3))
    lacks = any(line.law and not math.isfinite(line.law.interval) for line in lines)
    return f"{beginning(shown)}." + (" No interval yet: too few seeds or values." if lacks else "")


def _from_to(lines: Sequence[Line], axis: Axis, symbol: str) -> str:
    """Return the first and the last mean of lines over the same values."""
    drawn = [line for line in lines if line.means]
    spans = {(line.means[0][0], line.means[-1][0]) for line in drawn}
    if len(spans) != 1:
        return ""
    ((first, last),) = spans
    where = f"at {axis.word} = {width_label(first)}"
    if first < last:
        where = f"from {axis.word} = {width_label(first)} to {width_label(last)}"
    ends = []
    for line in drawn:
        values = [line.means[0][1].value]
        if first < last:
            values.append(line.means[-1][1].value)
        ends.append(f"{' to '.join(map(number, values))} ({plain_symbols(line.style.title)})")
    shown = "; ".join(ends[each] for each in spread_out(len(ends)))
    return f"{beginning(plain_symbols(symbol))} {where}: {shown}."


def _excluded(lines: Sequence[Line]) -> str:
    total = sum(len(line.dots) for line in lines)
    count = sum(bool(dot.why) for line in lines for dot in line.dots)
    return f"{count} of {total} runs excluded" if count else ""


def left_out(lines: Sequence[Line], axis: Axis) -> list[str]:
    """Return one sentence per line and reason: excluded runs, and the caveats of exponents."""
    sentences = []
    for line in lines:
        for why in dict.fromkeys(dot.why for dot in line.dots if dot.why):
            seeds = {
                at: [str(dot.seed) for dot in dots if dot.why == why]
                for at, dots in line.by_value.items()
            }
            listed = [
                f"{width_label(at)} ({seed_words(found)})" for at, found in seeds.items() if found
            ]
            where = f"{axis.letter} = {', '.join(listed)}"
            runs = f"{sum(map(len, seeds.values()))} of {num_runs(len(line.dots))}"
            sentences.append(
                f"Excluded from the means: {plain_symbols(line.style.title)} {why} at {where}: "
                f"{runs}."
            )
        if line.law and (given := condition(line.law)):
            exponent = f"exponent {exponent_words(line.law)} {given}"
            sentences.append(f"{beginning(plain_symbols(line.style.title))}: {exponent}.")
    if any(line.law and not math.isfinite(line.law.interval) for line in lines):
        sentences.append(
            f"Use at least {LEAST_SEEDS} seeds and {LEAST_WIDTHS} {axis.values_name} to get a "
            "confidence interval."
        )
    return sentences


def _line(line: Line, axis: Axis, symbol: str, *, is_log: bool = True) -> Iterator[JSON]:
    """Draw one line: a band, seeds and the mean.

    The band is one standard error; the name of the mean contains the fitted exponent.
    """
    traces = [
        _band(line, is_log=is_log),
        _seeds(line, axis, symbol, is_log=is_log),
        _mean_curve(line, axis, symbol),
    ]
    for trace in traces:
        if trace is not None:
            yield trace | {"legendgroup": line.in_legend}


def _band(line: Line, *, is_log: bool) -> JSON | None:
    """Draw mean ± standard error; on a logarithmic axis the lower edge stays positive."""
    places = []
    upper = []
    lower = []
    for place, average in line.means:
        if not math.isfinite(average.standard_error):
            continue
        edge = average.value - average.standard_error
        if is_log:
            edge = max(edge, 1e-3 * average.value)
        places.append(place)
        upper.append(average.value + average.standard_error)
        lower.append(edge)
    if not places:
        return None
    return {
        "x": places + places[::-1],
        "y": upper + lower[::-1],
        "fill": "toself",
        "fillcolor": line.style.band,
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "name": f"{line.style.title}, ± standard error",
    }


def _seeds(line: Line, axis: Axis, symbol: str, *, is_log: bool) -> JSON | None:
    """Draw one faint mark per run; runs that no mean counts are open."""
    style = line.style
    dots = [dot for dot in line.dots if math.isfinite(dot.value)]
    if is_log:
        dots = [dot for dot in dots if dot.value > 0]
    if not dots:
        return None
    errors = [dot.error for dot in dots]
    below = [min(dot.error, 0.99 * dot.value) if is_log else dot.error for dot in dots]
    bars = {
        "array": errors,
        "arrayminus": below,
        "color": style.color,
        "thickness": 1.5,
        "width": 4,
    }
    return {
        "x": [dot.place for dot in dots],
        "y": [dot.value for dot in dots],
        "error_y": bars if any(errors) else None,
        "mode": "markers",
        "marker": {
            "color": style.color,
            "size": 7,
            "opacity": [0.9 if dot.why else SEED_OPACITY for dot in dots],
            "symbol": [style.mark(dot.outcome) if dot.why else style.symbol for dot in dots],
            "line": {"width": [2 if dot.why else 0 for dot in dots]},
        },
        "customdata": [[dot.seed, dot.note or dot.why] for dot in dots],
        "meta": SEEDS,
        "text": [number(dot.value, 3) for dot in dots],
        "hovertemplate": f"{style.title}, seed %{{customdata[0]}}<br>{axis.word} = %{{x:,}}"
        f"<br>{symbol} = %{{text}}<br>%{{customdata[1]}}<extra></extra>",
        "showlegend": not line.means,
        "name": f"{style.title}, single seeds",
    }


def _mean_curve(line: Line, axis: Axis, symbol: str) -> JSON | None:
    """Draw the means, with the fitted exponent in their name."""
    if not line.means:
        return None
    style = line.style
    exponent = f" ∝ {axis.letter}<sup>{exponent_words(line.law)}</sup>" if line.law else ""
    name = "; ".join([style.title + exponent, *line.remarks(axis, brief=True)])
    notes = []  # of the hover: place, standard error, number of seeds
    for place, average in line.means:
        error = ""
        if math.isfinite(average.standard_error):
            error = f" ± {number(average.standard_error)}"
        num_seeds = f"{average.count} seed{'s' * (average.count != 1)}"
        notes.append([width_label(place), error, num_seeds])
    return {
        "x": [place for place, _ in line.means],
        "y": [average.value for _, average in line.means],
        "mode": "lines+markers",
        "line": {"color": style.color, "dash": style.dash, "width": 2.5},
        "marker": {"color": style.color, "symbol": style.symbol, "size": 9},
        "customdata": notes,
        "text": [number(average.value, 3) for _, average in line.means],
        "hovertemplate": f"{name}<br>{axis.word} = %{{customdata[0]}}<br>{symbol} = %{{text}}"
        "%{customdata[1]}<br>mean of %{customdata[2]}<extra></extra>",
        "meta": MEANS | {"title": style.title},
        "name": name,
        "showlegend": True,
    }


def _marks(lines: Sequence[Line]) -> Iterator[JSON]:
    """Draw a legend entry for every mark of runs that did not converge, with their number."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(dot.outcome for dot in line.dots if dot.why and dot.outcome)
    for outcome, count in sorted(counts.items()):
        title = OUTCOME_TITLES[outcome]
        style = Style(GUIDE_COLOR, "", "circle", f"{title}: {num_runs(count)}")
        marker = {
            "color": style.color,
            "symbol": style.mark(outcome),
            "size": 9,
            "line": {"width": 2},
        }
        entry = {"x": [None], "y": [None], "mode": "markers", "marker": marker, "name": style.title}
        yield entry | _SILENT | {"showlegend": True}


def _slopes(
    start: tuple[float, Mean], last: float, slopes: Sequence[float], letter: str = "m"
) -> tuple[list[JSON], list[End]]:
    first, average = start
    drawn: list[JSON] = []
    ends = []
    for slope in slopes if last > first else ():
        y = [average.value, average.value * (last / first) ** slope]
        drawn.append(
            {
                "x": [first, last],
                "y": y,
                "mode": "lines",
                "line": GUIDE_LINE,
                "meta": GUIDE,
                "name": f"slope {signed(slope, 1)}",
            }
        )
        ends.append(End(last, y[1], (power(letter, FRACTIONS[slope]),)))
    return [trace | _SILENT for trace in drawn], ends


def _last_slopes(lines: Sequence[Line], axis: Axis) -> list[str]:
    known = [line for line in lines if line.law and math.isfinite(line.law.interval)]
    slopes = [(plain_symbols(line.style.title), line.remarks(axis)) for line in known]
    found = "; ".join(f"{title}, {', '.join(remarks)}" for title, remarks in slopes if remarks)
    return [f"Slopes at the end: {found}."] if found else []


def _ends(lines: Sequence[Line], axis: Axis, shown: Sequence[float]) -> list[End]:
    reach = shown[-1] * (shown[0] / shown[-1]) ** ENDS_TOGETHER
    ends = []
    for line in lines:
        last, average = line.means[-1] if line.means else (-math.inf, None)
        if average and last >= reach:
            exponent = power(axis.letter, exponent_words(line.law)) if line.law else ""
            rows = rows_of(line.style.title, exponent)
            ends.append(
                End(last, average.value, rows, line.style, line.in_legend, line.style.symbol)
            )
    return ends


def _vertical(values: Sequence[float], *, is_log: bool) -> JSON:
    """Return scale, ticks and range of the vertical axis, from 0 unless it is logarithmic."""
    if is_log:
        positive = [value for value in values if value > 0]
        return tall_ticks(positive) if positive else {"type": "log"}
    return {"range": [min(0.0, *values), 1.06 * max(values) or 1.0]} if values else {}


def mean_rows(lines: Sequence[Line], axis: Axis, symbol: str, of: str) -> list[dict[str, object]]:
    """Return one row per value and line: the means of the figure."""
    found: list[tuple[float, dict[str, object]]] = []
    has_slopes = any(line.law for line in lines)
    for line in lines:
        slopes = {each.high: each.slope for each in line.law.local} if line.law else {}
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
                        **(
                            {"slope from the previous value": slopes.get(at, math.nan)}
                            if has_slopes
                            else {}
                        ),
                        **line.more.get(at, {}),
                    },
                )
            )
    return [row for _, row in sorted(found, key=lambda each: each[0])]
