"""Departures from linear models against width: horizons, lower bounds, and runs that never depart."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from linearity_lab.charts.axes import GUIDE_LINE, beginning
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Axis, Dot, Line, SeededRun
from linearity_lab.charts.style import Style
from linearity_lab.charts.sweep import sweep
from ntk_core.experiments.departures import DEPARTURE_WORDS, Departure
from ntk_core.fits import PowerLaw, exponent_words
from ntk_core.numbers import number, percent, signed
from ntk_core.runs import mean

Run = TypeVar("Run", bound=SeededRun)
ABOVE = 1.7  # from the highest dot to the marks of runs that never depart


@dataclass(frozen=True)
class Horizons(Generic[Run]):
    """The departures of the runs of one line.

    Attributes:
        runs: (width, run).
        of: a departure of a run.
        clock: what its horizon is measured in.
        fit: whether horizons are powers of the width.
        law: the law of the horizons, by default their power law.
        law_words: sentence on a law, with {} for its exponent; without one, sentences name first and last horizon.
        end: how far outputs differ at the end of a run; only for lines whose runs may never depart.
    """

    style: Style
    runs: Sequence[tuple[float, Run]]
    of: Callable[[Run], Departure]
    clock: str
    fit: bool = True
    law: PowerLaw | None = None
    law_words: str = ""
    end: Callable[[Run], float] | None = None

    def line(self, *, relative: bool = False) -> Line:
        """The horizons, or their ratios to the mean at the least width where one is seen."""
        ends = [(width, self.of(run), run.seed) for width, run in self.runs]
        seen = [(width, end.at) for width, end, _ in ends if end.is_seen]
        base = mean([at for width, at in seen if width == seen[0][0]]).value if relative else 1.0
        dots = []
        for width, end, seed in ends:
            words = DEPARTURE_WORDS[end.outcome]
            is_excluded = end.outcome not in ("departed", "never")  # the latter have no number, and an arrow
            value = end.at / base if end.outcome in ("departed", "beyond") else math.nan
            note = f"{self.clock} = {number(end.at, 3)}: {words}"
            dots.append(Dot(width, value, seed, words * is_excluded, note, outcome=end.outcome * is_excluded))
        return Line(self.style, dots, fit=self.fit)

    def never(self) -> list[tuple[float, Run]]:
        """(width, run) of those that converged without a departure."""
        return [(width, run) for width, run in self.runs if self.of(run).outcome == "never"]

    def finding(self) -> str:
        """One clause on these runs."""
        drawn = self.line()
        law, ends = self.law or drawn.law, [number(average.value) for _, average in drawn.means]
        found = "no run departs within its budget"
        if self.end is not None:
            found = f"{len(self.never())} of {len(self.runs)} runs never depart"
        elif law and self.law_words:
            found = self.law_words.format(exponent_words(law))
        elif ends:
            found = f"{self.clock} = {' to '.join(dict.fromkeys((ends[0], ends[-1])))}"
        return f"{self.style.title}: {found}"


def horizons_against_width(
    found: Sequence[Horizons], axis: Axis, *, name: str, caption: Sequence[str], rows: Sequence[dict[str, object]]
) -> Chart:
    """Draw every horizon over its value at the least width; arrows at the top for runs that never depart."""
    lines = [each.line(relative=True) for each in found]
    chart = sweep(
        [each for each in lines if any(math.isfinite(dot.value) or dot.why for dot in each.dots)],
        axis,
        "horizon / at the least width",
        "horizon",
        name=name,
        caption=caption,
        rows=rows,
        finding=beginning("; ".join(each.finding() for each in found) or "no run has departed yet") + ".",
    )
    for each in found:
        if each.end and (never := each.never()):
            shares = {at: mean([each.end(run) for width, run in never if width == at]).value for at, _ in never}
            _add_never(chart, lines, shares, each.style)
    return chart


def _add_never(chart: Chart, lines: Sequence[Line], shares: Mapping[float, float], style: Style) -> None:
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


def steps_against_width(
    found: Mapping[str, tuple[Horizons, float]],
    axis: Axis,
    *,
    name: str,
    heading: str,
    rows: Sequence[dict[str, object]],
) -> Chart:
    """Draw steps at which outputs depart against the logarithm of the width, with the predicted slopes.

    Args:
        found: words of a line → its horizons, and the slope that is predicted for them.
    """
    lines = {words: each.line() for words, (each, _) in found.items()}
    fitted = {words: each.law for words, (each, _) in found.items() if lines[words].means and each.law}
    slopes = [
        f"{words}: {exponent_words(law)} steps per unit of ln m, predicted {found[words][1]:.2f}"
        for words, law in fitted.items()
    ]
    sentence = f"{beginning('; '.join(slopes))}." if slopes else ""
    chart = sweep(
        list(lines.values()),
        axis,
        "step at which outputs depart",
        "step",
        is_log=False,
        name=name,
        heading=heading,
        caption=[sentence] if sentence else [],
        rows=rows,
        finding=sentence,
    )
    for words in fitted:
        _add_predicted(chart, lines[words], found[words][1])
    return chart


def _add_predicted(chart: Chart, line: Line, slope: float) -> None:
    """Add a dashed line of this slope in the logarithm of the width, up to the last mean of a line."""
    (first, _), (last, end) = line.means[0], line.means[-1]
    y, name = [end.value - slope * math.log(last / first), end.value], f"slope {signed(slope)} predicted"
    chart.figure.add_scatter(x=[first, last], y=y, mode="lines", line=GUIDE_LINE, name=name, showlegend=False)
