"""Departures from linear models against width: horizons, lower bounds, and runs that never depart."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linearity_lab.charts.axes import GUIDE_LINE
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.style import Style
from ntk_core.experiments.departures import DEPARTURE_WORDS, Departure
from ntk_core.numbers import number, percent, signed
from ntk_core.runs import mean

ABOVE = 1.7  # from the highest dot to the marks of runs that never depart


def departure_line(
    style: Style,
    runs: Sequence[tuple[float, Any]],
    of: Callable[[Any], Departure],
    clock: str,
    *,
    relative: bool = False,
    fit: bool = True,
) -> Line:
    """The horizons of (width, run), or their ratios to the mean at the least width where one is seen."""
    ends = [(width, of(run), run.seed) for width, run in runs]
    seen = [(width, end.at) for width, end, _ in ends if end.is_seen]
    base = mean([at for width, at in seen if width == seen[0][0]]).value if relative else 1.0
    dots = []
    for width, end, seed in ends:
        words = DEPARTURE_WORDS[end.outcome]
        is_excluded = end.outcome not in ("departed", "never")  # the latter have no number, and an arrow
        value = end.at / base if end.outcome in ("departed", "beyond") else math.nan
        note = f"{clock} = {number(end.at, 3)}: {words}"
        dots.append(Dot(width, value, seed, words * is_excluded, note, outcome=end.outcome * is_excluded))
    return Line(style, dots, fit=fit)


def add_never(chart: Chart, lines: Sequence[Line], shares: Mapping[float, float], style: Style) -> None:
    """Add arrows at the top for runs that never depart: width → how far their outputs differ at the end."""
    figure, drawn = chart.figure, [dot.value for each in lines for dot in each.dots if math.isfinite(dot.value)]
    top, low = ABOVE * max(drawn, default=1.0), min(figure.layout.yaxis.range[0], 0.0) if drawn else -0.3
    figure.add_scatter(
        x=list(shares),
        y=[top] * len(shares),
        mode="markers+text",
        text=[percent(each) for each in shares.values()],
        textposition="top center",
        marker={"symbol": "arrow-up", "size": 14, "color": style.color},
        hovertemplate=f"{style.title}, m = %{{x:,}}<br>never; "
        "outputs differ by %{text} at convergence<extra></extra>",
        name=f"{style.title}: never",
        cliponaxis=False,
    ).update_yaxes(range=[low, math.log10(top) + 0.25])


def add_predicted(chart: Chart, line: Line, slope: float) -> None:
    """Add a dashed line of this slope in the logarithm of the width, up to the last mean of a line."""
    (first, _), (last, end) = line.means[0], line.means[-1]
    y, name = [end.value - slope * math.log(last / first), end.value], f"slope {signed(slope)} predicted"
    chart.figure.add_scatter(x=[first, last], y=y, mode="lines", line=GUIDE_LINE, name=name, showlegend=False)
