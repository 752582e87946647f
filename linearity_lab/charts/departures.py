"""Departures from linear models against width.

Horizons of several pages, and steps above the stable rate.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from linearity_lab.charts.axes import GUIDE, GUIDE_LINE, beginning
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import Style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.departures import DEPARTURE_WORDS, Departure
from linearity_lab.experiments.horizon.point import (
    COLUMNS,
    REGIMES,
    HorizonPoint,
    HorizonRun,
    HorizonSpec,
    RegimeLine,
    lines,
)
from linearity_lab.runs import mean
from linearity_lab.runs.columns import table_rows
from ntk_core.fits import PowerLaw, exponent_words, fit_runs
from ntk_core.numbers import number, percent, signed

HorizonPoints = Sequence[HorizonPoint]
ABOVE = 1.7  # from the highest dot to the marks of runs that never depart


def style(line: RegimeLine) -> Style:
    """Return one color per regime; rates near 3 have another dash."""
    return nth_style(list(REGIMES).index(line.regime) + 4 * (line.rate > 2.75), line.title, "curve")


@dataclass(frozen=True)
class Horizons:
    """Departures of the runs of one line."""

    style: Style
    runs: Sequence[tuple[float, HorizonRun]]  # (width, run)
    of: str  # name of a departure of a run
    clock: str  # unit of the horizon
    # Predicted slope of horizons that grow with the logarithm of the width.
    slope: float | None = None

    def at(self, run: HorizonRun) -> Departure:
        """The departure of a run."""
        found: Departure = getattr(run, self.of)
        return found

    def line(self, *, relative: bool = False) -> Line:
        """Return the horizons, or their ratios to the first mean.

        The first mean is that of the smallest width with a departure.
        """
        ends = [(width, self.at(run), run.seed) for width, run in self.runs]
        seen = [(width, end.at) for width, end, _ in ends if end.is_seen]
        base = mean([at for width, at in seen if width == seen[0][0]]).value if relative else 1.0
        dots = []
        for width, end, seed in ends:
            words = DEPARTURE_WORDS[end.outcome]
            # The latter have no number, and an arrow.
            is_excluded = end.outcome not in (
                "departed",
                "never",
            )
            value = end.at / base if end.outcome in ("departed", "beyond") else math.nan
            note = f"{self.clock} = {number(end.at, 3)}: {words}"
            dots.append(
                Dot(
                    width, value, seed, words * is_excluded, note, outcome=end.outcome * is_excluded
                )
            )
        # An exponent of the runs that depart in time would be biased.
        return Line(self.style, dots, fit=self.slope is None and self.num_seen == len(self.runs))

    @property
    def num_seen(self) -> int:
        """Number of runs that departed."""
        return sum(self.at(run).is_seen for _, run in self.runs)

    @property
    def never(self) -> list[tuple[float, HorizonRun]]:
        """Return (width, run) of runs that converged without a departure."""
        return [(width, run) for width, run in self.runs if self.at(run).outcome == "never"]

    @cached_property
    def law(self) -> PowerLaw | None:
        """The power law of the horizons.

        With a predicted slope, its exponent is their slope in ln m.
        """
        if self.slope is None:
            return self.line().law
        return fit_runs(self.runs, lambda run: math.exp(self.at(run).horizon), lambda run: True)

    def finding(self) -> str:
        """Return one clause on these runs."""
        found = f"{self.num_seen} of {len(self.runs)} runs depart within their budget"
        if self.never:
            found = f"{len(self.never)} of {len(self.runs)} runs never depart"
        elif self.law and self.slope is not None:
            found = f"{exponent_words(self.law)} {self.clock} per unit of ln m"
        elif self.num_seen == len(self.runs):
            ends = [number(each.value) for _, each in self.line().means]
            power = f", ∝ m^({exponent_words(self.law)})" if self.law else ""
            found = f"{self.clock} = {' to '.join(dict.fromkeys((ends[0], ends[-1])))}{power}"
        return f"{self.style.title}: {found}"


def horizons(points: HorizonPoints, of: str) -> dict[RegimeLine, Horizons]:
    """Return the departures of every line."""
    return {
        line: Horizons(style(line), runs, of, REGIMES[line.regime].clock, line.slope)
        for line, runs in lines(points).items()
    }


def against_width(points: HorizonPoints, spec: HorizonSpec, of: str) -> Chart:
    """Draw every horizon relative to its value at the smallest width.

    Arrows mark runs that never depart.
    """
    found = list(horizons(points, of).values())
    relative = [each.line(relative=True) for each in found]
    caption = [f"Clocks: {', '.join(f'{each.clock} ({each.style.title})' for each in found)}."]
    if any(each.never for each in found):
        caption.append(
            "Percentages: difference of outputs at convergence, where the horizon is never reached."
        )
    drawn = []
    for line in relative:
        if any(math.isfinite(dot.value) or dot.why for dot in line.dots):
            drawn.append(line)
    chart = sweep(
        drawn,
        width_axis(spec.widths),
        "horizon / at the least width",
        "horizon",
        caption=caption,
        rows=table_rows(COLUMNS, points),
        finding=beginning("; ".join(each.finding() for each in found) or "no run has departed yet")
        + ".",
    )
    for each in found:
        if never := each.never:
            ends: dict[float, list[float]] = {}  # width → how far its runs differ at the end
            for width, run in never:
                ends.setdefault(width, []).append(run.last_difference)
            shares = {width: mean(differences).value for width, differences in ends.items()}
            _add_never(chart, relative, shares, each.style)
    return chart


def _add_never(
    chart: Chart, lines: Sequence[Line], shares: Mapping[float, float], style: Style
) -> None:
    """Add arrows at the top for runs that never depart.

    width → how far their outputs differ at the end.
    """
    figure = chart.figure
    dots = chain.from_iterable(line.dots for line in lines)
    drawn = [dot.value for dot in dots if math.isfinite(dot.value)]
    top = ABOVE * max(drawn, default=1.0)
    low = min(figure.layout.yaxis.range[0], 0.0) if drawn else -0.3
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


def departure_steps(points: HorizonPoints, widths: Sequence[int]) -> Chart:
    """Draw departure steps above the stable rate against ln m.

    The predicted slopes are dashed.
    """
    above = [point for point in points if point.regime == "large-rate"]
    drawn = [(each, each.line()) for each in horizons(above, "outputs").values()]
    fitted = [(each, line.means) for each, line in drawn if line.means and each.law]
    sentence = beginning(
        "; ".join(f"{each.finding()}, predicted {each.slope:.2f}" for each, _ in fitted)
    )
    chart = sweep(
        [line for _, line in drawn],
        width_axis(widths),
        "step at which outputs depart",
        "step",
        is_log=False,
        heading="Departure above the stable rate",
        caption=[f"{sentence}."] if sentence else [],
        rows=table_rows(COLUMNS, above),
        finding=f"{sentence}." if sentence else "",
    )
    for each, means in fitted:
        first, _ = means[0]
        last, end = means[-1]
        slope = each.slope or 0.0
        chart.figure.add_scatter(
            x=[first, last],
            y=[end.value - slope * math.log(last / first), end.value],
            mode="lines",
            line=GUIDE_LINE,
            meta=GUIDE,
            name=f"slope {signed(slope)} predicted",
            showlegend=False,
        )
    return chart
